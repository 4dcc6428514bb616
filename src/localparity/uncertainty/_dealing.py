"""Dealing people to a group at random, cell by cell: draws of the multivariate hypergeometric distribution.

Were everybody to join the group with the same probability, independently of all others, a cell's number would
be binomial, which is read off a table. Then as many people as the group has too many, picked at random, leave
it again, or as many as it lacks join. Every group of the wanted size is as likely as any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray, IntArray

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
