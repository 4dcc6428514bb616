"""An interval for MCDP(epsilon)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from localparity._docs import documented
from localparity._validation import FloatArray, as_epsilon, as_level
from localparity.metrics._comparison import check_predictions
from localparity.metrics._counts import ScoreCounts
from localparity.metrics._criteria import Criterion
from localparity.metrics._gap_curve import GapCurve
from localparity.metrics._groups import Compare
from localparity.uncertainty._bands import IntervalMethod, as_interval_method, band_radii
from localparity.uncertainty._resampling import Draws


@dataclass(frozen=True)
class Interval:
    """An estimate between its lower and its upper end.

    Attributes
    ----------
    low, estimate, high : float
        The ends and the estimate between them.
    level : float
        The probability with which the interval holds the true value.

    Examples
    --------
    >>> import localparity as lp
    >>> groups = ["a", "b"] * 200
    >>> found = lp.mcdp_interval(None, [0.25, 0.75] * 200, sensitive_features=groups, level=0.9)
    >>> round(found.low, 3), found.estimate, found.high
    (0.808, 1.0, 1.0)
    """

    low: float
    estimate: float
    high: float
    level: float


@documented
def mcdp_interval(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    epsilon: float = 0.0,
    level: float = 0.95,
    method: IntervalMethod | None = None,
    n_resamples: int = 1000,
    random_state: Any = None,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: Any = None,
    cluster: Any = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    min_group_size: int = 1,
    n_jobs: int | None = None,
) -> Interval:
    """An interval that holds the true MCDP(epsilon) with a stated probability.

    Both methods put a band around the gap of every pair, whose radius is added to and taken from MCDP. "dkw"
    (Dvoretzky, Kiefer and Wolfowitz) holds at any sample size and whatever the distributions, for rows that
    are independent and weigh 1. "bootstrap" finds the radius by multiplying every row's contribution to its
    group's distribution with random numbers (the multiplier bootstrap): it is shorter, holds in large
    samples, and takes weights, which may depend on the scores, and clusters. It cannot know of people whom no
    row stands for: where a few rows carry much of a group's weight, its level is approximate.

    Rows are assumed to be independent unless `cluster` says otherwise, and the scores not to come from a
    model that was trained on these rows.

    Parameters
    ----------
    level : float
        The probability, between 0 and 1.
    method : str, optional
        "dkw" or "bootstrap"; without it, "dkw" where rows are independent and weigh 1.
    n_resamples : int
        How many resamples the bootstrap draws.

    Returns
    -------
    Interval
        `low`, `estimate`, `high` and `level`.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(5000, random_state=0)
    >>> sex = census.sensitive_features
    >>> interval = lp.mcdp_interval(None, census.score, sensitive_features=sex, epsilon=0.05)
    >>> interval.low < lp.datasets.census_mcdp(0.05) < interval.high
    True
    """
    epsilons = np.array([as_epsilon(epsilon)])
    counts = ScoreCounts.from_predictions(
        check_predictions(y_true, y_score, sensitive_features, criterion, sample_weight, score_range, cluster)
    )
    curves = counts.gap_curves(criterion, compare, min_group_size=min_group_size)
    radii = band_radii(
        counts,
        curves,
        criterion=criterion,
        compare=compare,
        level=level,
        method=as_interval_method(method, counts),
        draws=Draws(n_resamples, random_state, n_jobs),
    )
    (interval,) = worst_intervals(pair_intervals(curves, epsilons, radii, as_level(level)))
    return interval


def pair_intervals(
    curves: Sequence[GapCurve], epsilons: FloatArray, radii: FloatArray, level: float
) -> list[list[Interval]]:
    """For each curve, the interval at each epsilon: what the counts leave open, and a radius beside it."""
    found = []
    for curve, radius in zip(curves, radii.tolist(), strict=True):
        estimate = curve.mcdp_at(epsilons)
        least, most = (estimate if bound is curve else bound.mcdp_at(epsilons) for bound in curve.bounds())
        low, high = np.maximum(least - radius, 0.0), np.minimum(most + radius, 1.0)
        ends = zip(low.tolist(), estimate.tolist(), high.tolist(), strict=True)
        found.append([Interval(*each, level) for each in ends])
    return found


def worst_intervals(pairs: Sequence[Sequence[Interval]]) -> list[Interval]:
    """At each epsilon the interval of the worst pair's MCDP, which no pair's lies above or below."""
    return [
        Interval(
            max(each.low for each in at),
            max(each.estimate for each in at),
            max(each.high for each in at),
            at[0].level,
        )
        for at in zip(*pairs, strict=True)
    ]
