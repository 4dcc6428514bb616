"""Few points of a long step function, its extremes among them."""

from __future__ import annotations

import numpy as np

from localparity._types import FloatArray, IntArray
from localparity.metrics import GapCurve

MOST_POINTS = 2000


def thin_steps(knots: FloatArray, values: FloatArray, most: int = MOST_POINTS) -> IntArray:
    """The places of at most `most` knots, ascending, that show a step function as all of them would.

    The stretch between the first and the last knot is cut into equal parts; of each part the lowest and the
    highest value stay, and so do the two ends. No extreme is lost, however narrow it is.
    """
    if knots.size <= most:
        return np.arange(knots.size)
    edges = np.linspace(knots[0], knots[-1], (most - 2) // 2 + 1)[1:-1]
    bounds = np.concatenate([[0], np.searchsorted(knots, edges), [knots.size]])
    kept = {0, knots.size - 1}
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if start < end:
            part = values[start:end]
            kept |= {start + int(part.argmin()), start + int(part.argmax())}
    return np.array(sorted(kept), dtype=np.int64)


def thin_thresholds(curve: GapCurve) -> FloatArray:
    """The thresholds at which a curve is drawn: few of its knots, and both ends of the score range."""
    return np.union1d(curve.knots[thin_steps(curve.knots, curve.gap)], curve.score_range)
