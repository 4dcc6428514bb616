"""The people that groups are dealt to under parity: all groups of one stratum together, in cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray, IntArray
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import ScoreCounts, strata_of
from localparity.metrics._gap_curve import units_of
from localparity.uncertainty._kernels import CellArrays, WindowArrays, worst_of_deal
from localparity.uncertainty._pairs import Measure, PairRows, Ranges, measuring_rows, pair_rows, window_ends

# Dealing people to a group at random, cell by cell: draws of the multivariate hypergeometric distribution.
#
# Were everybody to join the group with the same probability, independently of all others, a cell's number
# would be binomial, which is read off a table. Then as many people as the group has too many, picked at
# random, leave it again, or as many as it lacks join. Every group of the wanted size is as likely as any
# other.


_MOST_IN_TABLE = 512
"""Cells of more people than this are drawn by numpy's own binomial."""

_BINS = 4096


@dataclass(frozen=True, eq=False)
class BinomialTable:
    """Draws how many of a cell's people join, each with the same probability.

    Attributes
    ----------
    share : float
        The probability.
    cumulative : ndarray
        For each size of a cell (rows) the probability of at most 0, 1, 2, ... people; the row's number is
        added to it, so that all rows together ascend.
    known : ndarray
        For each size, and for each of 4,096 equal parts of [0, 1), how many people a uniform number from
        there stands for, -1 where that depends on the number.
    """

    share: float
    cumulative: FloatArray
    known: NDArray[np.int16]

    @classmethod
    def of_sizes(cls, share: float, sizes: IntArray) -> BinomialTable:
        """The table for cells of some sizes; the rows of other sizes stay empty."""
        most = int(sizes.max(initial=0))
        of_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
        joined = np.arange(most + 1)
        cumulative = np.ones((most + 1, most + 1))
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
        return cls(share, cumulative + np.arange(most + 1)[:, None], known)

    def draw(self, sizes: IntArray, rng: np.random.Generator) -> IntArray:
        """How many people of cells of these sizes join."""
        uniform = rng.random(sizes.size)
        parts = (uniform * _BINS).astype(np.int64)
        found = self.known.ravel().take(sizes * _BINS + parts, mode="clip").astype(np.int64)
        open_ones = np.flatnonzero(found < 0)
        among = sizes[open_ones]
        places = np.searchsorted(self.cumulative.ravel(), among + uniform[open_ones], side="right")
        found[open_ones] = np.minimum(places - among * len(self.cumulative), among)
        return found


def binomial(table: BinomialTable, sizes: IntArray, rng: np.random.Generator) -> IntArray:
    """How many people of each cell join, of small ones by the table and of large ones one by one."""
    large = np.flatnonzero(sizes > _MOST_IN_TABLE)
    if not large.size:
        return table.draw(sizes, rng)
    found = table.draw(np.where(sizes > _MOST_IN_TABLE, 0, sizes), rng)
    found[large] = rng.binomial(sizes[large], table.share)
    return found


def picked(people: IntArray, number: int, rng: np.random.Generator) -> IntArray:
    """How many of so many people, picked at random, come from each cell.

    Examples
    --------
    >>> picked(np.array([2, 0, 3]), 5, np.random.default_rng(0))
    array([2, 0, 3])
    """
    below = np.cumsum(people)
    rows = rng.choice(int(below[-1]), number, replace=False, shuffle=False)
    rows.sort()  # looked up faster in order
    return np.bincount(np.searchsorted(below, rows, side="right"), minlength=people.size)


@dataclass(frozen=True, eq=False)
class Dealer:
    """Deals the people of some cells out to groups of given sizes.

    Attributes
    ----------
    sizes : ndarray
        The people of each group.
    people : ndarray
        The people of each cell.
    tables : tuple of BinomialTable
        For each group but the last, the share that it has of those who are not in a group before it.
    """

    sizes: IntArray
    people: IntArray
    tables: tuple[BinomialTable, ...]

    @classmethod
    def of(cls, sizes: IntArray, people: IntArray) -> Dealer:
        """Set up the tables."""
        small = np.append(people[people <= _MOST_IN_TABLE], 0)
        # Once some are dealt out, a cell may have any smaller number of people left.
        smaller = np.arange(1 + (small.max() if small.size > people.size else _MOST_IN_TABLE))
        left = np.cumsum(sizes[::-1])[::-1]
        found = [
            BinomialTable.of_sizes(float(size / among), smaller if group else small)
            for group, (size, among) in enumerate(zip(sizes[:-1], left[:-1], strict=True))
        ]
        return cls(sizes, people, tuple(found))

    def deal(self, rng: np.random.Generator) -> IntArray:
        """How many people of each group (rows) come to lie in each cell."""
        dealt = np.empty((self.sizes.size, self.people.size), dtype=np.int64)
        left = self.people
        for group, table in enumerate(self.tables):
            joined = binomial(table, left, rng)
            surplus = int(joined.sum() - self.sizes[group])
            if surplus > 0:
                joined -= picked(joined, surplus, rng)
            elif surplus < 0:
                joined += picked(left - joined, -surplus, rng)
            dealt[group] = joined
            left = left - joined
        dealt[-1] = left
        return dealt


