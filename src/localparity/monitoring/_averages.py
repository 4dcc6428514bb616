"""The average of several periods' gaps, in which people are compared with those of the same period.

Where both the scores and the shares of the groups change from period to period, the people of all periods
together can differ although in no period they do. An average of gaps, with the same weights for both groups,
is at no threshold larger than the largest of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from localparity._types import Group
from localparity.metrics import GapCurve
from localparity.monitoring._periods import Period, variance_of

Pair = tuple[tuple[Group, Group], int | None]
"""Two groups, and the label of the people compared."""


def information_of(period: Period) -> dict[Pair, float]:
    """The weight of a period in the average of each pair's gaps, the inverse of its variance."""
    return {
        (curve.groups, curve.label): 1.0 / variance_of(curve, period.comparison) for curve in period.curves
    }


def average_curves(periods: Sequence[Period], error: float) -> dict[Pair, GapCurve]:
    """The average curve of each pair that some period has; a share of an error is left to all sketches."""
    found: dict[Pair, list[tuple[GapCurve, float]]] = {}
    for period in periods:
        rank_error = period.rank_error(error / len(periods))
        for curve, (pair, weight) in zip(period.curves, information_of(period).items(), strict=True):
            found.setdefault(pair, []).append((replace(curve, rank_error=rank_error), weight))
    return {pair: _average(*zip(*parts, strict=True)) for pair, parts in found.items()}


def _average(curves: Sequence[GapCurve], weights: Sequence[float]) -> GapCurve:
    """The weighted average of a pair's curves."""
    if len(curves) == 1:
        return curves[0]
    shares = np.array(weights) / np.sum(weights)
    knots, place = np.unique(np.concatenate([curve.knots for curve in curves]), return_inverse=True)
    steps = [share * np.diff(curve.gap, prepend=0.0) for curve, share in zip(curves, shares, strict=True)]
    gap = np.bincount(place, np.concatenate(steps)).cumsum(dtype=np.float64)
    gap[-1] = 0.0
    first, second = np.sum([curve.sizes for curve in curves], axis=0).tolist()
    return replace(
        curves[0],
        knots=knots,
        gap=gap,
        sizes=(first, second),
        resolution=max(curve.resolution for curve in curves),
        rank_error=float(shares @ [curve.rank_error for curve in curves]),
    )
