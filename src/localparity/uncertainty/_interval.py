"""An interval for MCDP(epsilon)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from localparity._docs import documented
from localparity._validation import FloatArray, as_choice, as_epsilon, as_level
from localparity.metrics._comparison import check_predictions
from localparity.metrics._counts import ScoreCounts
from localparity.metrics._criteria import Criterion
from localparity.metrics._gap_curve import GapCurve
from localparity.metrics._groups import Compare
from localparity.uncertainty._bootstrap import bootstrap_bounds, draw_with_replacement
from localparity.uncertainty._dkw import dkw_bounds
from localparity.uncertainty._resampling import Draws, resample_counts

IntervalKind = Literal["dkw", "bootstrap"]

INTERVAL_KINDS: tuple[str, ...] = get_args(IntervalKind)


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
    kind: IntervalKind = "dkw",
    n_resamples: int = 1000,
    random_state: Any = None,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: Any = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    min_group_size: int = 1,
    n_jobs: int | None = None,
) -> Interval:
    """An interval that holds the true MCDP(epsilon) with a stated probability.

    "dkw" holds at any sample size and whatever the distributions, and is wide. "bootstrap" draws people anew
    inside each group; it is narrower and holds its level approximately, for samples that are not small and a
    disparity that is clearly above the noise floor. With weights, both are approximate: each group counts as
    its effective size. Where there are more than 32,768 distinct scores, the bootstrap compares its samples
    with the data at as many thresholds, with about as many people between them.

    Parameters
    ----------
    level : float
        The probability, between 0 and 1.
    kind : str
        "dkw" or "bootstrap".
    n_resamples : int
        How many samples the bootstrap draws.

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
    as_choice(kind, "kind", INTERVAL_KINDS)
    counts = ScoreCounts.from_predictions(
        check_predictions(y_true, y_score, sensitive_features, criterion, sample_weight, score_range)
    )
    curves = counts.gap_curves(criterion, compare, min_group_size=min_group_size)
    draws = Draws(n_resamples, random_state, n_jobs)
    (interval,) = intervals_of(counts, curves, epsilons, criterion, compare, level, kind, draws)
    return interval


def intervals_of(
    counts: ScoreCounts,
    curves: Sequence[GapCurve],
    epsilons: FloatArray,
    criterion: str,
    compare: str,
    level: float,
    kind: str,
    draws: Draws,
) -> list[Interval]:
    """The interval at each epsilon, of the worst of the counts' curves."""
    level = as_level(level)
    estimates = np.max([curve.mcdp_at(epsilons) for curve in curves], axis=0)
    if kind == "dkw":
        low, high = dkw_bounds(curves, epsilons, level)
    else:
        resampled = resample_counts(counts, draw_with_replacement, draws, criterion, compare, epsilons)
        low, high = bootstrap_bounds(estimates, resampled, level)
        # What the counts leave open is open beside what chance does.
        ends = zip(*(curve.bounds() for curve in curves), strict=True)
        least, most = (np.max([curve.mcdp_at(epsilons) for curve in end], axis=0) for end in ends)
        low, high = np.maximum(low - (estimates - least), 0.0), np.minimum(high + (most - estimates), 1.0)
    found = zip(low.tolist(), estimates.tolist(), high.tolist(), strict=True)
    return [Interval(lower, estimate, upper, level) for lower, estimate, upper in found]