_CELLS_BY_ROOT = 5.0
"""So many cells for the square root of the people: what a cell may hide is small beside what chance does."""

_MOST_CELLS = 2**13

MOST_MEASURED = 2**14
"""Of no more scores than this, counted for each pair, every one is a cell of its own."""


def cell_ends(mass: NDArray[np.number], n_cells: int) -> IntArray:
    """The last place of each of about so many cells, in which about as much mass lies.

    A score that alone has as much as a cell should is a cell of its own.

    Examples
    --------
    >>> cell_ends(np.array([1, 1, 1, 1, 9, 1, 1, 1]), 4)
    array([3, 4, 7])
    """
    if mass.size <= n_cells:
        return np.arange(mass.size)
    size = mass.sum() / n_cells
    cell = np.ceil(np.cumsum(mass) / size - 1e-9)
    alone = mass >= size
    return np.flatnonzero(np.append((cell[1:] > cell[:-1]) | alone[1:] | alone[:-1], True))


@dataclass(frozen=True, eq=False)
class Pool:
    """People by their score, and the sizes of the groups that are dealt to them.

    Attributes
    ----------
    sizes : ndarray
        The people of each group.
    scores : ndarray
        The distinct scores, as fractions of the score range.
    people : ndarray
        How many people have each.
    ends : ndarray
        The place of the last score of each cell.
    """

    sizes: IntArray
    scores: FloatArray
    people: IntArray
    ends: IntArray

    @classmethod
    def of_people(cls, sizes: IntArray, scores: FloatArray, people: IntArray, n_pairs: int) -> Pool:
        """Choose the cells: every score its own where there are few, else a few thousand."""
        n_cells = scores.size
        if n_cells * n_pairs > MOST_MEASURED:
            n_cells = min(_MOST_CELLS, int(_CELLS_BY_ROOT * np.sqrt(people.sum())))
        return cls(sizes, scores, people, cell_ends(people, n_cells))

    @cached_property
    def _first(self) -> IntArray:
        """The place of each cell's first score, and behind the last cell how many scores there are."""
        return np.append(0, self.ends + 1)

    @cached_property
    def dealer(self) -> Dealer:
        """Deals the groups out to the people, cell by cell."""
        return Dealer.of(self.sizes, np.add.reduceat(self.people, self._first[:-1]))

    def pairs(self, comparison: Comparison) -> PairRows:
        """The pairs that are compared, studentised by the sizes of the groups."""
        return pair_rows(comparison, 1.0 / self.sizes, self.sizes)

    def measuring(self, comparison: Comparison, reach: FloatArray) -> Measure:
        """What measures MCDP of the worst pair in resamples, each from a random stream."""
        if self.ends.size == self.scores.size:
            return self._measuring_scores(comparison, reach)
        return self._measuring_cells(comparison, reach)

    @property
    def n_knots(self) -> int:
        """How many thresholds a resample is measured at, at first."""
        return self.ends.size

    def _measuring_scores(self, comparison: Comparison, reach: FloatArray) -> Measure:
        pairs = self.pairs(comparison)
        ranges = Ranges(np.arange(self.scores.size), window_ends(self.scores, self.scores, reach))
        return measuring_rows(self._drawing(comparison), pairs, ranges)

    def _measuring_cells(self, comparison: Comparison, reach: FloatArray) -> Measure:
        first, second, scale = self.pairs(comparison)
        cells = self._cell_arrays
        windows = window_arrays(cells, reach)
        draw = self._drawing(comparison)

        def one(stream: np.random.Generator) -> FloatArray:
            return np.concatenate(worst_of_deal(draw(stream), (first, second, scale), cells, windows, stream))

        return lambda streams: np.stack([one(stream) for stream in streams])

    def _drawing(self, comparison: Comparison) -> Callable[[np.random.Generator], IntArray]:
        """What draws how many people of each group, and of everyone where it is wanted, lie in each cell."""
        if comparison.compare == "between_groups":
            return self.dealer.deal
        return lambda rng: np.vstack([self.dealer.deal(rng), self.dealer.people])

    @cached_property
    def _cell_arrays(self) -> CellArrays:
        knots = self.scores[self.ends]
        starts = np.append(self.scores[0], knots[:-1])
        before = np.append(0, np.cumsum(self.people))
        largest = np.max(self.dealer.people, where=np.diff(self._first) > 1, initial=1)
        log_factorials = np.append(0.0, np.cumsum(np.log(np.arange(1, largest + 1))))
        return CellArrays(starts, knots, self._first, self.scores, before, log_factorials, self.sizes.size)


def window_arrays(cells: CellArrays, reach: FloatArray) -> WindowArrays:
    """The knots that windows hold, from the start of each cell on."""
    ends = window_ends(cells.starts, cells.knots, reach)
    ranges = Ranges(np.arange(cells.knots.size), ends)
    levels = 1 + int(ranges.levels.max(initial=0))
    return WindowArrays(reach, ends, levels, ranges.places(cells.knots.size, levels))


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
