"""Which cells of scores MCDP hangs on, where scores are only known by cells."""

from __future__ import annotations

import numpy as np

from localparity._types import FloatArray
from localparity.metrics import _kernels
from localparity.metrics._envelope import find_envelope
from localparity.metrics._gap_curve import GapCurve, units_of


def deciding_cells(curve: GapCurve, epsilons: FloatArray) -> FloatArray:
    """The high ends of the cells that decide MCDP at some epsilons and its worst window.

    A window counts only where the gap may reach the lower bound of MCDP all along it, and in such a window
    only the cells in which the gap may fall below the upper bound. When these are known exactly, so is MCDP.
    """
    if curve.cells is None:
        return np.empty(0)
    steps = find_envelope(curve.knots, curve.gap, curve.cells)
    begins = units_of(steps.knots, curve.score_range, curve.resolution)
    least, most = (bound.mcdp_at(epsilons) for bound in curve.bounds())
    # Every run carries a window of 0; a run that ties with an epsilon may be read again in vain.
    reach = np.where(epsilons > 0.0, epsilons, -1.0)
    decides = _kernels.deciding_steps(begins, steps.lower, steps.upper, least, most, reach)
    return curve.knots[steps.cell[decides & (steps.cell >= 0)]]
