"""Could the disparity be chance? A test against parity, adjusted over pairs, labels and epsilons.

The gap of a pair of small groups is large by chance alone, so pairs are compared by their studentised MCDP,
which is MCDP times the square root of n_a n_b / (n_a + n_b): a group of four people cannot hide what two
groups of thousands show. A p-value says how often parity would give some pair, at some epsilon, as much
(Westfall and Young's single-step maximum over pairs and minimum over epsilons).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from localparity._docs import documented
from localparity._validation import FloatArray, as_epsilon
from localparity.metrics._comparison import check_predictions
from localparity.metrics._counts import ScoreCounts
from localparity.metrics._criteria import Criterion
from localparity.metrics._groups import Compare
from localparity.uncertainty._pool import Pool
from localparity.uncertainty._resampling import Draws, Resampled, critical_value, resample_counts

NULL_QUANTILES = (0.5, 0.9, 0.95, 0.99)

_ROUNDING = 1e-12


@dataclass(frozen=True)
class TestResult:
    """What a test against parity found.

    Attributes
    ----------
    statistic : float
        MCDP(epsilon) of the data.
    p_value : float
        How often parity would give some pair as large a studentised MCDP, counting the data itself as one
        permutation; in an audit, at any of its epsilons.
    null_mean : float
        MCDP of the worst pair that is expected under parity.
    null_quantiles : dict
        Quantiles of the same, by their probability.

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


def summarise_null(statistic: float, p_value: float, null: FloatArray) -> TestResult:
    """A test's result, with what parity measures in each resample."""
    return TestResult(statistic, p_value, float(null.mean()), null_quantiles(null))


def null_quantiles(null: FloatArray) -> dict[float, float]:
    """The quantiles of what parity measures that results report."""
    return dict(zip(NULL_QUANTILES, np.quantile(null, NULL_QUANTILES).tolist(), strict=True))


def p_value_of(seen: float, null: FloatArray) -> float:
    """How often parity measures as much or more, counting the data itself as one resample."""
    return float(1 + np.count_nonzero(null >= seen - _ROUNDING)) / (1 + null.size)


def adjusted_p_values(seen: FloatArray, null: FloatArray) -> FloatArray:
    """The adjusted p-value of each pair (rows) at each epsilon (columns).

    At one epsilon, a pair's p-value is how often the largest of all pairs is as large under parity. The least
    such p-value over the epsilons, of the data and of each resample as if it were the data, says how often
    parity would give as small a one at any epsilon.

    Parameters
    ----------
    seen : ndarray of shape (pairs, epsilons)
        The pairs' studentised MCDP.
    null : ndarray of shape (resamples, epsilons)
        The largest studentised MCDP of all pairs in each resample.

    Returns
    -------
    ndarray of shape (pairs, epsilons)

    Examples
    --------
    >>> null = np.arange(1.0, 20.0)[:, None]
    >>> adjusted_p_values(np.array([[20.0], [18.5]]), null).ravel()
    array([0.05, 0.1 ])
    """
    pooled = np.vstack([seen.max(axis=0), null])
    pool_size = len(pooled)
    least = np.ones(pool_size)
    of_pairs = np.empty(seen.shape)
    for epsilon, column in enumerate(np.sort(pooled, axis=0).T):
        as_large = pool_size - np.searchsorted(column, pooled[:, epsilon] - _ROUNDING)
        least = np.minimum(least, as_large / pool_size)
        of_pairs[:, epsilon] = pool_size - np.searchsorted(column, seen[:, epsilon] - _ROUNDING)
    as_small = np.searchsorted(np.sort(least), of_pairs / pool_size + _ROUNDING, side="right")
    return np.asarray(as_small / pool_size, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ParityTest:
    """The test against parity of all pairs at all epsilons.

    Attributes
    ----------
    results : list of TestResult
        At each epsilon, of the worst pair.
    p_values, studentised : ndarray of shape (pairs, epsilons)
        The adjusted p-value and the studentised MCDP of each pair.
    resampled : Resampled
        What was measured of each resample.
    """

    results: list[TestResult]
    p_values: FloatArray
    studentised: FloatArray
    resampled: Resampled

    def detectable(self, level: float) -> FloatArray:
        """For each pair, the smallest MCDP at the first epsilon that would be significant at its sizes."""
        return np.asarray(critical_value(self.resampled.scaled[:, 0], level) / self.resampled.scale)


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
    cluster: Any = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    min_group_size: int = 1,
    n_jobs: int | None = None,
) -> TestResult:
    """Test whether parity itself could measure an MCDP(epsilon) as large.

    The groups are dealt to the people at random, among those with the same label where the criterion looks at
    labels, and MCDP is measured each time. Under parity the p-value is valid at any sample size. Pairs are
    compared by their studentised MCDP, MCDP times the square root of n_a n_b / (n_a + n_b), so that a small
    group, whose gaps are large by chance, does not hide what large groups show.

    With weights or clusters parity says nothing of a random deal, since groups may have been sampled
    differently. Every row's contribution to its group's distribution is then multiplied with a random number,
    which a cluster's rows share (the multiplier bootstrap); this holds in large samples.

    Where there are more than 32,768 distinct scores, or very many pairs, the data and the resamples are
    compared at fewer thresholds, with about as many people between them. The p-value stays as valid; what is
    expected under parity comes out some 0.4% of itself too small.

    Parameters
    ----------
    n_resamples : int
        How many resamples are drawn.

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
        check_predictions(y_true, y_score, sensitive_features, criterion, sample_weight, score_range, cluster)
    )
    curves = counts.gap_curves(criterion, compare, min_group_size=min_group_size)
    mcdp = np.array([curve.mcdp_at(epsilons) for curve in curves])
    draws = Draws(n_resamples, random_state, n_jobs)
    resampled = parity_resamples(counts, epsilons, criterion, compare, draws)
    return parity_test(mcdp, resampled).results[0]


def parity_resamples(
    counts: ScoreCounts, epsilons: FloatArray, criterion: str, compare: str, draws: Draws
) -> Resampled:
    """What parity measures: of groups dealt at random or, with weights or clusters, of random deviations."""
    draw = Pool.dealt if counts.exchangeable else Pool.deviated
    return resample_counts(counts, draw, draws, criterion, compare, epsilons)


def parity_test(mcdp: FloatArray, resampled: Resampled) -> ParityTest:
    """The test of all pairs, given MCDP of each (rows) at each epsilon (columns)."""
    studentised = resampled.seen * resampled.scale[:, None]
    p_values = adjusted_p_values(studentised, resampled.scaled)
    columns = zip(mcdp.max(axis=0).tolist(), p_values.min(axis=0).tolist(), resampled.worst.T, strict=True)
    results = [summarise_null(statistic, p_value, null) for statistic, p_value, null in columns]
    return ParityTest(results, p_values, studentised, resampled)
