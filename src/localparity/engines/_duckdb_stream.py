"""Rows that stream by in batches, counted in the cells of a grid, or held where they are few."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from localparity._io._arrow import Batch
from localparity._scale import clip_to_range, representable_range
from localparity._types import BoolArray, ScoreRange
from localparity._validation import LEAST_WEIGHT, MOST_WEIGHT, as_jobs
from localparity.counts._atoms import Atoms
from localparity.counts._coarsen import cell_numbers
from localparity.counts._rows import Key, KeyedRows
from localparity.engines.protocol import CellSelection, CellTable

# Rows in memory, counted in the cells of a grid or by their scores, as often as asked.


T = TypeVar("T")

_TABLE_LEVEL = 20
_MANY_ROWS = 2**17
_MOST_THREADS = 8
_HASH_BITS = 24
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: its multiples spread evenly, which makes a hash."""


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows in memory, in parts that are small, so that what is computed of one stays close by."""

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

    def count_cells(self, level: int, within: CellSelection) -> CellTable:
        """Count the rows, all of which lie in some cells, by the finer cells of another grid."""
        place_of, steps = _places(within), level - within.level

        def count(parts: list[KeyedRows]) -> CellTable:
            table = CellTable.empty(self.keys, within.numbers.size << steps, weighted=self.weighted)
            for part in parts:
                finer = cell_numbers(part.scores, *_numbering(level, self.score_range))
                places = place_of(-(-finer >> steps)) << steps
                table.add_at(places + (finer - 1 & (1 << steps) - 1), part)
            return table

        first, *others = self._in_threads(count)
        for other in others:
            first.merge(other)
        table = first.occupied()
        return replace(table, numbers=cell_numbers(table.lowest, level, self.score_range))

    def count_scores(self) -> dict[Key, Atoms]:
        """The scores of each group and label."""
        parts = self.parts or [KeyedRows(np.empty(0), np.empty(0, dtype=np.uint8), self.keys)]
        return KeyedRows.join(parts).atoms()


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


def count_threads() -> int:
    """How many threads count rows."""
    return min(as_jobs(-1), _MOST_THREADS)


MOST_HELD = 2**25
"""The most rows in memory; of a score in single precision and a group they take 160 MB."""


class InvalidRowError(Exception):
    """Some row of a batch has a value that is missing or not valid, or a group that is not known."""


@dataclass(frozen=True, eq=False)
class RowStream:
    """The rows of a query, which streams them as often as asked, and a grid of ``2**level`` cells.

    `batches` runs the query, given what follows it in SQL. Its columns are the scores s, the weights w where
    there are any, and those that make up the group and label of a row, with the place of its value from 1 on.
    `sizes` has how many values each of the latter has, and `keys` the groups and labels in the order of these
    places. `weightless` are the keys of which a row of weight 0 was left out.
    """

    batches: Callable[[str], Generator[Batch, None, None]]
    keys: list[Key]
    sizes: list[int]
    score_range: ScoreRange
    level: int
    weightless: set[Key] = field(default_factory=set)

    def count(self, most_first: int) -> tuple[HeldRows, CellTable | None]:
        """The first rows and, unless these are all, a table of all rows by the cells of the grid."""
        with closing(self.batches("")) as batches:
            first, whole = self._first(batches, most_first)
            if whole:
                return first, None
            cells = 2**self.level + 1
            tables = [
                CellTable.empty(self.keys, cells, weighted=first.weighted) for _ in range(count_threads())
            ]
            for rows in first.parts:
                self._add(tables[0], rows)
            self._share_out(batches, [partial(self._add, table) for table in tables])
        for table in tables[1:]:
            tables[0].merge(table)
        return first, tables[0].occupied()

    def find(self, cells: CellSelection, where: str) -> HeldRows:
        """The rows in some cells of any grid, which a condition in SQL narrows down."""
        find_places, opened = placing(cells, self.score_range), opened_places(cells)
        parts: list[KeyedRows] = []

        def take(rows: KeyedRows) -> None:
            parts.append(rows.inside(find_places(rows.scores), opened))

        with closing(self.batches(where)) as batches:
            self._share_out(batches, [take] * count_threads())
        return HeldRows(parts, self.keys, self.score_range)

    def _add(self, table: CellTable, rows: KeyedRows) -> None:
        """Add rows to a table of all cells."""
        table.add_at(cell_numbers(rows.scores, self.level, self.score_range, np.int32), rows)

    def _first(self, batches: Generator[Batch, None, None], most: int) -> tuple[HeldRows, bool]:
        """The rows of the first batches, just more than so many, or all rows; and whether they are all."""
        parts: list[KeyedRows] = []
        while sum(part.scores.size for part in parts) <= most:
            batch = next(batches, None)
            if batch is None:
                return HeldRows(parts, self.keys, self.score_range), True
            parts.append(self._rows(batch))
        return HeldRows(parts, self.keys, self.score_range), False

    def _share_out(
        self, batches: Generator[Batch, None, None], takers: list[Callable[[KeyedRows], None]]
    ) -> None:
        """Give the rows of each batch to one of those that take them, each in a thread of its own."""
        lock = Lock()

        def stop() -> None:
            with lock:
                batches.close()

        def feed(taker: Callable[[KeyedRows], None]) -> None:
            try:
                while True:
                    with lock:
                        batch = next(batches, None)
                    if batch is None:
                        return
                    taker(self._rows(batch))
            except BaseException:
                stop()
                raise

        with ThreadPoolExecutor(len(takers)) as threads:
            try:
                list(threads.map(feed, takers))
            except BaseException:  # such as Ctrl-C, which the threads do not see
                stop()
                raise

    def _rows(self, batch: Batch) -> KeyedRows:
        """The rows of a batch, without those of weight 0."""
        if any(column is None for column in batch.values()):
            raise InvalidRowError
        columns: dict[str, Any] = dict(batch)
        scores, weights = columns.pop("s"), columns.pop("w", None)
        codes = np.zeros(scores.size, dtype=np.uint8)
        for size, places in zip(self.sizes, columns.values(), strict=True):
            codes = codes * size + (places - 1)
        low, high = representable_range(self.score_range, scores.dtype)
        if scores.size and not (scores.min() >= low and scores.max() <= high):  # NaN is neither
            raise InvalidRowError
        scores = clip_to_range(scores, self.score_range)
        if self.score_range != (0.0, 1.0):
            scores = scores.astype(np.float64, copy=False)
        rows = KeyedRows(scores, codes, self.keys, weights)
        if weights is None or not weights.size:
            return rows
        positive = weights > 0.0
        if not positive.all():
            self.weightless.update(self.keys[code] for code in np.unique(codes[~positive]))
            rows = rows.take(np.flatnonzero(positive))
        if not (weights.min() >= 0.0 and weights.max() <= MOST_WEIGHT):
            raise InvalidRowError
        if (weights[positive] < LEAST_WEIGHT).any():
            raise InvalidRowError
        return rows
