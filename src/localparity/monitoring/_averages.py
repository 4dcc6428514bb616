"""The average of several periods' gaps, in which people are compared with those of the same period.

Where both the scores and the shares of the groups change from period to period, the people of all periods
together can differ although in no period they do. An average of gaps, with the same weights for both groups,
is at no threshold larger than the largest of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from localparity.metrics import GapCurve
from localparity.monitoring._periods import Pair, Period


def average_curves(periods: Sequence[Period], error: float) -> dict[Pair, GapCurve]:
    """The average curve of each pair that some period has; the sketches have a share of an error.

    The gaps of a period weigh as much as it knows of a pair, which makes the average as sure as can be.
    """
    rank_errors = [period.rank_error(error / len(periods)) for period in periods]
    found: dict[Pair, list[tuple[GapCurve, float, float]]] = {}
    for period, rank_error in zip(periods, rank_errors, strict=True):
        for curve, (pair, weight) in zip(period.curves, period.information.items(), strict=True):
            found.setdefault(pair, []).append((curve, weight, rank_error))
    return {pair: _average(*zip(*parts, strict=True)) for pair, parts in found.items()}


def _average(curves: Sequence[GapCurve], weights: Sequence[float], rank_errors: Sequence[float]) -> GapCurve:
    """The weighted average of a pair's curves."""
    shares = np.array(weights) / np.sum(weights)
    knots = np.concatenate([curve.knots for curve in curves])
    steps = np.concatenate([np.diff(curve.gap, prepend=0.0) for curve in curves])
    # The knots of each curve ascend, which a stable sort makes use of.
    order = np.argsort(knots, kind="stable")
    knots = knots[order]
    gap = np.cumsum((steps * np.repeat(shares, [curve.knots.size for curve in curves]))[order])
    gap[-1] = 0.0
    last = np.append(knots[1:] != knots[:-1], True)
    first, second = np.sum([curve.sizes for curve in curves], axis=0).tolist()
    return replace(
        curves[0],
        knots=knots[last],
        gap=gap[last],
        sizes=(first, second),
        resolution=max(curve.resolution for curve in curves),
        rank_error=float(shares @ np.array(rank_errors)),
    )
