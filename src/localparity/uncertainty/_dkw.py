"""Intervals that hold at any sample size, by the Dvoretzky-Kiefer-Wolfowitz inequality."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from localparity._validation import FloatArray
from localparity.metrics import GapCurve


def dkw_radius(size: float, level: float) -> float:
    r"""How far an empirical distribution may be from the true one, anywhere, with probability `level`.

    .. math:: \sqrt{\ln(2 / (1 - \text{level})) / (2 n)}

    the inequality with Massart's constant.

    Examples
    --------
    >>> round(dkw_radius(1000, 0.95), 4)
    0.0429
    """
    return math.sqrt(math.log(2.0 / (1.0 - level)) / (2.0 * size))


def dkw_bounds(
    curves: Sequence[GapCurve], epsilons: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Bounds of the worst curve's MCDP at each epsilon that hold together with probability `level`.

    MCDP is off by no more than the two distributions of its pair are off together, beyond what the counts
    leave open. The probability of an error is divided over all the distributions involved.
    """
    sides = {(curve.label, group) for curve in curves for group in curve.groups}
    level_of_each = 1.0 - (1.0 - level) / len(sides)
    lower, upper = np.zeros(epsilons.size), np.zeros(epsilons.size)
    for curve in curves:
        radius = sum(dkw_radius(size, level_of_each) for size in curve.sizes)
        least, most = (bound.mcdp_at(epsilons) for bound in curve.bounds())
        lower = np.maximum(lower, least - radius)
        upper = np.maximum(upper, most + radius)
    return lower, np.minimum(upper, 1.0)
