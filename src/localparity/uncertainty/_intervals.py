"""An interval for MCDP(epsilon)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from localparity._types import (
    ArrayLike,
    Compare,
    Criterion,
    FloatArray,
    Group,
    Groups,
    IntervalMethod,
    ScoreRange,
    Seed,
    Side,
)
from localparity._validation import as_choice, as_epsilon, as_jobs, as_probability
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import Data, as_counts, as_data
from localparity.metrics._exact import count_for
from localparity.metrics._gap_curve import GapCurve, Interval, gap_curves, worst_interval
from localparity.predictions import Predictions
from localparity.uncertainty._bands import Steps, as_interval_method, band_ends, band_radii, upper_ends
from localparity.uncertainty._resampling import Draws

SIDES: tuple[str, ...] = get_args(Side)
_OTHER_END = {"upper": {"low": 0.0}, "lower": {"high": 1.0}}


def mcdp_interval(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    epsilon: float = 0.0,
    confidence: float = 0.95,
    method: IntervalMethod | None = None,
    side: Side = "both",
    n_resamples: int = 1000,
    random_state: Seed = None,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    pos_label: Any = None,
    n_jobs: int | None = None,
) -> Interval:
    """An interval that holds the true MCDP(epsilon) with a stated probability.

    "finite_sample" holds at any sample size and whatever the distributions, for rows that are independent and
    weigh 1. Its lower end is MCDP less the radius of a band around the gap at every threshold. Its upper end
    is that of a difference of two binomial shares, since the true worst threshold does not depend on the
    sample; nor do the two ends of the true worst window, and at an epsilon above 0 the upper end is the
    largest gap that both of them allow. It never rises with epsilon. With ``compare="to_overall"`` both ends
    allow for the groups' shares in the population that people, whatever their group, are drawn from.

    "bootstrap" finds the radius of a band by multiplying every row's contribution to its group's distribution
    with random numbers (the multiplier bootstrap): it holds in large samples, and takes clusters, and weights
    that may depend on the scores. Where a few rows carry much of a group's weight, it is approximate.

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
        "finite_sample" or "bootstrap"; without it, "finite_sample" where rows are independent and weigh 1.
    side : str
        "both" for an interval; "upper" for an upper bound, with `low` 0, and "lower" for a lower bound, with
        `high` 1. A bound is closer to the estimate than the end of an interval of the same confidence.
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
    pos_label : object, optional
        The label that counts as 1, the other one as 0; without it, labels are 0 and 1.
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
    confidence = as_probability(confidence)
    as_choice(side, "side", SIDES)
    comparison = Comparison(criterion, compare, min_group_size)
    rows: dict[str, Any] = {
        "sample_weight": sample_weight,
        "cluster": cluster,
        "score_range": score_range,
        "pos_label": pos_label,
    }
    data = as_data(comparison, y_true, y_score, sensitive_features, **rows)
    if isinstance(data, Predictions) and data.exchangeable and method != "bootstrap" and epsilon == 0.0:
        # The margins of one threshold depend on the sizes alone.
        counts = count_for(data, comparison, np.union1d(0.0, epsilons), as_jobs(n_jobs))
    else:
        counts = as_counts(data)
    curves = gap_curves(counts, comparison)
    pairs = [measured_pair(curve, epsilons) for curve in curves]
    if as_interval_method(method, counts) == "finite_sample":
        intervals = finite_sample_intervals(pairs, confidence, side)
    else:
        draws = Draws(n_resamples, random_state, n_jobs)
        radii = band_radii(counts, comparison, pairs, confidence=confidence, method="bootstrap", draws=draws)
        intervals = band_intervals(pairs, radii, confidence)
    (interval,) = worst_intervals(intervals)
    return replace(interval, **_OTHER_END.get(side, {}))


@dataclass(frozen=True, eq=False, kw_only=True)
class MeasuredPair:
    """A pair, at each epsilon its MCDP and what that is known to lie between, and its largest gap at most.

    `steps` bound its gap at each threshold.
    """

    groups: tuple[Group, Group]
    label: int | None
    sizes: tuple[float, float]
    epsilons: FloatArray
    least: FloatArray
    mcdp: FloatArray
    most: FloatArray
    largest: float
    steps: Steps


def measured_pair(curve: GapCurve, epsilons: FloatArray) -> MeasuredPair:
    """Measure a curve at each epsilon."""
    at = np.append(epsilons, 0.0)
    mcdp = curve.mcdp_at(at)
    # The bounds of an exact curve are the curve itself.
    least, most = (mcdp if side is curve else side.mcdp_at(at) for side in curve.bounds())
    return MeasuredPair(
        groups=curve.groups,
        label=curve.label,
        sizes=curve.sizes,
        epsilons=epsilons,
        least=least[:-1],
        mcdp=mcdp[:-1],
        most=most[:-1],
        largest=float(most[-1]),
        steps=Steps.of(curve),
    )


def finite_sample_intervals(
    pairs: Sequence[MeasuredPair], confidence: float, side: Side = "both"
) -> list[list[Interval]]:
    """For each pair, the interval at each epsilon, for independent rows of one weight.

    The lower ends of all pairs hold together at all epsilons, and the upper ends of each pair and epsilon by
    themselves: the largest of either make an interval for the worst pair's MCDP.
    """
    error = (1.0 - confidence) / (2.0 if side == "both" else 1.0)
    least = np.array([pair.least for pair in pairs])
    low, high = np.zeros_like(least), np.ones_like(least)
    if side != "upper":
        low = band_ends(pairs, least, error / len(pairs), upper=False)
    if side != "lower":
        high = upper_ends(pairs, error)
    return _intervals(pairs, low, high, confidence)


def band_intervals(
    pairs: Sequence[MeasuredPair], radii: FloatArray, confidence: float
) -> list[list[Interval]]:
    """For each pair, the interval at each epsilon, as wide as the pair's band; all hold together."""
    low = np.array([pair.least for pair in pairs]) - radii[:, None]
    high = np.array([pair.most for pair in pairs]) + radii[:, None]
    return _intervals(pairs, np.maximum(low, 0.0), np.minimum(high, 1.0), confidence)


def _intervals(
    pairs: Sequence[MeasuredPair], low: FloatArray, high: FloatArray, confidence: float
) -> list[list[Interval]]:
    return [
        [Interval(*each, confidence) for each in zip(ends[0], pair.mcdp.tolist(), ends[1], strict=True)]
        for pair, *ends in zip(pairs, low.tolist(), high.tolist(), strict=True)
    ]


def worst_intervals(pairs: Sequence[Sequence[Interval]]) -> list[Interval]:
    """At each epsilon the interval of the worst pair's MCDP, which no pair's lies above or below."""
    return [worst_interval(at) for at in zip(*pairs, strict=True)]
