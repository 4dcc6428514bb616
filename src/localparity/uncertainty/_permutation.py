"""Could the disparity be chance? A test against parity, adjusted over pairs, labels and epsilons.

The gap of a pair of small groups is large by chance alone, so pairs are compared by their studentised MCDP,
which is MCDP times the square root of n_a n_b / (n_a + n_b): a group of four people cannot hide what two
groups of thousands show. A p-value says how often parity would give some pair, at some epsilon, as much
(Westfall and Young's single-step maximum over pairs and minimum over epsilons).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from localparity._types import ArrayLike, Compare, Criterion, FloatArray, Groups, IntArray, ScoreRange, Seed
from localparity._validation import as_epsilon
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import Data, ScoreCounts, input_counts
from localparity.metrics._gap_curve import gap_curves
from localparity.metrics._window import number_text, percent
from localparity.uncertainty._intervals import MeasuredPair, measured_pair
from localparity.uncertainty._permutation_draws import pools_of
from localparity.uncertainty._resampling import Draws, Resampled, deviation_resamples, resample

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
    """A test's result, with MCDP of each resample under parity."""
    return TestResult(statistic, p_value, float(null.mean()), null_quantiles(null))


def null_quantiles(null: FloatArray) -> dict[float, float]:
    """The quantiles of MCDP under parity that results report."""
    return dict(zip(NULL_QUANTILES, np.quantile(null, NULL_QUANTILES).tolist(), strict=True))


def p_value_of(seen: float, null: FloatArray) -> float:
    """How often MCDP under parity is as large, counting the data itself as one resample."""
    return float(1 + np.count_nonzero(null >= seen - _ROUNDING)) / (1 + null.size)


def least_p_value(n_resamples: int) -> float:
    """The smallest p-value that so many resamples can give."""
    return 1.0 / (1 + n_resamples)


def p_value_text(p_value: float | None, least: float) -> str:
    """A p-value, or a dash where no test was made; the least that there can be is a bound, not a value.

    Examples
    --------
    >>> p_value_text(1 / 1001, least_p_value(1000)), p_value_text(1 / 101, least_p_value(100))
    ('<= 0.001', '<= 0.01')
    >>> p_value_text(2 / 1001, least_p_value(1000)), p_value_text(None, 1.0)
    ('0.0020', '-')
    """
    if p_value is None:
        return "-"
    if p_value > least * (1.0 + _ROUNDING):
        return f"{p_value:.4f}" if p_value >= 1e-3 else number_text(p_value, 2)
    step = 10.0 ** (math.floor(math.log10(p_value)) - 1)
    return f"<= {number_text(math.ceil(p_value / step - _ROUNDING) * step, 2)}"


def share_of_audits(p_value: float, n_resamples: int) -> str:
    """How often chance alone shows as much.

    Examples
    --------
    >>> share_of_audits(1 / 1001, 1000), share_of_audits(0.25, 1000)
    ('fewer than 1 in 1,000 audits', '25.00% of audits')
    """
    if p_value > least_p_value(n_resamples) * (1.0 + _ROUNDING):
        return f"{percent(p_value) if p_value >= 1e-3 else f'{number_text(100.0 * p_value, 2)}%'} of audits"
    return f"fewer than 1 in {n_resamples:,} audits"


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
    as_small = np.searchsorted(_least_ranks(pooled), _ranks(seen, pooled), side="right")
    return np.asarray(as_small / len(pooled), dtype=np.float64)


def _ranks(values: FloatArray, pooled: FloatArray) -> IntArray:
    """How many of the pooled resamples are as large as each value, column by column."""
    columns = zip(np.sort(pooled, axis=0).T, values.T, strict=True)
    return len(pooled) - np.stack([np.searchsorted(a, b - _ROUNDING) for a, b in columns], axis=1)


def _least_ranks(pooled: FloatArray) -> IntArray:
    """The least rank of each of the pooled resamples over the epsilons, ascending."""
    return np.sort(_ranks(pooled, pooled).min(axis=1))


def critical_first(seen: FloatArray, null: FloatArray, confidence: float) -> float:
    """What a pair must exceed at the first epsilon for an adjusted p-value of at most 1 - `confidence`.

    Examples
    --------
    >>> null = np.arange(1.0, 20.0)[:, None]
    >>> critical_first(np.zeros((1, 1)), null, 0.95), critical_first(np.zeros((1, 1)), null, 0.96)
    (19.0, inf)
    """
    pooled = np.vstack([seen.max(axis=0), null])
    least = _least_ranks(pooled)
    allowed = int((1.0 - confidence) * len(pooled) + 1e-9)
    rank = int(least[allowed]) - 1 if allowed < len(pooled) else len(null)
    return float(np.sort(null[:, 0])[-rank]) if rank > 0 else float(np.inf)


