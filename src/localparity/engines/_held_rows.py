"""Rows in memory, counted in the cells of a grid or by their scores, as often as asked."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from localparity._types import BoolArray, IntArray, ScoreRange
from localparity._validation import as_jobs
from localparity.counts._bounded import cell_numbers
from localparity.counts._cell_counts import CellCounts
from localparity.counts._keyed_rows import Key, KeyedRows
from localparity.counts._weights import carry
from localparity.engines._refine import CellSelection, GroupCounts

T = TypeVar("T")

_TABLE_LEVEL = 20
_MANY_ROWS = 2**17
_MOST_THREADS = 8
_HASH_BITS = 24
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: its multiples spread evenly, which makes a hash."""


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows in memory.

    Attributes
    ----------
    parts : list of KeyedRows
        The rows; no part is large, so that what is computed of it stays close by.
    keys : list of tuple
        The groups and labels.
    score_range : tuple of float
        The lowest and the highest score there can be.
    """

    parts: list[KeyedRows]
    keys: list[Key]
    score_range: ScoreRange

    @cached_property
    def size(self) -> int:
        """How many rows there are."""
        return sum(part.scores.size for part in self.parts)

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return any(part.weights is not None for part in self.parts)

    def within(self, cells: CellSelection) -> HeldRows:
        """The rows in some cells."""
        find_places, opened = placing(cells, self.score_range), opened_places(cells)

        def find(parts: list[KeyedRows]) -> list[KeyedRows]:
            found = [part.inside(find_places(part.scores), opened) for part in parts]
            return [part for part in found if part.scores.size]

        return replace(self, parts=list(chain(*self._in_threads(find))))

    def _in_threads(self, work: Callable[[list[KeyedRows]], T]) -> list[T]:
        """What `work` makes of the rows, some parts in each thread."""
        jobs = count_threads() if self.size >= _MANY_ROWS else 1
        with ThreadPoolExecutor(jobs) as threads:
            return list(threads.map(work, [self.parts[job::jobs] for job in range(jobs)]))

    def fewest_distinct(self) -> int:
        """A number of distinct scores that there are at least: those whose hashes differ."""
        marked = np.zeros(2**_HASH_BITS, dtype=bool)
        for part in self.parts:
            scores = part.scores + 0.0  # which turns -0.0 into 0.0
            bits = scores.view(f"u{scores.itemsize}").astype(np.uint64)
            marked[bits * _ODD >> np.uint64(64 - _HASH_BITS)] = True
        return int(np.count_nonzero(marked))

    def count_cells(self, level: int, within: CellSelection) -> list[GroupCounts]:
        """Count the rows, all of which lie in some cells, by the finer cells of another grid."""
        place_of, steps = _places(within), level - within.level

        def count(parts: list[KeyedRows]) -> CellCounts:
            counts = CellCounts.empty(self.keys, within.numbers.size << steps, weighted=self.weighted)
            for part in parts:
                finer = cell_numbers(part.scores, *_numbering(level, self.score_range))
                places = place_of(-(-finer >> steps)) << steps
                counts.add_at(places + (finer - 1 & (1 << steps) - 1), part)
            return counts

        first, *others = self._in_threads(count)
        for other in others:
            first.merge(other)
        counts = first.at(np.flatnonzero(first.lowest <= first.highest))
        return group_counts(counts, cell_numbers(counts.lowest, level, self.score_range))

    def count_scores(self) -> list[GroupCounts]:
        """Count the rows by their scores."""
        if not self.parts:
            return []
        return [
            GroupCounts(key, atoms.scores, atoms.rows, atoms.scores, atoms.scores, atoms.units)
            for key, atoms in KeyedRows.join(self.parts).atoms().items()
            if atoms.size
        ]


def placing(cells: CellSelection, score_range: ScoreRange) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Where among some cells each score is, and -1 where it is in none of them."""
    place_of, grid = _places(cells), _numbering(cells.level, score_range)
    return lambda scores: place_of(cell_numbers(scores, *grid))


def opened_places(cells: CellSelection) -> BoolArray:
    """True for each of some cells, and False at last, where a place of -1 leads."""
    return np.arange(cells.numbers.size + 1) < cells.numbers.size


def _numbering(level: int, score_range: ScoreRange) -> tuple[int, ScoreRange, type]:
    """What numbers the cells of a grid: its level, the score range and the dtype of the numbers."""
    return level, score_range, np.int32 if level < 31 else np.int64


def _places(cells: CellSelection) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Where among some cells each cell is, given its number, and -1 where it is not."""
    if cells.level <= _TABLE_LEVEL:
        table = np.full(2**cells.level + 1, -1, dtype=np.int32)
        table[cells.numbers] = np.arange(cells.numbers.size)
        return table.take

    numbers_and_none = np.append(cells.numbers, -1)

    def search(numbers: NDArray[Any]) -> NDArray[Any]:
        places = np.searchsorted(cells.numbers, numbers)
        return np.where(numbers_and_none[places] == numbers, places, -1)

    return search


def group_counts(cells: CellCounts, numbers: IntArray) -> list[GroupCounts]:
    """The counts in cells, given the number of each, for each group and label that has rows."""
    found = []
    for place, key in enumerate(cells.keys):
        at = np.flatnonzero(cells.rows[:, place])
        if not at.size:
            continue
        units = None
        if cells.limbs is not None:
            units = carry(np.ascontiguousarray(cells.limbs[at, place].transpose(1, 2, 0)))
        lowest, highest = cells.lowest[at] + 0.0, cells.highest[at] + 0.0
        found.append(GroupCounts(key, numbers[at], cells.rows[at, place], lowest, highest, units))
    return found


def nobody(key: Key) -> GroupCounts:
    """The counts of a group and label all of whose rows have weight 0."""
    nothing = np.empty(0)
    return GroupCounts(key, nothing, nothing.astype(np.int64), nothing, nothing)


def count_threads() -> int:
    """How many threads count rows."""
    return min(as_jobs(-1), _MOST_THREADS)
