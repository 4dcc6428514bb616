"""An interval for MCDP(epsilon)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from localparity._types import (
    ArrayLike,
    Compare,
    Criterion,
    FloatArray,
    Groups,
    IntervalMethod,
    ScoreRange,
    Seed,
)
from localparity._validation import as_epsilon, as_jobs, as_probability
from localparity.counts._comparison import Comparison
from localparity.counts._inputs import Data, as_counts, as_data
from localparity.metrics._exact import count_for
from localparity.metrics._gap_curve import GapCurve
from localparity.metrics._gap_curves import gap_curves
from localparity.metrics._interval import Interval, worst_interval
from localparity.predictions import Predictions
from localparity.uncertainty._bands import as_interval_method, band_radii
from localparity.uncertainty._resampling import Draws


def mcdp_interval(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    epsilon: float = 0.0,
    confidence: float = 0.95,
    method: IntervalMethod | None = None,
    n_resamples: int = 1000,
    random_state: Seed = None,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    n_jobs: int | None = None,
) -> Interval:
    """An interval that holds the true MCDP(epsilon) with a stated probability.

    Both methods put a band around the gap of every pair, whose radius is added to and taken from MCDP. "dkw"
    (Dvoretzky, Kiefer and Wolfowitz) holds at any sample size and whatever the distributions, for rows that
    are independent and weigh 1. "bootstrap" finds the radius by multiplying every row's contribution to its
    group's distribution with random numbers (the multiplier bootstrap): it is shorter, holds in large
    samples, and takes weights, which may depend on the scores, and clusters. It cannot know of people whom no
    row stands for: where a few rows carry much of a group's weight, its confidence is approximate.

    Rows are assumed to be independent unless `cluster` says otherwise, and the scores not to come from a
    model that was trained on these rows.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1; None where the criterion does not need them. Predictions or ScoreCounts stand for all
        of the arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    epsilon : float
        The half-width of the windows, as a fraction of the score range.
    confidence : float
        The probability that the interval holds the true MCDP(epsilon).
    method : str, optional
        "dkw" or "bootstrap"; without it, "dkw" where rows are independent and weigh 1.
    n_resamples : int
        How many resamples the bootstrap draws.
    random_state : int, Generator or None
        The same seed gives the same result.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    sample_weight : array-like, optional
        Weights that are not negative.
    cluster : array-like, optional
        The person or household that each row belongs to; rows are assumed independent without it.
    score_range : tuple of float
        The lowest and the highest score there can be.
    min_group_size : int
        A group with fewer rows among the people compared is an error.
    n_jobs : int, optional
        How many resamples run at a time, -1 for as many as there are cores.

    Returns
    -------
    Interval
        `low`, `estimate`, `high` and `confidence`.

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
    comparison = Comparison(criterion, compare, min_group_size)
    rows: dict[str, Any] = {"sample_weight": sample_weight, "cluster": cluster, "score_range": score_range}
    data = as_data(comparison, y_true, y_score, sensitive_features, **rows)
    if isinstance(data, Predictions) and data.exchangeable and method != "bootstrap":
        # The radius depends on the sizes alone.
        counts = count_for(data, comparison, epsilons, as_jobs(n_jobs))
    else:
        counts = as_counts(data)
    curves = gap_curves(counts, comparison)
    radii = band_radii(
        counts,
        comparison,
        curves,
        confidence=confidence,
        method=as_interval_method(method, counts),
        draws=Draws(n_resamples, random_state, n_jobs),
    )
    (interval,) = worst_intervals(pair_intervals(curves, epsilons, radii, as_probability(confidence)))
    return interval


def pair_intervals(
    curves: Sequence[GapCurve], epsilons: FloatArray, radii: FloatArray, confidence: float
) -> list[list[Interval]]:
    """For each curve, the interval at each epsilon: what the counts leave open, and a radius beside it."""
    found = []
    for curve, radius in zip(curves, radii.tolist(), strict=True):
        least, most = (bound.mcdp_at(epsilons) for bound in curve.bounds())
        found.append(intervals_around(least, curve.mcdp_at(epsilons), most, radius, confidence))
    return found


def intervals_around(
    least: FloatArray, estimate: FloatArray, most: FloatArray, radius: float, confidence: float
) -> list[Interval]:
    """Intervals in [0, 1] with a radius beside what each estimate is known to lie between."""
    low, high = np.maximum(least - radius, 0.0), np.minimum(most + radius, 1.0)
    ends = zip(low.tolist(), estimate.tolist(), high.tolist(), strict=True)
    return [Interval(*each, confidence) for each in ends]


def worst_intervals(pairs: Sequence[Sequence[Interval]]) -> list[Interval]:
    """At each epsilon the interval of the worst pair's MCDP, which no pair's lies above or below."""
    return [worst_interval(at) for at in zip(*pairs, strict=True)]
