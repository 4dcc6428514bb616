"""Rows counted in cells that ascend with their scores, without a sort."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from localparity._types import BoolArray, FloatArray, IntArray, ScoreRange
from localparity.counts._atoms import Atoms
from localparity.counts._bounded import ordinals
from localparity.counts._cell_kernels import add_weights, add_weights_at, count_rows, find_rows
from localparity.counts._cells import Cells
from localparity.counts._keyed_rows import Key, KeyedRows
from localparity.counts._score_counts import ScoreCounts, on_cells
from localparity.counts._sorting import sort_rows
from localparity.counts._weights import LIMBS, Units, carry, to_floats

T = TypeVar("T")

_SAMPLED = 1024
_MANY_ROWS = 2**17
"""With fewer rows, starting threads takes longer than they save."""


class Grid(NamedTuple):
    """Which cell a score lies in: evenly over the scores or, with a shift, over their bits.

    What lies beyond the first or the last cell is counted with it. Some of the cells may be cut again, each
    evenly into `parts`; only scores in these then have a cell.
    """

    low: float
    scale: float
    last: float
    first: np.uint64 = np.uint64(0)
    shift: int = -1
    parts: int = 0
    place: IntArray = np.empty(0, dtype=np.int64)
    lows: FloatArray = np.empty(0)
    scales: FloatArray = np.empty(0)

    @classmethod
    def over(cls, scores: NDArray[Any], cells: int) -> Grid:
        """A grid of so many cells on a sample of the scores; over bits where that crowds them less.

        Examples
        --------
        >>> Grid.over(np.linspace(0.0, 1.0, 9), cells=4)[:5]
        (0.0, 4.0, 3.0, np.uint64(0), -1)
        >>> Grid.over(10.0 ** np.arange(-300.0, 0.0), cells=16).shift
        58
        """
        sample = np.sort(scores[:: max(1, scores.size // _SAMPLED)]).astype(np.float64)
        sample = sample[np.diff(sample, prepend=-np.inf) > 0.0]
        low, high = sample[:1], sample[-1:]
        even = cls(float(low[0]), float(_scales(cells, low, high)[0]), cells - 1.0)
        first, last = ordinals(np.concatenate([low, high])).view(np.uint64) ^ np.uint64(2**63)
        shift = max(0, int(last - first).bit_length() - cells.bit_length() + 1)
        by_bits = even._replace(first=first, shift=shift)
        if even.scale == 0.0 or 2 * by_bits._most_in_a_cell(sample) < even._most_in_a_cell(sample):
            return by_bits
        return even

    def _most_in_a_cell(self, scores: FloatArray) -> int:
        """How many of some scores, ascending, lie in the cell with most of them."""
        cells: NDArray[Any] = (scores - self.low) * self.scale
        if self.shift >= 0:
            above = (ordinals(scores).view(np.uint64) ^ np.uint64(2**63)) - self.first
            cells = above >> np.uint64(self.shift)
        cells = np.minimum(cells.astype(np.int64), int(self.last))
        return int(np.diff(np.flatnonzero(np.diff(cells, prepend=-1, append=-1))).max())

    def cut(self, cells: CellCounts, opened: BoolArray, parts: int) -> Grid:
        """The same grid, with some cells cut again and all others left out."""
        numbers = cells.numbers[opened]
        place = np.full(int(cells.numbers[-1]) + 1, -1)
        place[numbers] = np.arange(numbers.size)
        lows, highs = cells.lowest[opened], cells.highest[opened]
        return self._replace(parts=parts, place=place, lows=lows, scales=_scales(parts - 0.5, lows, highs))


def _scales(cells: float, lows: FloatArray, highs: FloatArray) -> FloatArray:
    """How many cells there are to a unit of scores; 0, which makes one cell, where a float cannot say."""
    with np.errstate(over="ignore", divide="ignore"):
        scales = cells / (highs - lows)
    return np.where(np.isfinite(scales), scales, 0.0)


@dataclass(frozen=True, eq=False)
class CellCounts:
    """The rows of all groups and labels, counted in the same cells of scores, which ascend.

    Attributes
    ----------
    keys : list of tuple
        The groups and labels.
    numbers : ndarray
        The number of each cell in the grid; a cell without rows is left out.
    lowest, highest : ndarray
        The lowest and the highest score in each cell.
    rows : ndarray of shape (cells, keys)
        The rows in each cell.
    limbs : ndarray of shape (cells, keys, 2, limbs) or None
        Their weight and squared weight, in the whole units of `localparity.counts._weights`; None where every
        row weighs 1.
    """

    keys: list[Key]
    numbers: IntArray
    lowest: FloatArray
    highest: FloatArray
    rows: IntArray
    limbs: IntArray | None = None

    @classmethod
    def of(cls, rows: KeyedRows, grid: Grid, cells: int, n_jobs: int = 1) -> CellCounts:
        """Count rows in no more than so many cells; the same counts whatever the number of jobs."""

        def count(part: KeyedRows) -> CellCounts:
            return cls.empty(part.keys, cells, weighted=part.weights is not None).add(part, grid)

        first, *others = in_parts(count, rows, n_jobs)
        for other in others:
            first.merge(other)
        return first.occupied()

    @classmethod
    def empty(cls, keys: list[Key], cells: int, *, weighted: bool) -> CellCounts:
        """Cells without rows."""
        lowest, highest = np.full(cells, np.inf), np.full(cells, -np.inf)
        shape = (cells, len(keys))
        limbs = np.zeros((*shape, 2, LIMBS), dtype=np.int64) if weighted else None
        return cls(keys, np.arange(cells), lowest, highest, np.zeros(shape, dtype=np.int64), limbs)

    @classmethod
    def of_scores(cls, rows: KeyedRows) -> CellCounts:
        """Count rows by their scores: every score is a cell."""
        n_keys = len(rows.keys)
        carried = rows.codes if rows.weights is None else np.arange(rows.codes.size)
        scores, carried = sort_rows(rows.scores, carried)
        begins = np.append(True, scores[1:] != scores[:-1])
        distinct = scores[begins].astype(np.float64) + 0.0  # which turns -0.0 into 0.0
        codes = carried if rows.weights is None else rows.codes[carried]
        places = (np.cumsum(begins) - 1) * n_keys + codes
        shape = (distinct.size, n_keys)
        counted = np.bincount(places, minlength=distinct.size * n_keys).reshape(shape)
        limbs = None
        if rows.weights is not None:
            limbs = np.zeros((distinct.size * n_keys, 2, LIMBS), dtype=np.int64)
            add_weights_at(places, rows.weights[carried], limbs)
            limbs = limbs.reshape(*shape, 2, LIMBS)
        return cls(rows.keys, np.arange(distinct.size), distinct, distinct, counted, limbs)

    def add(self, rows: KeyedRows, grid: Grid) -> CellCounts:
        """Add rows to the counts."""
        count_rows(rows.scores, rows.codes, grid, self.rows, self.lowest, self.highest)
        if self.limbs is not None and rows.weights is not None:
            add_weights(rows.scores, rows.codes, rows.weights, grid, self.limbs)
        return self

    def add_at(self, cells: IntArray, rows: KeyedRows) -> None:
        """Add rows to the counts, given the cell of each."""
        # Imported here: numba is not loaded with the package.
        from localparity.counts._cell_kernels import add_weights_at, count_at

        count_at(cells, rows.scores, rows.codes, self.rows, self.lowest, self.highest)
        if self.limbs is not None and rows.weights is not None:
            places = cells.astype(np.int64) * len(self.keys) + rows.codes
            add_weights_at(places, rows.weights, self.limbs.reshape(-1, 2, LIMBS))

    def merge(self, other: CellCounts) -> None:
        """Add the counts of other rows in the same cells."""
        self.rows[:] += other.rows
        np.minimum(self.lowest, other.lowest, out=self.lowest)
        np.maximum(self.highest, other.highest, out=self.highest)
        if self.limbs is not None and other.limbs is not None:
            self.limbs[:] += other.limbs

    def occupied(self) -> CellCounts:
        """The cells that have rows."""
        return self.at(np.flatnonzero(self.lowest <= self.highest))

    def at(self, cells: IntArray | BoolArray) -> CellCounts:
        """Some of the cells."""
        limbs = None if self.limbs is None else self.limbs[cells]
        ends = self.lowest[cells], self.highest[cells]
        return CellCounts(self.keys, self.numbers[cells], *ends, self.rows[cells], limbs)

    def with_finer(self, opened: BoolArray, finer: CellCounts) -> CellCounts:
        """The counts with some cells replaced by finer ones of the same rows."""
        kept = self.at(~opened)
        order = np.argsort(np.concatenate([kept.highest, finer.highest]), kind="stable")

        def joined(name: str) -> Any:
            return np.concatenate([getattr(kept, name), getattr(finer, name)])[order]

        limbs = None if self.limbs is None else joined("limbs")
        # Numbers are those of the finer cells' grid; no row is looked for in the others again.
        numbers = np.concatenate([np.full(kept.numbers.size, -1), finer.numbers])[order]
        return CellCounts(self.keys, numbers, joined("lowest"), joined("highest"), joined("rows"), limbs)

    @cached_property
    def known(self) -> BoolArray:
        """Whether all rows of a cell have one score."""
        return np.asarray(self.lowest == self.highest)

    def find(self, rows: KeyedRows, grid: Grid, opened: BoolArray, n_jobs: int = 1) -> KeyedRows:
        """Those of some rows that lie in some cells."""
        chosen = np.zeros(int(self.numbers.max()) + 1, dtype=bool)
        chosen[self.numbers[opened]] = True
        inside = int(self.rows[opened].sum())

        def find(part: KeyedRows) -> KeyedRows:
            room = min(inside, part.scores.size) + 1
            weights = np.empty(0) if part.weights is None else part.weights
            found = np.empty(room, part.scores.dtype), np.empty(room, part.codes.dtype), np.empty(room)
            count = find_rows(part.scores, part.codes, weights, grid, chosen, found)
            scores, codes, heavy = (each[:count] for each in found)
            return KeyedRows(scores, codes, part.keys, None if part.weights is None else heavy)

        return KeyedRows.join(in_parts(find, rows, n_jobs))

    def below(self, columns: IntArray) -> NDArray[Any]:
        """The weight of some keys together, before the first cell and up to the end of each."""
        if self.limbs is None:
            rows = self.rows[:, columns].sum(axis=1)
            return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(rows)])
        limbs = np.cumsum(self.limbs[:, columns, 0].sum(axis=1), axis=0)
        running = to_floats(carry(np.ascontiguousarray(limbs.T)), np.longdouble)
        return np.concatenate([np.zeros(1, dtype=np.longdouble), running])

    def to_counts(self, score_range: ScoreRange, resolution: float) -> ScoreCounts:
        """The same rows by group and label, those of a cell at its highest score."""
        atoms = {key: self._atoms(place) for place, key in enumerate(self.keys)}
        cells = None
        if not self.known.all():
            lows = np.nextafter(self.lowest[~self.known], -np.inf)
            cells = Cells(lows, self.highest[~self.known])
        return on_cells(ScoreCounts(atoms, score_range, resolution), cells)

    def _atoms(self, key: int) -> Atoms:
        occupied = np.flatnonzero(self.rows[:, key])
        units: Units | None = None
        if self.limbs is not None:
            units = carry(np.ascontiguousarray(self.limbs[occupied, key].transpose(1, 2, 0)))
        return Atoms.of_counts(self.highest[occupied] + 0.0, self.rows[occupied, key], units)


def in_parts(work: Callable[[KeyedRows], T], rows: KeyedRows, n_jobs: int) -> list[T]:
    """What `work` makes of as many parts of the rows as there are jobs, in their order."""
    if n_jobs == 1 or rows.scores.size < _MANY_ROWS:
        return [work(rows)]
    with ThreadPoolExecutor(n_jobs) as executor:
        return list(executor.map(work, rows.parts(n_jobs)))
