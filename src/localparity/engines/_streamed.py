"""Rows that stream by in batches, counted in the cells of a grid; those of a few cells are kept."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple, Protocol

import numpy as np

from localparity._io._arrow import Batch
from localparity._types import ScoreRange
from localparity._validation import LEAST_WEIGHT, MOST_WEIGHT, as_jobs, at_ends, held_ends
from localparity.counts._bounded import cell_numbers
from localparity.counts._cell_counts import CellCounts
from localparity.counts._keyed_rows import Key, KeyedRows
from localparity.engines._refine import CellSelection

_MOST_THREADS = 8


class InvalidRowError(Exception):
    """Some row of a batch has a value that is missing or not valid, or a group that is not known."""


class StreamCounts(NamedTuple):
    """The first rows of a stream and, where these are not all, the counts of all rows in cells."""

    first: KeyedRows
    cells: CellCounts | None


class _Sink(Protocol):
    """What takes rows, in a thread of its own."""

    def add(self, rows: KeyedRows) -> None: ...


@dataclass(frozen=True, eq=False)
class RowStream:
    """The rows of a query, which streams them as often as asked.

    Attributes
    ----------
    batches : callable
        Runs the query, given what follows it in SQL: the scores s, the codes k and, where there are weights,
        w.
    keys : list of tuple
        The group and label that each code stands for.
    score_range : tuple of float
        The lowest and the highest score there can be.
    weightless : set of tuple
        The groups and labels of which a row of weight 0 was left out.
    """

    batches: Callable[[str], Generator[Batch]]
    keys: list[Key]
    score_range: ScoreRange
    weightless: set[Key] = field(default_factory=set)

    def count(self, level: int, most_held: int) -> StreamCounts:
        """Count all rows in the cells of a grid, unless there are so few that the first rows are all."""
        with closing(self.batches("")) as batches:
            held, size = [self._nothing], 0
            while size <= most_held:
                batch = next(batches, None)
                if batch is None:
                    return StreamCounts(KeyedRows.join(held), None)
                held.append(self._rows(batch))
                size += held[-1].scores.size
            first = KeyedRows.join(held[1:])
            sinks = [_Counting(self, level, first) for _ in range(_threads())]
            sinks[0].add(first)
            self._fill(sinks, batches)
        for sink in sinks[1:]:
            sinks[0].cells.merge(sink.cells)
        return StreamCounts(first, sinks[0].cells)

    def find(self, within: CellSelection, where: str) -> KeyedRows:
        """The rows in some cells, to which a condition in SQL may lead."""
        sinks = [_Finding(self, within) for _ in range(_threads())]
        with closing(self.batches(where)) as batches:
            self._fill(sinks, batches)
        found = [rows for sink in sinks for rows in sink.found]
        return KeyedRows.join(found or [self._nothing])

    def _fill(self, sinks: Sequence[_Sink], batches: Generator[Batch]) -> None:
        """Give each batch to one of the sinks; they take them at the same time."""
        lock = Lock()

        def fill(sink: _Sink) -> None:
            try:
                while True:
                    with lock:
                        batch = next(batches, None)
                    if batch is None:
                        return
                    sink.add(self._rows(batch))
            except BaseException:
                with lock:
                    batches.close()  # which ends the other threads, too
                raise

        with ThreadPoolExecutor(len(sinks)) as threads:
            list(threads.map(fill, sinks))

    def _rows(self, batch: Batch) -> KeyedRows:
        """The rows of a batch, without those of weight 0."""
        scores, codes, weights = batch["s"], batch["k"], batch.get("w")
        if scores is None or codes is None or ("w" in batch and weights is None):
            raise InvalidRowError
        low, high = held_ends(self.score_range, scores.dtype)
        if scores.size and not (scores.min() >= low and scores.max() <= high):  # NaN is neither
            raise InvalidRowError
        scores = at_ends(scores, self.score_range)
        if self.score_range != (0.0, 1.0):
            scores = scores.astype(np.float64, copy=False)
        rows = KeyedRows(scores, codes, self.keys, weights)
        if weights is None or not weights.size:
            return rows
        if not (weights.min() >= 0.0 and weights.max() <= MOST_WEIGHT):
            raise InvalidRowError
        if not weights.all():
            self.weightless.update(self.keys[code] for code in np.unique(codes[weights == 0.0]))
            rows = rows.take(np.flatnonzero(weights))
        if (weights[weights > 0.0] < LEAST_WEIGHT).any():
            raise InvalidRowError
        return rows

    @property
    def _nothing(self) -> KeyedRows:
        return KeyedRows(np.empty(0), np.empty(0, dtype=np.uint8), self.keys)


class _Counting:
    """Counts rows, weighted as some are, in the cells of a grid."""

    def __init__(self, stream: RowStream, level: int, like: KeyedRows) -> None:
        self.cells = CellCounts.empty(stream.keys, 2**level + 1, weighted=like.weights is not None)
        self._grid = level, stream.score_range

    def add(self, rows: KeyedRows) -> None:
        self.cells.add_at(cell_numbers(rows.scores, *self._grid), rows)


class _Finding:
    """Keeps the rows in some cells."""

    def __init__(self, stream: RowStream, within: CellSelection) -> None:
        self.found: list[KeyedRows] = []
        self._grid = within.level, stream.score_range
        self._chosen = np.zeros(2**within.level + 1, dtype=bool)
        self._chosen[within.numbers] = True

    def add(self, rows: KeyedRows) -> None:
        inside = np.flatnonzero(self._chosen[cell_numbers(rows.scores, *self._grid)])
        if inside.size:
            self.found.append(rows.take(inside))


def _threads() -> int:
    return min(as_jobs(-1), _MOST_THREADS)
