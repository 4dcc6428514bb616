"""Could the disparity be chance? A test that permutes the groups inside the strata of the criterion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from localparity._docs import documented
from localparity._validation import FloatArray, as_epsilon
from localparity.metrics._comparison import check_predictions
from localparity.metrics._counts import ScoreCounts
from localparity.metrics._criteria import Criterion
from localparity.metrics._gap_curve import GapCurve
from localparity.metrics._groups import Compare
from localparity.uncertainty._resampling import Draws, Pool, one_by_one, resample_counts

NULL_QUANTILES = (0.5, 0.9, 0.95, 0.99)

_MOST_ROWS_DEALT = 10**9


@dataclass(frozen=True)
class TestResult:
    """What a permutation test found.

    Attributes
    ----------
    statistic : float
        MCDP(epsilon) of the data.
    p_value : float
        How often parity would measure as much or more, counting the data itself as one permutation.
    null_mean : float
        What parity measures on average.
    null_quantiles : dict
        Quantiles of what parity measures, by their probability.

    Examples
    --------
    >>> import localparity as lp
    >>> groups = ["a", "b"] * 50
    >>> found = lp.permutation_test(None, [0.25, 0.75] * 50, sensitive_features=groups, random_state=0)
    >>> found.statistic, found.p_value < 0.01, found.null_quantiles[0.95] < 0.5
    (1.0, True, True)
    """

    __test__ = False  # not a test case, whatever its name makes pytest think

    statistic: float
    p_value: float
    null_mean: float
    null_quantiles: dict[float, float]


def deal_groups(pool: Pool, rng: np.random.Generator) -> NDArray[Any]:
    """The people of a pool dealt to its groups at random, each group keeping its size.

    People with weights, and more people than numpy deals out, are drawn with replacement from all instead.
    """
    left = pool.weights.sum(axis=0)
    people = left.sum()
    if pool.weighted or people >= _MOST_ROWS_DEALT:
        return pool.draw([left / people] * len(pool.sizes), rng)
    dealt = np.empty_like(pool.weights)
    method: Literal["count", "marginals"] = "count" if one_by_one(int(people), left.size) else "marginals"
    for group, size in enumerate(pool.sizes[:-1]):
        dealt[group] = rng.multivariate_hypergeometric(left, size, method=method)
        left = left - dealt[group]
    dealt[-1] = left
    return dealt


def summarise_null(statistic: float, seen: float, null: FloatArray) -> TestResult:
    """The p-value of a statistic, `seen` at the thresholds of the null, among what parity measures."""
    as_large = int(np.count_nonzero(null >= seen - 1e-12))
    return TestResult(
        statistic=statistic,
        p_value=(1 + as_large) / (1 + null.size),
        null_mean=float(null.mean()),
        null_quantiles=null_quantiles(null),
    )


def null_quantiles(null: FloatArray) -> dict[float, float]:
    """The quantiles of what parity measures that results report."""
    return dict(zip(NULL_QUANTILES, np.quantile(null, NULL_QUANTILES).tolist(), strict=True))


@documented
def permutation_test(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    epsilon: float = 0.0,
    n_resamples: int = 1000,
    random_state: Any = None,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: Any = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    min_group_size: int = 1,
    n_jobs: int | None = None,
) -> TestResult:
    """Test whether parity itself could measure an MCDP(epsilon) as large.

    The groups are dealt to the people at random, among those with the same label where the criterion looks at
    labels, and MCDP is measured each time. Under parity the p-value is valid at any sample size. With weights
    it is approximate: each group counts as its effective size, drawn from everyone's weighted distribution.

    Where there are more than 32,768 distinct scores, the data and the permutations are compared at as many
    thresholds with about as many people between them. The p-value stays as valid; what parity measures, on
    average and at its quantiles, comes out some 0.4% of itself too small.

    Parameters
    ----------
    n_resamples : int
        How many permutations are drawn.

    Returns
    -------
    TestResult
        `statistic`, `p_value`, `null_mean` and `null_quantiles`.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> sex = census.sensitive_features
    >>> result = lp.permutation_test(None, census.score, sensitive_features=sex, random_state=0)
    >>> result.p_value
    0.000999000999000999
    >>> result.null_mean < 0.1 < result.statistic
    True
    """
    epsilons = np.array([as_epsilon(epsilon)])
    counts = ScoreCounts.from_predictions(
        check_predictions(y_true, y_score, sensitive_features, criterion, sample_weight, score_range)
    )
    curves = counts.gap_curves(criterion, compare, min_group_size=min_group_size)
    draws = Draws(n_resamples, random_state, n_jobs)
    (result,) = permutation_results(counts, curves, epsilons, criterion, compare, draws)
    return result


def permutation_results(
    counts: ScoreCounts,
    curves: Sequence[GapCurve],
    epsilons: FloatArray,
    criterion: str,
    compare: str,
    draws: Draws,
) -> list[TestResult]:
    """The test at each epsilon, of the worst of the counts' curves."""
    resampled = resample_counts(counts, deal_groups, draws, criterion, compare, epsilons)
    statistics = np.max([curve.mcdp_at(epsilons) for curve in curves], axis=0)
    columns = zip(statistics.tolist(), resampled.seen.tolist(), resampled.values.T, strict=True)
    return [summarise_null(statistic, seen, null) for statistic, seen, null in columns]
