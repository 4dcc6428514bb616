"""Could the disparity be chance? A test against parity, adjusted over pairs, labels and epsilons.

The gap of a pair of small groups is large by chance alone, so pairs are compared by their studentised MCDP,
MCDP times the square root of n_a n_b / (n_a + n_b). A p-value says how often parity would give some pair, at
some epsilon, as much (Westfall and Young's single-step maximum over pairs and minimum over epsilons).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from localparity._types import ArrayLike, Compare, Criterion, FloatArray, Groups, IntArray, ScoreRange, Seed
from localparity._validation import as_epsilon
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import Data, ScoreCounts, input_counts, strata_of
from localparity.metrics._gap_curve import gap_curves, units_of
from localparity.uncertainty._deviations import deviation_resamples
from localparity.uncertainty._intervals import MeasuredPair, measured_pair
from localparity.uncertainty._kernels import CellArrays, WindowArrays, worst_of_deal
from localparity.uncertainty._resampling import (
    Draws,
    Measuring,
    PairRows,
    Ranges,
    Resampled,
    equal_cells,
    measuring_rows,
    resample,
    studentised_pairs,
    window_ends,
)

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
        How often parity would give some pair as large a studentised MCDP, the data being one permutation; in
        an audit, at any of its epsilons.
    null_mean : float
        MCDP of the worst pair that is expected under parity.
    null_quantiles : dict
        Quantiles of the same, by their probability.

    Examples
    --------
    >>> import localparity as lp
    >>> groups = ["a", "b"] * 50
    >>> found = lp.permutation_test(None, [0.25, 0.75] * 50, sensitive_features=groups, random_state=0)
    >>> found
    TestResult(1, p-value 0.000999; by chance 0.08084)
    >>> found.null_quantiles[0.95] < 0.5
    True
    """

    __test__ = False  # not a test case, whatever its name makes pytest think

    statistic: float
    p_value: float
    null_mean: float
    null_quantiles: dict[float, float]

    def __repr__(self) -> str:
        return f"TestResult({self.statistic:.4g}, p-value {self.p_value:.4g}; by chance {self.null_mean:.4g})"


def summarise_null(statistic: float, p_value: float, null: FloatArray) -> TestResult:
    """The result of a test, given MCDP of each resample under parity."""
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


