"""The people that resamples are drawn from: the groups of one stratum on common scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray, Group, IntArray, ScoreRange
from localparity.counts._clusters import ClusteredRows
from localparity.counts._comparison import EVERYONE, Comparison
from localparity.counts._score_counts import ScoreCounts, Stratum, strata_of
from localparity.metrics._gap_curve import units_of

MOST_KNOTS = 2**15
LEAST_KNOTS = 2**8
_PAIRS_BY_KNOTS = 2**24
"""Resamples are seen at as many thresholds as this many differences of two distributions allow for."""

_MOST_ROWS_DEALT = 10**9
"""More than this numpy does not deal out without replacement."""

_PSEUDO_ROWS = 2.0
"""Rows that a deviation supposes at either end of the scores, as Agresti and Coull do for one proportion."""


class PairRows(NamedTuple):
    """The pairs that are compared, by the rows of their two sides, and how a pair's gap is studentised.

    Attributes
    ----------
    first, second : ndarray
        The row of each pair's first and second side; everyone is the last row.
    scale : ndarray
        What a gap is multiplied with: one over the square root of ``1 / n_a + 1 / n_b``, or the same for a
        group and everyone.
    """

    first: IntArray
    second: IntArray
    scale: FloatArray


@dataclass(frozen=True, eq=False)
class Pool:
    """The groups of one stratum on the distinct scores of all of them together.

    Attributes
    ----------
    unit_knots : ndarray
        The distinct scores, as fractions of the score range.
    weights : ndarray
        For each group, the weight at each knot; without weights, its rows there.
    squares : ndarray
        For each group, the sum of the squared weights at each knot.
    rows : ndarray
        For each group, its rows at each knot.
    clusters : ClusteredRows or None
        The rows one by one, where several belong to one cluster; their scores are places among the knots.
    """

    unit_knots: FloatArray
    weights: NDArray[Any]
    squares: NDArray[Any]
    rows: IntArray
    clusters: ClusteredRows | None = None

    @classmethod
    def of_rows(cls, unit_knots: FloatArray, rows: IntArray) -> Pool:
        """Rows that weigh 1 and are independent."""
        return cls(unit_knots, rows, rows, rows)

    @classmethod
    def of_stratum(
        cls,
        stratum: Stratum,
        score_range: ScoreRange,
        resolution: float,
        clusters: ClusteredRows | None = None,
    ) -> Pool:
        """Lay the groups of a stratum on their common scores."""
        knots = np.unique(np.concatenate([atoms.scores for atoms in stratum.values()]))
        weighted = any(atoms.units is not None for atoms in stratum.values())
        shape = (len(stratum), knots.size)
        rows = np.zeros(shape, dtype=np.int64)
        weights, squares = (np.zeros(shape) for _ in range(2)) if weighted else (rows, rows)
        for group, atoms in enumerate(stratum.values()):
            places = np.searchsorted(knots, atoms.scores)
            rows[group, places] = atoms.rows
            if weighted:
                weights[group, places], squares[group, places] = atoms.weights, atoms.squares
        if clusters is not None:
            clusters = replace(clusters, scores=np.searchsorted(knots, clusters.scores))
        unit_knots = units_of(knots, score_range, resolution)
        return cls(unit_knots, weights, squares, rows, clusters)

    @property
    def exchangeable(self) -> bool:
        """Whether all rows weigh 1 and are independent, so that parity lets the groups be dealt out anew."""
        return self.weights is self.rows and self.clusters is None

    @cached_property
    def sizes(self) -> IntArray:
        """The rows of each group."""
        return np.asarray(self.rows.sum(axis=1))

    @cached_property
    def totals(self) -> FloatArray:
        """The weight of each group."""
        return np.asarray(self.weights.sum(axis=1), dtype=np.float64)

    def coarsened(self, most_knots: int) -> Pool:
        """The pool on no more than about `most_knots` knots, between which about as many people lie.

        What lies between two kept knots is counted at the upper one, so the distributions are the same at
        every kept knot. Sums of hypergeometric counts over neighbouring knots are hypergeometric counts, and
        those of normal deviations normal ones: drawing from the coarser pool is drawing from all people and
        looking at fewer thresholds, nothing less.

        Examples
        --------
        >>> rows = np.array([[2, 0, 1, 1], [1, 1, 2, 0]])
        >>> coarse = Pool.of_rows(np.array([0.1, 0.2, 0.3, 0.4]), rows).coarsened(2)
        >>> coarse.unit_knots, coarse.weights.tolist()
        (array([0.2, 0.4]), [[2, 2], [2, 2]])
        """
        if self.unit_knots.size <= most_knots:
            return self
        below = (np.cumsum(self.weights, axis=1) / self.totals[:, None]).mean(axis=0)
        cell = np.ceil(below * most_knots - 1e-9)
        ends = np.flatnonzero(np.append(cell[1:] > cell[:-1], True))
        begins = np.append(0, ends[:-1] + 1)
        rows, weights, squares = (
            np.add.reduceat(each, begins, axis=1) for each in (self.rows, self.weights, self.squares)
        )
        if self.weights is self.rows:
            weights = squares = rows
        clusters = self.clusters
        if clusters is not None:
            clusters = replace(clusters, scores=np.searchsorted(ends, clusters.scores))
        return Pool(self.unit_knots[ends], weights, squares, rows, clusters)

    def distributions(self, weights: NDArray[Any], comparison: Comparison) -> FloatArray:
        """The groups' cumulative distributions under some weights, and everyone's last where it is wanted."""
        if comparison.compare == "to_overall":
            weights = np.vstack([weights, weights.sum(axis=0)])
        below = np.cumsum(weights, axis=1, dtype=np.float64)
        below /= below[:, -1:].copy()
        return below

    # Parity: the groups are dealt to the people at random.

    @cached_property
    def _knots_of_rows(self) -> IntArray:
        return np.repeat(np.arange(self.unit_knots.size), self.rows.sum(axis=0))

    @cached_property
    def _first_cells(self) -> IntArray:
        """Of each row, in the order of its group, the place of the group's first knot among all cells."""
        return np.repeat(np.arange(self.sizes.size) * self.unit_knots.size, self.sizes)

    def dealt(self, comparison: Comparison, rng: np.random.Generator) -> FloatArray:
        """The distributions of the groups after their people were dealt out anew, each keeping its size."""
        return self.distributions(self.deal(rng), comparison)

    def deal(self, rng: np.random.Generator) -> IntArray:
        """How many rows of each group lie at each knot after a random deal."""
        left = self.rows.sum(axis=0)
        if int(left.sum()) <= 4 * self.rows.size:
            # Row by row, where rows are few to a cell.
            cells = self._first_cells + rng.permutation(self._knots_of_rows)
            return np.bincount(cells, minlength=self.rows.size).reshape(self.rows.shape)
        if left.sum() >= _MOST_ROWS_DEALT:
            # As from an endless pool, which gives the gap between two groups the same distribution.
            shares = left / left.sum()
            return np.stack([rng.multinomial(int(size), shares) for size in self.sizes])
        dealt = np.empty_like(self.rows)
        for group, size in enumerate(self.sizes[:-1]):
            dealt[group] = rng.multivariate_hypergeometric(left, int(size), method="marginals")
            left = left - dealt[group]
        dealt[-1] = left
        return dealt

    # Sampling error: the rows' influence on each distribution, under random signs and sizes.

    @cached_property
    def effective_sizes(self) -> FloatArray:
        """How many independent rows of one weight would be as precise, were a cluster's rows all alike."""
        squares = self.squares.sum(axis=1) if self.clusters is None else self.clusters.squares
        return np.asarray(self.totals**2 / squares, dtype=np.float64)

    @cached_property
    def inflation(self) -> FloatArray:
        """What a group's deviations are multiplied with, since their size is itself an estimate.

        Student's quantile over the normal one, at the degrees of freedom that Satterthwaite gives a sum of
        squares: the number of rows that carry it.
        """
        from scipy.stats import norm, t

        if self.clusters is None:
            fourth = np.divide(self.squares**2, self.rows, out=np.zeros(self.rows.shape), where=self.rows > 0)
            degrees = self.squares.sum(axis=1) ** 2 / fourth.sum(axis=1)
        else:
            degrees = self.clusters.degrees
        return np.asarray(t.ppf(0.975, np.maximum(degrees, 1.0)) / norm.ppf(0.975))

    @cached_property
    def _pseudo_weights(self) -> FloatArray:
        """For each group, the weight supposed at either end of the scores: of rows as heavy as any seen."""
        if self.clusters is not None:
            return _PSEUDO_ROWS * self.clusters.largest
        heaviest = np.divide(self.squares, self.weights, out=np.zeros(self.rows.shape), where=self.rows > 0)
        return np.asarray(_PSEUDO_ROWS * heaviest.max(axis=1))

    def deviated(self, comparison: Comparison, rng: np.random.Generator) -> FloatArray:
        r"""How far each distribution may be from the true one: a draw of the multiplier bootstrap.

        A group's distribution is :math:`F = \sum w_i 1(s_i \le y) / \sum w_i`, to which row i contributes
        :math:`w_i (1(s_i \le y) - F(y)) / \sum w_i` in first order; rows of one cluster contribute together.
        Each contribution is multiplied with an independent standard normal number. Two rows as heavy as any
        at either end of the scores keep a group of few or equal scores from looking as if it were known.
        """
        supposed = self._pseudo_weights
        ends = supposed / np.sqrt(_PSEUDO_ROWS) * rng.standard_normal((2, supposed.size))
        moved = np.cumsum(self._multiplied(rng), axis=1) + ends[0][:, None]
        in_all = moved[:, -1] + ends[1]
        totals, shares = self.totals, self._padded_shares
        if comparison.compare == "to_overall":
            moved = np.vstack([moved, moved.sum(axis=0)])
            in_all, totals = np.append(in_all, in_all.sum()), np.append(totals, totals.sum())
        else:
            shares = shares[:-1]
        return np.asarray((moved - shares * in_all[:, None]) / totals[:, None], dtype=np.float64)

    @cached_property
    def _padded_shares(self) -> FloatArray:
        """The distributions of the groups, and of everyone, with the rows supposed at either end."""
        supposed = self._pseudo_weights
        below = np.cumsum(self.weights, axis=1) + supposed[:, None]
        below = np.vstack([below, below.sum(axis=0)])
        totals = self.totals + 2.0 * supposed
        return np.asarray(below / np.append(totals, totals.sum())[:, None], dtype=np.float64)

    def _multiplied(self, rng: np.random.Generator) -> FloatArray:
        """The sum of multiplied weights at each knot."""
        if self.clusters is None:
            drawn = rng.standard_normal(self.squares.shape) * self._deviations
        else:
            drawn = self.clusters.multiplied(self.unit_knots.size, rng)
        return np.asarray(drawn * self.inflation[:, None])

    @cached_property
    def _deviations(self) -> FloatArray:
        return np.asarray(np.sqrt(self.squares), dtype=np.float64)

    def pairs(self, comparison: Comparison, *, deviated: bool = False) -> PairRows:
        """The pairs that are compared, studentised as what is dealt or as what is `deviated`."""
        groups = range(self.sizes.size)
        row_of: dict[Group, int] = {EVERYONE: len(groups), **{group: group for group in groups}}
        pairs = [(row_of[a], row_of[b]) for a, b in comparison.pairs(groups)]
        first, second = np.array(pairs, dtype=np.int64).T
        each = 1.0 / self.sizes
        if deviated:
            # The rows' contributions, inflated, and those of the rows supposed at the ends.
            supposed = 2.0 * _PSEUDO_ROWS * (self._pseudo_weights / (_PSEUDO_ROWS * self.totals)) ** 2
            each = self.inflation**2 / self.effective_sizes + supposed
        if comparison.compare == "to_overall":
            # F_g - F_all is (1 - p_g) F_g less p_h F_h of every other group.
            shares = self.totals / self.totals.sum()
            variances = (1.0 - 2.0 * shares) * each + (shares**2 * each).sum()
        else:
            variances = each[first] + each[second]
        return PairRows(first, second, 1.0 / np.sqrt(variances))


def pools_of(counts: ScoreCounts, comparison: Comparison) -> list[Pool]:
    """A pool for each label that a criterion compares, coarse enough to be drawn from often."""
    strata = strata_of(counts, comparison)
    pairs = len(comparison.pairs(range(len(counts.groups)))) * len(strata)
    knots = int(np.clip(_PAIRS_BY_KNOTS // pairs, LEAST_KNOTS, MOST_KNOTS))
    pools = []
    for label, stratum in strata.items():
        clusters = None if counts.clusters is None else counts.clusters.among(list(stratum), label)
        pool = Pool.of_stratum(stratum, counts.score_range, counts.resolution, clusters)
        pools.append(pool.coarsened(knots))
    return pools
