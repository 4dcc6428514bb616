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
from localparity.counts._atoms import Atoms, Cells
from localparity.counts._coarsen import ordinals
from localparity.counts._kernels import (
    add_weights,
    add_weights_at,
    cell_ends,
    count_rows,
    find_rows,
    most_in_a_cell,
)
from localparity.counts._rows import Key, KeyedRows
from localparity.counts._score_counts import ScoreCounts, on_cells
from localparity.counts._weights import LIMBS, Units, carry, to_floats

T = TypeVar("T")

_SAMPLED = 1024
_NUMBER_BITS = 30
_SIGN = np.uint64(2**63)
_SHORTEST = float(np.finfo(np.float64).tiny)
_MANY_ROWS = 2**17
"""With fewer rows, starting threads takes longer than they save."""


class Grid(NamedTuple):
    """Which cell a score lies in: between multiples of a power of two or, with a shift, by the score's bits.

    What lies beyond the first or the last cell is counted with it. Some cells may be cut again, each into
    ``2**bits`` parts; only scores in these then have a cell, numbered as if they were all.

    Attributes
    ----------
    scale, first : float
        A score times the scale, rounded down, less the first is the number of its cell.
    last : int
        The number of the last cell, were all of them cut.
    ordinal : uint64
        The bits, as a number in the order of the floats, at which the first cell begins.
    shift : int
        The bits that tell scores of one cell apart; -1 where cells are between multiples.
    bits : int
        The bits that tell the parts of one cell apart.
    place : ndarray
        For each cell, the place among those that are cut, -1 for any other; empty where none is cut.
    """

    scale: float
    first: float
    last: int
    ordinal: np.uint64 = np.uint64(0)
    shift: int = -1
    bits: int = 0
    place: IntArray = np.empty(0, dtype=np.int64)

    @classmethod
    def over(cls, scores: NDArray[Any], cells: int) -> Grid:
        """A grid of so many cells at most on a sample of the scores; by bits where that crowds them less.

        Examples
        --------
        >>> Grid.over(np.linspace(0.0, 1.0, 9), cells=4)[:5]
        (4.0, 0.0, 3, np.uint64(9223372036854775808), -1)
        >>> Grid.over(10.0 ** np.arange(-300.0, 0.0), cells=16).shift
        58
        """
        sample = np.sort(scores[:: max(1, scores.size // _SAMPLED)]).astype(np.float64)
        sample = sample[np.diff(sample, prepend=-np.inf) > 0.0]
        ends = ordinals(sample[[0, -1]]).view(np.uint64) ^ _SIGN
        shift = max(0, int(ends[1] - ends[0]).bit_length() - cells.bit_length() + 1)
        by_bits = cls(0.0, 0.0, cells - 1, ends[0], shift)
        low, high = sample[0] / 4.0, sample[-1] / 4.0
        exponent = int(np.frexp(cells / 4.0 / (high - low))[1]) - 1 if high - low > _SHORTEST else 0
        if not -900 < exponent < 900 or max(-low, high) * 2.0 ** (exponent + 2) > 2.0**50:
            return by_bits
        scale = 2.0**exponent
        even = by_bits._replace(scale=scale, first=float(np.floor(sample[0] * scale)), shift=-1)
        return by_bits if 2 * most_in_a_cell(sample, by_bits) < most_in_a_cell(sample, even) else even

    def cut(self, numbers: IntArray, parts: int) -> Grid:
        """The same grid, with the cells of some numbers cut into about so many parts, all others left out."""
        bits = min(parts.bit_length() - 1, _NUMBER_BITS - self.last.bit_length())
        if self.shift >= 0:
            bits = min(bits, self.shift)
        place = np.full(self.last + 1, -1)
        place[numbers] = np.arange(numbers.size)
        finer = 2.0**bits
        return Grid(
            self.scale * finer,
            self.first * finer,
            ((self.last + 1) << bits) - 1,
            self.ordinal,
            self.shift - bits if self.shift >= 0 else -1,
            bits,
            place,
        )

    def all_cut(self, numbers: IntArray) -> tuple[Grid, IntArray]:
        """The grid on which every cell is cut as these are, and the numbers there of some parts."""
        return self._replace(bits=0, place=np.empty(0, dtype=np.int64)), self._among_all(numbers)

    @property
    def cells(self) -> int:
        """How many cells there are; of a grid that was cut, how many parts."""
        return int(np.count_nonzero(self.place >= 0)) << self.bits if self.place.size else self.last + 1

    def edges(self, numbers: IntArray, score_range: ScoreRange) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest score that there can be in cells of some numbers."""
        return cell_ends(self._among_all(numbers), self, *score_range)

    def _among_all(self, numbers: IntArray) -> IntArray:
        """The numbers of some parts, were all cells cut."""
        if not self.place.size:
            return numbers
        cut = np.flatnonzero(self.place >= 0)
        return np.asarray((cut[numbers >> self.bits] << self.bits) + (numbers & ((1 << self.bits) - 1)))


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
    def of(
        cls,
        rows: KeyedRows,
        grid: Grid,
        *,
        n_jobs: int = 1,
    ) -> CellCounts:
        """Count rows; the same counts whatever the number of jobs."""

        def count(part: KeyedRows) -> CellCounts:
            return cls.empty(part.keys, grid.cells, weighted=part.weights is not None).add(part, grid)

        found, *others = in_parts(count, rows, n_jobs)
        for other in others:
            found.merge(other)
        return found.at(np.flatnonzero(found.rows.any(axis=1)))

    @classmethod
    def empty(cls, keys: list[Key], cells: int, *, weighted: bool) -> CellCounts:
        """Cells without rows; with weights, these are counted, and their squares."""
        lowest, highest = np.full(cells, np.inf), np.full(cells, -np.inf)
        shape = (cells, len(keys))
        limbs = np.zeros((*shape, 2, LIMBS), dtype=np.int64) if weighted else None
        return cls(keys, np.arange(cells), lowest, highest, np.zeros(shape, dtype=np.int64), limbs)

    @classmethod
    def of_scores(cls, rows: KeyedRows) -> CellCounts:
        """Count rows by their scores: every score is a cell."""
        n_keys = len(rows.keys)
        scores, codes, weights = rows.by_score().arrays
        begins = np.append(True, scores[1:] != scores[:-1])
        distinct = scores[begins].astype(np.float64) + 0.0  # which turns -0.0 into 0.0
        places = (np.cumsum(begins) - 1) * n_keys + codes
        shape = (distinct.size, n_keys)
        counted = np.bincount(places, minlength=distinct.size * n_keys).reshape(shape)
        limbs = None
        if rows.weights is not None:
            limbs = np.zeros((distinct.size * n_keys, 2, LIMBS), dtype=np.int64)
            add_weights_at(places, weights, limbs)
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
        from localparity.counts._kernels import add_weights_at, count_at

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
        return find_in(rows, grid, self.numbers[opened], int(self.rows[opened].sum()), n_jobs)

    def below(self, columns: IntArray, dtype: Any = np.longdouble) -> NDArray[Any]:
        """The weight of some keys together, before the first cell and up to the end of each.

        Rows are whole numbers, and weights of a dtype.
        """
        if self.limbs is None:
            rows = self.rows[:, columns].sum(axis=1)
            return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(rows)])
        limbs = np.cumsum(self.limbs[:, columns, 0].sum(axis=1), axis=0)
        running = to_floats(carry(np.ascontiguousarray(limbs.T)), dtype)
        return np.concatenate([np.zeros(1, dtype=dtype), running])

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


def find_in(rows: KeyedRows, grid: Grid, numbers: IntArray, inside: int, n_jobs: int) -> KeyedRows:
    """Those of some rows that lie in the cells of some numbers, and how many these are is known."""
    opened = np.zeros(1 + grid.cells, dtype=bool)
    opened[1 + numbers] = True

    def find(part: KeyedRows) -> KeyedRows:
        scores, codes, weights = part.arrays
        room = min(inside, scores.size)
        found = np.empty(room, scores.dtype), np.empty(room, codes.dtype), np.empty(min(room, weights.size))
        count = find_rows(scores, codes, weights, grid, opened, found)
        scores, codes, weights = (each[:count] for each in found)
        return KeyedRows(scores, codes, part.keys, None if part.weights is None else weights)

    joined = KeyedRows.join(in_parts(find, rows, n_jobs))
    if joined.scores.size != inside:
        raise AssertionError("fewer rows are in the cells than were counted there")
    return joined