def adjusted_p_values(seen: FloatArray, null: FloatArray) -> FloatArray:
    """The adjusted p-value of each pair (rows) at each epsilon, given the largest of all pairs in resamples.

    At one epsilon, a pair's p-value is how often the largest of all pairs is as large under parity. The least
    of these over the epsilons, compared with that of each resample, is adjusted for all of them.
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
    """What a pair must exceed at the first epsilon for an adjusted p-value of at most 1 - `confidence`."""
    pooled = np.vstack([seen.max(axis=0), null])
    least = _least_ranks(pooled)
    allowed = int((1.0 - confidence) * len(pooled) + 1e-9)
    rank = int(least[allowed]) - 1 if allowed < len(pooled) else len(null)
    return float(np.sort(null[:, 0])[-rank]) if rank > 0 else float(np.inf)


@dataclass(frozen=True, eq=False)
class ParityTest:
    """The test against parity of all pairs at all epsilons."""

    results: list[TestResult]  # at each epsilon, of the worst pair
    p_values: FloatArray  # (pairs, epsilons): The adjusted p-value of each pair
    resampled: tuple[Resampled, ...]  # what was measured of each resample, one way or two

    def detectable(self, confidence: float) -> FloatArray:
        """For each pair, what MCDP at the first epsilon must exceed to be significant at its sizes."""
        critical = [
            critical_first(draws.studentised, draws.scaled, confidence) / draws.scale
            for draws in self.resampled
        ]
        return np.asarray(np.max(critical, axis=0), dtype=np.float64)

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

    With weights or clusters, groups may have been sampled differently, and a random deal says nothing. Every
    row's contribution to its group's distribution is then multiplied with a random number, which a cluster's
    rows share (the multiplier bootstrap, at up to 8,192 thresholds); this holds in large samples.

    An MCDP below a thousandth of a gap's standard deviation counts as that much where there are many distinct
    scores. Of counts that are not exact, as those of a sketch, the least MCDP that they allow is tested;
    `statistic` is what they measure.

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
    sources = [pool.measuring for pool in pools_of(counts, comparison)]
    return resample(
        sources, draws, comparison=comparison, epsilons=epsilons, seen=seen, resolution=counts.resolution
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


# Dealing people to a group at random, cell by cell: draws of the multivariate hypergeometric distribution.
# Were everybody to join with the same probability, a cell's number would be binomial, which is read off a
# table. Then as many people as the group has too many, picked at random, leave it, or as many as it lacks
# join. Every group of the wanted size is as likely as any other.

# A larger cell is drawn in parts: its remainder by this number, and the powers of two in the rest. Only
# uniform numbers are drawn, since numpy's own binomial draws other numbers in other versions.
_MOST_IN_TABLE = 512
_BINS = 4096


def _in_table(sizes: IntArray) -> IntArray:
    """The part of each size that is read off the table."""
    return np.where(sizes > _MOST_IN_TABLE, sizes % _MOST_IN_TABLE, sizes)


def _of_power(power: int, share: float) -> tuple[int, FloatArray]:
    """The fewest of 2**power people who may join, and the probabilities of at most so many, one more, ..."""
    size = 2**power
    mode = int((size + 1) * share)
    reach = 60 + int(12.0 * np.sqrt(size * share * (1.0 - share)))  # beyond it nothing is left to round
    above = np.arange(mode + 1, min(mode + reach, size) + 1)
    below = np.arange(mode - 1, max(mode - reach, 0) - 1, -1)
    odds = share / (1.0 - share)
    rising = np.cumprod((size - above + 1) / above * odds)
    falling = np.cumprod((below + 1) / (size - below) / odds)
    chances = np.cumsum(np.concatenate([falling[::-1], [1.0], rising]))
    return mode - below.size, chances / chances[-1]


class BinomialTable:
    """Draws how many of the people of cells of some sizes join, each with the same probability."""

    def __init__(self, share: float, sizes: IntArray) -> None:
        largest, sizes = int(sizes.max(initial=0)), _in_table(sizes)
        most = int(sizes.max(initial=0))
        of_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
        joined = np.arange(most + 1)
        # For each size (rows) the probability of at most 0, 1, 2, ... people.
        cumulative = np.ones((most + 1, most + 1))
        # For each size, and for each of 4,096 equal parts of [0, 1), how many people a uniform number from
        # there stands for, -1 where that depends on the number.
        known = np.full((most + 1, _BINS), -1, dtype=np.int16)
        for size in np.unique(sizes).tolist():
            among = joined[: size + 1]
            of_ways = of_factorials[size] - of_factorials[among] - of_factorials[size - among]
            odds = among * np.log(share) + (size - among) * np.log1p(-share)
            below = np.minimum(np.cumsum(np.exp(of_ways + odds)), 1.0)
            below[-1] = 1.0
            cumulative[size, : size + 1] = below
            steps = np.bincount((below * _BINS).astype(np.int64), minlength=_BINS + 1)[:_BINS]
            known[size] = np.where(steps, -1, np.cumsum(steps) - steps)
        # The row's number is added, so that all rows together ascend.
        self.cumulative, self.known = cumulative + np.arange(most + 1)[:, None], known
        powers = range(_MOST_IN_TABLE.bit_length() - 1, largest.bit_length())
        self.powers = {power: _of_power(power, share) for power in powers if largest > _MOST_IN_TABLE}

    def draw(self, sizes: IntArray, rng: np.random.Generator) -> IntArray:
        """How many people of cells of these sizes join."""
        small = _in_table(sizes)
        uniform = rng.random(sizes.size)
        parts = (uniform * _BINS).astype(np.int64)
        joined = self.known.ravel().take(small * _BINS + parts, mode="clip").astype(np.int64)
        unknown = np.flatnonzero(joined < 0)
        among = small[unknown]
        places = np.searchsorted(self.cumulative.ravel(), among + uniform[unknown], side="right")
        joined[unknown] = np.minimum(places - among * len(self.cumulative), among)
        for power, (least, below) in self.powers.items():
            large = np.flatnonzero((sizes > _MOST_IN_TABLE) & (sizes >> power & 1 == 1))
            joined[large] += least + np.searchsorted(below, rng.random(large.size), side="right")
        return joined


def picked(people: IntArray, number: int, rng: np.random.Generator) -> IntArray:
    """How many of so many people, picked at random, come from each cell."""
    below = np.cumsum(people)
    rows = rng.choice(int(below[-1]), number, replace=False, shuffle=False)
    rows.sort()  # looked up faster in order
    return np.bincount(np.searchsorted(below, rows, side="right"), minlength=people.size)


class Dealer:
    """Deals the people of some cells out to groups of given sizes."""

    def __init__(self, sizes: IntArray, people: IntArray) -> None:
        self.sizes, self.people = sizes, people
        most = int(people.max(initial=0))
        # Once some are dealt out, a cell may have any smaller number of people left.
        smaller = np.append(np.arange(1 + min(most, _MOST_IN_TABLE)), most)
        left = np.cumsum(sizes[::-1])[::-1]
        # For each group but the last, the share that it has of those who are not in a group before it.
        self.tables = [
            BinomialTable(float(size / among), smaller if group else people)
            for group, (size, among) in enumerate(zip(sizes[:-1], left[:-1], strict=True))
        ]

    def deal(self, rng: np.random.Generator) -> IntArray:
        """How many people of each group (rows) come to lie in each cell."""
        dealt = np.empty((self.sizes.size, self.people.size), dtype=np.int64)
        left = self.people
        for group, table in enumerate(self.tables):
            joined = table.draw(left, rng)
            surplus = int(joined.sum() - self.sizes[group])
            if surplus > 0:
                joined -= picked(joined, surplus, rng)
            elif surplus < 0:
                joined += picked(left - joined, -surplus, rng)
            dealt[group] = joined
            left = left - joined
        dealt[-1] = left
        return dealt


# So many cells for the square root of the people: what a cell may hide is small beside what chance does.
_CELLS_BY_ROOT, _MOST_CELLS = 5.0, 2**13
MOST_MEASURED = 2**14  # of no more scores than this, counted for each pair, every one is a cell of its own


@dataclass(frozen=True, eq=False)
class Pool:
    """People by their score, and the sizes of the groups that are dealt to them."""

    sizes: IntArray  # the people of each group
    scores: FloatArray  # the distinct scores, as fractions of the score range
    people: IntArray  # how many people have each
    ends: IntArray  # the place of the last score of each cell

    @classmethod
    def of_people(cls, sizes: IntArray, scores: FloatArray, people: IntArray, n_pairs: int) -> Pool:
        """Choose the cells: every score its own where there are few, else a few thousand."""
        n_cells = scores.size
        if n_cells * n_pairs > MOST_MEASURED:
            n_cells = min(_MOST_CELLS, int(_CELLS_BY_ROOT * np.sqrt(people.sum())))
        return cls(sizes, scores, people, equal_cells(people, n_cells))

    @cached_property
    def _first(self) -> IntArray:
        """The place of each cell's first score, and behind the last cell how many scores there are."""
        return np.append(0, self.ends + 1)

    @cached_property
    def dealer(self) -> Dealer:
        """Deals the groups out to the people, cell by cell."""
        return Dealer(self.sizes, np.add.reduceat(self.people, self._first[:-1]))

    def pairs(self, comparison: Comparison) -> PairRows:
        """The pairs that are compared, studentised by the sizes of the groups."""
        return studentised_pairs(comparison, 1.0 / self.sizes, self.sizes)

    def measuring(self, comparison: Comparison, half_widths: FloatArray) -> Measuring:
        """Deals of the groups, each from a random stream."""
        pairs, deal = self.pairs(comparison), self.dealer.deal

        def draw(stream: np.random.Generator) -> IntArray:
            """How many people of each group, and of everyone where it is wanted, lie in each cell."""
            if comparison.compare == "between_groups":
                return deal(stream)
            return np.vstack([deal(stream), self.dealer.people])

        if self.ends.size == self.scores.size:
            return measuring_rows(draw, pairs, self.scores, half_widths)
        cells = self._cell_arrays
        windows = window_arrays(cells, half_widths)
        rows = pairs.first, pairs.second, pairs.scale

        def measure(streams: Sequence[np.random.Generator]) -> FloatArray:
            deals = [worst_of_deal(draw(stream), rows, cells, windows, stream) for stream in streams]
            return np.stack([np.concatenate(deal) for deal in deals])

        return Measuring(measure, pairs.scale, self.ends.size)

    @cached_property
    def _cell_arrays(self) -> CellArrays:
        knots = self.scores[self.ends]
        starts = np.append(self.scores[0], knots[:-1])
        before = np.append(0, np.cumsum(self.people))
        largest = np.max(self.dealer.people, where=np.diff(self._first) > 1, initial=1)
        log_factorials = np.append(0.0, np.cumsum(np.log(np.arange(1, largest + 1))))
        return CellArrays(starts, knots, self._first, self.scores, before, log_factorials, self.sizes.size)


def window_arrays(cells: CellArrays, half_widths: FloatArray) -> WindowArrays:
    """The knots that windows hold, from the start of each cell on."""
    ends = window_ends(cells.starts, cells.knots, half_widths)
    ranges = Ranges(np.arange(cells.knots.size), ends)
    levels = 1 + int(ranges.levels.max(initial=0))
    return WindowArrays(half_widths, ends, levels, ranges.places(cells.knots.size, levels))


def pools_of(counts: ScoreCounts, comparison: Comparison) -> list[Pool]:
    """A pool for each label that a criterion compares."""
    strata = strata_of(counts, comparison)
    n_pairs = len(comparison.pairs(range(len(counts.groups)))) * len(strata)
    pools = []
    for stratum in strata.values():
        everyone = Atoms.join(stratum.values())
        sizes = np.array([atoms.size for atoms in stratum.values()])
        scores = units_of(everyone.scores, counts.score_range, counts.resolution)
        pools.append(Pool.of_people(sizes, scores, everyone.rows, n_pairs))
    return pools