@dataclass(frozen=True, eq=False)
class ParityTest:
    """The test against parity of all pairs at all epsilons.

    Attributes
    ----------
    results : list of TestResult
        At each epsilon, of the worst pair.
    p_values : ndarray of shape (pairs, epsilons)
        The adjusted p-value of each pair.
    resampled : tuple of Resampled
        What was measured of each resample, one way or two.
    """

    results: list[TestResult]
    p_values: FloatArray
    resampled: tuple[Resampled, ...]

    def detectable(self, confidence: float) -> FloatArray:
        """For each pair, what MCDP at the first epsilon must exceed to be significant at its sizes."""
        found = [
            critical_first(each.studentised, each.scaled, confidence) / each.scale for each in self.resampled
        ]
        return np.asarray(np.max(found, axis=0), dtype=np.float64)

    def confirmed_by(self, resampled: Resampled) -> ParityTest:
        """The larger of this test's p-values and those of other resamples."""
        others = adjusted_p_values(resampled.studentised, resampled.scaled)
        p_values = np.maximum(self.p_values, others)
        results = [
            replace(result, p_value=p_value)
            for result, p_value in zip(self.results, p_values.min(axis=0).tolist(), strict=True)
        ]
        return ParityTest(results, p_values, (*self.resampled, resampled))


def permutation_test(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    epsilon: float = 0.0,
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
) -> TestResult:
    """Test whether groups that do not differ could give as large an MCDP(epsilon).

    The groups are dealt to the people at random, among those with the same label where the criterion looks at
    labels, and MCDP is measured each time. Under parity the p-value is valid at any sample size. Pairs are
    compared by their studentised MCDP, MCDP times the square root of n_a n_b / (n_a + n_b), so that a small
    group, whose gaps are large by chance, does not hide what large groups show.

    With weights or clusters parity says nothing of a random deal, since groups may have been sampled
    differently. Every row's contribution to its group's distribution is then multiplied with a random number,
    which a cluster's rows share (the multiplier bootstrap); this holds in large samples.

    Of many distinct scores, groups are dealt out to cells of scores first; the people of a cell are dealt one
    by one where MCDP may depend on them. The result is that of dealing everybody one by one, but that an MCDP
    below a thousandth of a gap's standard deviation counts as that much. The multiplier bootstrap compares
    the data and the resamples at up to 8,192 thresholds. Of counts that are not exact, as those of a sketch,
    the least MCDP that they allow is compared with the resamples; `statistic` is what they measure.

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
    n_resamples : int
        How many resamples are drawn.
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
    comparison = Comparison(criterion, compare, min_group_size)
    rows = {
        "sample_weight": sample_weight,
        "cluster": cluster,
        "score_range": score_range,
        "pos_label": pos_label,
    }
    counts = input_counts(comparison, y_true, y_score, sensitive_features, **rows)
    pairs = [measured_pair(curve, epsilons) for curve in gap_curves(counts, comparison)]
    draws = Draws(n_resamples, random_state, n_jobs)
    return parity_test(pairs, counts, comparison, epsilons, draws).results[0]


def parity_resamples(
    counts: ScoreCounts,
    comparison: Comparison,
    epsilons: FloatArray,
    draws: Draws,
    *,
    seen: FloatArray | float = np.inf,
) -> Resampled:
    """MCDP under parity: groups are dealt at random or, with weights or clusters, deviate at random.

    `seen` is MCDP of each pair (rows) at each epsilon, at least, where data are compared with the resamples.
    """
    if not counts.exchangeable:
        return deviation_resamples(counts, comparison, epsilons, draws).at_most(seen)
    pools = pools_of(counts, comparison)
    return resample(
        pools, draws, comparison=comparison, epsilons=epsilons, seen=seen, resolution=counts.resolution
    )


def parity_test(
    pairs: Sequence[MeasuredPair],
    counts: ScoreCounts,
    comparison: Comparison,
    epsilons: FloatArray,
    draws: Draws,
) -> ParityTest:
    """The test of all pairs; of a pair that is not known exactly, the least that it may measure is tested."""
    least = np.array([pair.least for pair in pairs])
    resampled = parity_resamples(counts, comparison, epsilons, draws, seen=least)
    p_values = adjusted_p_values(resampled.studentised, resampled.scaled)
    mcdp = np.max([pair.mcdp for pair in pairs], axis=0)
    columns = zip(mcdp.tolist(), p_values.min(axis=0).tolist(), resampled.worst.T, strict=True)
    results = [summarise_null(statistic, p_value, null) for statistic, p_value, null in columns]
    return ParityTest(results, p_values, (resampled,))
