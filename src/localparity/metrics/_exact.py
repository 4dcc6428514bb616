"""MCDP at given epsilons, exactly, without sorting all rows: the one search, whatever holds the rows.

Rows are counted in a table of cells of scores. The gap between two groups is exact at the end of each cell
and bounded inside it, which bounds MCDP and rules out almost every cell. A source (arrays here, a database or
a GPU in `localparity.engines`) opens the cells that are left: it counts their rows in finer cells and, at
last, by score. That is repeated until no cell decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from localparity._scale import range_scale, threshold_reach
from localparity._types import BoolArray, FloatArray, Group, IntArray, ScoreRange
from localparity.counts._atoms import Atoms, Cells
from localparity.counts._comparison import Comparison, check_sizes
from localparity.counts._kernels import cell_ends, cell_of, find_rows, most_in_a_cell, ordinal
from localparity.counts._rows import Key, KeyedRows, group_codes
from localparity.counts._score_counts import Data, ScoreCounts, on_cells
from localparity.counts._weights import LIMBS, carry, to_floats
from localparity.metrics._gap_curve import SortedRows, each_gap_curve, gap_between, units_of
from localparity.metrics._kernels import (
    count_at,
    count_table,
    decide,
    entries_below,
    narrow,
    sorted_steps,
    with_finer,
)
from localparity.metrics._profile import mcdp_of, reach_bounds
from localparity.predictions import Predictions

T = TypeVar("T")

_SLACK = 1e-12
"""What shares may be off by."""

_SAMPLED = 1024
_SAMPLED_FIRST = 256
_SAMPLED_ENDS = 2**13
_NUMBER_BITS = 30
_SHORTEST = float(np.finfo(np.float64).tiny)
_MANY_ROWS = 2**17
"""With fewer rows, starting threads takes longer than they save."""

_FEW_ROWS = 2**15
"""So few rows of two groups are sorted sooner than they are counted in cells."""

_MOST_KEYS = 64
_ROWS_BY_CELL = 4
_MOST_CELLS = 2**15
_MOST_ENTRIES = 2**17
_BLOCKS = (8, 1)
_FEW_PAIRS = 60
_CELLS_BY_ROOT = 4.0
_MOST_COUNTED = 2**14
_MANY_OPENED = 2**13
_LEAST_PARTS = 4
_ROWS_BY_PART = 8
_ROWS_BY_CUT = 2**8
_CUT = 8
_SORTED_CELLS = 2**9


# The table of cells.


@dataclass(frozen=True, eq=False)
class CellTable:
    """Rows counted by cells of scores, which ascend, and by keys: groups, or groups and labels.

    Attributes
    ----------
    keys : list of tuple
        The groups and labels; the label is None where labels are not counted.
    numbers : ndarray
        The number of each cell on the finest grid so far, -1 for one of a coarser grid or a single score.
    lowest, highest : ndarray
        Bounds of the scores in each cell, the same number where all of them are equal.
    entries : ndarray of shape (cells, keys, 1), or more
        The number of rows and, with weights, the limbs of their sum (and of the sum of their squares), as
        `localparity.counts._weights` has them.
    gaps : ndarray of shape (labels, pairs, 2, cells)
        Bounds of each pair's signed gap inside each cell, where a source knows closer ones than the entries
        say: those at both ends of a cell lie between them. Empty where it does not.

    Examples
    --------
    >>> ends = np.array([0.25, 0.75])
    >>> table = CellTable([("a", None), ("b", None)], np.arange(2), ends, ends, np.ones((2, 2, 1), dtype=int))
    >>> table.to_counts((0.0, 1.0), 1e-15).size
    4
    """

    keys: list[Key]
    numbers: IntArray
    lowest: FloatArray
    highest: FloatArray
    entries: IntArray
    gaps: FloatArray = field(default_factory=lambda: np.empty((0, 0, 2, 0)))

    @classmethod
    def empty(cls, keys: list[Key], cells: int, *, weighted: bool) -> CellTable:
        """Cells without rows, in which the rows of a source are counted, batch by batch.

        Parameters
        ----------
        keys : list of tuple
            The groups and labels.
        cells : int
            How many cells there are.
        weighted : bool
            Whether rows have weights.

        Returns
        -------
        CellTable
            The cells, numbered from 0.
        """
        entries = np.zeros((cells, len(keys), 1 + 2 * LIMBS if weighted else 1), dtype=np.int64)
        lowest, highest = _no_ends(cells)
        return cls(keys, np.arange(cells), lowest, highest, entries)

    @property
    def steps(self) -> tuple[IntArray, FloatArray, FloatArray, IntArray, FloatArray]:
        """The table as compiled loops take it."""
        return self.numbers, self.lowest, self.highest, self.entries, self.gaps

    @property
    def rows(self) -> IntArray:
        """The number of rows in each cell, by key."""
        return self.entries[:, :, 0]

    @property
    def known(self) -> BoolArray:
        """Whether all rows of a cell have one score."""
        return np.asarray(self.lowest == self.highest)

    def add_at(self, cells: NDArray[Any], rows: KeyedRows) -> None:
        """Add rows, given the cell of each.

        Parameters
        ----------
        cells : ndarray of int
            The place in the table of each row's cell.
        rows : KeyedRows
            Scores with their keys and weights.
        """
        ends = np.stack([self.lowest, self.highest])
        count_at(cells, *rows.arrays, self.entries, ends)
        self.lowest[:], self.highest[:] = ends

    def merge(self, other: CellTable) -> None:
        """Add the rows of another table of the same cells.

        Parameters
        ----------
        other : CellTable
            The other table.
        """
        np.add(self.entries, other.entries, out=self.entries)
        np.minimum(self.lowest, other.lowest, out=self.lowest)
        np.maximum(self.highest, other.highest, out=self.highest)

    def at(self, cells: IntArray | BoolArray) -> CellTable:
        """Some of the cells, without what is known of the gaps inside.

        Parameters
        ----------
        cells : ndarray of int or bool
            Which ones, as an index of arrays.

        Returns
        -------
        CellTable
            These cells alone.
        """
        ends = self.lowest[cells], self.highest[cells]
        return CellTable(self.keys, self.numbers[cells], *ends, self.entries[cells])

    def occupied(self) -> CellTable:
        """The cells that have rows."""
        return self.at(np.flatnonzero(self.rows.any(axis=1)))

    def with_finer(self, opened: BoolArray, finer: CellTable) -> CellTable:
        """The table with some cells replaced by finer ones of the same rows.

        Parameters
        ----------
        opened : ndarray of bool
            Which cells to replace.
        finer : CellTable
            The cells that take their place.

        Returns
        -------
        CellTable
            All cells, in ascending order.
        """
        return CellTable(self.keys, *with_finer(self.steps, opened, finer.steps))

    def to_counts(self, score_range: ScoreRange, resolution: float) -> ScoreCounts:
        """The same rows by group and label, those of a cell at its highest score.

        Parameters
        ----------
        score_range : tuple of float
            The range of the scores.
        resolution : float
            Fractions of the range that differ by less count as equal.

        Returns
        -------
        ScoreCounts
            Counts that know which scores are only known to lie in a cell.
        """
        atoms = {key: self._atoms(place) for place, key in enumerate(self.keys)}
        cells, several = None, ~self.known
        if several.any():
            cells = Cells(np.nextafter(self.lowest[several], -np.inf), self.highest[several])
        return on_cells(ScoreCounts(atoms, score_range, resolution), cells)

    def _atoms(self, key: int) -> Atoms:
        occupied = np.flatnonzero(self.rows[:, key])
        entries, units = self.entries[occupied, key], None
        if entries.shape[1] > 1:
            units = carry(np.ascontiguousarray(entries[:, 1:].T.reshape(2, LIMBS, -1)))
        return Atoms.of_counts(self.highest[occupied] + 0.0, entries[:, 0].copy(), units)


def _no_ends(cells: int) -> FloatArray:
    """The lowest and the highest score of cells that have none."""
    return np.repeat([[np.inf], [-np.inf]], cells, axis=1)


# The search.


Opener = Callable[[CellTable, BoolArray], CellTable | None]
"""Counts the rows of a table's opened cells in finer ones, or by score; None where they are too many."""


@dataclass(frozen=True, eq=False)
class Search:
    """Which cells decide MCDP, of every pair that is compared or of the worst alone."""

    keys: list[Key]
    sizes: IntArray  # how many rows each key has
    comparison: Comparison  # a group that is too small is not compared
    epsilons: FloatArray
    score_range: ScoreRange
    resolution: float
    worst: bool = False  # whether the MCDP of the worst pair is all that is asked for

    @cached_property
    def _groups(self) -> tuple[tuple[Group, ...], IntArray]:
        """The groups, and by label the place of each key's among them, -1 for those not compared."""
        return group_codes(self.keys, self.comparison)

    @cached_property
    def group_rows(self) -> IntArray:
        """How many rows each group, and everyone last, has under each label (rows)."""
        groups, group_of = self._groups
        rows = np.zeros((len(group_of), len(groups) + 1), dtype=np.int64)
        for of_label, codes in zip(rows, group_of, strict=True):
            np.add.at(of_label, codes, self.sizes)  # those not compared are counted last
            of_label[-1] = of_label[:-1].sum()
        return rows

    @cached_property
    def _pairs(self) -> IntArray:
        return self.comparison.pair_places(self._groups[0])

    @cached_property
    def sides(self) -> BoolArray:
        """Which keys the two sides of each pair are made of: an array of shape (labels, pairs, 2, keys)."""
        groups, group_of = self._groups
        members = [group_of == place for place in range(len(groups))] + [group_of >= 0]
        return np.stack(members)[self._pairs].transpose(2, 0, 1, 3)

    @cached_property
    def _terms(self) -> tuple[Any, ...]:
        """The search as compiled loops take it."""
        scale = range_scale(self.score_range)
        low, high = (scale * end for end in self.score_range)
        bottom = threshold_reach(self.score_range[0], self.resolution, self.score_range)
        reach = reach_bounds(self.epsilons, self.resolution)
        frame = scale, low, high - low, bottom
        return self._groups[1], self._pairs, reach, frame, _SLACK, self.worst

    @cached_property
    def compared(self) -> BoolArray:
        """By label (rows), the pairs of groups that are large enough."""
        large = self.group_rows >= max(1, self.comparison.min_group_size)
        return np.asarray(large[:, self._pairs].all(axis=2))

    def check_sizes(self) -> None:
        """Raise a ValueError where a group is too small."""
        for label, rows in zip(self.comparison.labels, self.group_rows, strict=True):
            check_sizes(self.comparison, self._groups[0], rows[:-1].tolist(), label)

    def decide(self, table: CellTable, compared: BoolArray | None = None) -> tuple[BoolArray, BoolArray]:
        """The cells that decide, and by label (rows) the pairs whose MCDP is asked for.

        Of a coarser table, the same pairs or more mattered: no others need be compared.
        """
        compared = self.compared if compared is None else compared
        opened, matters = decide(table.steps, compared, self._terms)
        return opened, matters

    def refine(
        self, table: CellTable, opener: Opener, decided: tuple[BoolArray, BoolArray] | None = None
    ) -> tuple[CellTable, BoolArray, BoolArray]:
        """Open cells until none decides, or until a source opens no more of those that do.

        Returns the table, the cells that still decide, and the pairs whose MCDP is asked for.
        """
        opened, matters = decided or self.decide(table)
        while opened.any():
            finer = opener(table, opened)
            if finer is None:
                break
            table = table.with_finer(opened, finer)
            if (finer.numbers < 0).all():  # every score is known, and nothing decides
                return table, np.zeros(table.numbers.size, dtype=bool), matters
            opened, matters = self.decide(table, matters)
        return table, opened, matters

    def mcdp(self, table: CellTable, matters: BoolArray) -> FloatArray:
        """MCDP of the worst pair at each epsilon, given a table of which no cell decides."""
        knots = units_of(table.highest, self.score_range, self.resolution)
        worst = np.zeros(self.epsilons.size)
        for group_of, chosen in zip(self._groups[1], matters, strict=True):
            below = entries_below(table.entries, group_of, len(self._groups[0]))
            for pair in self._pairs[chosen].tolist():
                first, second = (_weights_of(below[side]) for side in pair)
                gap = gap_between(first, second, first[-1], second[-1])[1:]
                found = mcdp_of(knots, gap, self.epsilons, self.resolution, self.score_range)
                worst = np.maximum(worst, found)
        return worst


def _weights_of(below: IntArray) -> NDArray[Any]:
    """Numbers of rows, or weights in extended precision."""
    return below[0] if len(below) == 1 else to_floats(carry(below), np.longdouble)


# Arrays as a source: rows in memory, counted on a grid that is cut where they decide.


class Grid(NamedTuple):
    """Which cell a score lies in: between multiples of a power of two or, with a shift, by the score's bits.

    What lies beyond the first or the last cell is counted with it. Some cells may be cut again, each into
    ``2**bits`` parts; only scores in these then have a cell, numbered as if they were all.
    """

    scale: float  # a score times the scale, rounded down, less the first is the number of its cell
    first: float
    last: int  # the number of the last cell, were all of them cut
    ordinal: np.uint64 = np.uint64(0)  # where the first cell begins, in the order of the floats
    shift: int = -1  # the bits that tell scores of one cell apart; -1 where cells are between multiples
    bits: int = 0  # the bits that tell the parts of one cell apart
    place: IntArray = np.empty(0, dtype=np.int64)  # of each cell among those cut, -1 for others, or empty

    @classmethod
    def over(cls, sample: FloatArray, cells: int) -> Grid:
        """A grid of so many cells at most, given some of the scores, distinct and ascending.

        Cells are cut by bits where that crowds the scores less.

        Examples
        --------
        >>> Grid.over(np.linspace(0.0, 1.0, 9), cells=4)[:5]
        (4.0, 0.0, 3, np.uint64(9223372036854775808), -1)
        >>> Grid.over(10.0 ** np.arange(-300.0, 0.0), cells=16).shift
        58
        """
        low, high = float(sample[0]), float(sample[-1])
        first = int(ordinal(low))
        shift = max(0, (int(ordinal(high)) - first).bit_length() - cells.bit_length() + 1)
        by_bits = cls(0.0, 0.0, cells - 1, np.uint64(first), shift)
        quarter = high / 4.0 - low / 4.0  # a float, however long the range is
        exponent = math.frexp(cells / 4.0 / quarter)[1] - 1 if quarter > _SHORTEST else 0
        if not -900 < exponent < 900 or max(-low, high) * 2.0**exponent > 2.0**50:
            return by_bits
        scale = 2.0**exponent
        even = by_bits._replace(scale=scale, first=float(math.floor(low * scale)), shift=-1)
        return by_bits if 2 * most_in_a_cell(sample, by_bits) < most_in_a_cell(sample, even) else even

    def cut(self, numbers: IntArray, parts: int) -> Grid:
        """The same grid, with the cells of some numbers cut into about so many parts, all others left out."""
        numbers = self._among_all(numbers)
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


class ArrayRows:
    """Rows in memory; once some cells were opened, those of them.

    With `ends`, the lowest and the highest score of each cell are noted, which tells cells of one score; with
    `squares`, squared weights are summed up too, as counts need them.
    """

    def __init__(
        self,
        rows: KeyedRows,
        grid: Grid,
        score_range: ScoreRange,
        *,
        ends: bool,
        squares: bool = False,
        n_jobs: int = 1,
    ) -> None:
        self.rows, self.grid, self._score_range, self._n_jobs = rows, grid, score_range, n_jobs
        self._ends = ends
        self._sorted: SortedCells | None = None
        self._width = 1 if rows.weights is None else 1 + LIMBS * (1 + squares)

    def count(self) -> tuple[IntArray, FloatArray]:
        """The entries of all cells and, where they are noted, the ends of the scores in each.

        They are the same whatever the number of jobs.
        """

        def count(part: KeyedRows) -> tuple[IntArray, FloatArray]:
            entries = np.zeros((self.grid.cells, len(part.keys), self._width), dtype=np.int64)
            ends = _no_ends(self.grid.cells if self._ends else 0)
            count_table(*part.arrays, self.grid, entries, ends)
            return entries, ends

        (entries, ends), *others = in_parts(count, self.rows, self._n_jobs)
        for other, (lowest, highest) in others:
            entries += other
            ends = np.stack([np.minimum(ends[0], lowest), np.maximum(ends[1], highest)])
        return entries, ends

    def table(self) -> CellTable:
        """The rows by the cells of the grid."""
        entries, ends = self.count()
        numbers = np.arange(len(entries))
        lowest, highest = ends if self._ends else self.grid.edges(numbers, self._score_range)
        table = CellTable(self.rows.keys, numbers, lowest, highest, entries)
        return table.occupied() if self._ends else table

    def open(self, table: CellTable, opened: BoolArray) -> CellTable:
        """Cut cells of many rows once, unless one has most of these; sort the rows of others."""
        if self._sorted is not None:
            return self._sorted.open(table, opened)
        numbers, sizes = table.numbers[opened], np.where(opened, table.rows.sum(axis=1), 0)
        inside, crowded = int(sizes.sum()), 2 * sizes.max() > sizes.sum()
        self.rows = find_in(self.rows, self.grid, numbers, inside, self._n_jobs)
        if inside > _MANY_OPENED and not crowded and not self.grid.place.size:
            cells = max(self.grid.cells, inside // _ROWS_BY_CUT)
            parts = min(inside // _ROWS_BY_PART, cells) // numbers.size
            cut = self.grid.cut(numbers, max(_LEAST_PARTS, parts))
            if cut.bits:  # or else cells of single floats, but for the ends
                self.grid = cut
                return self.table()
        # Cells side by side are cut together.
        first = np.flatnonzero(opened & ~np.append(False, opened[:-1]))
        self._sorted = SortedCells(self.rows, self._width, np.add.reduceat(sizes, first))
        return self._sorted.table(1 if inside <= _MANY_OPENED else 1 + inside // _SORTED_CELLS)


class SortedCells:
    """Rows in memory, sorted, in cells of about as many rows each; once some were opened, those of them.

    No cell goes beyond one of the spans, of so many rows each, that the rows come from.
    """

    def __init__(self, rows: KeyedRows, width: int, sizes: IntArray) -> None:
        self._rows, self._shape = rows.by_score(), (len(rows.keys), width)
        ends = np.cumsum(sizes)
        self._spans, self._most = np.column_stack([ends - sizes, ends]), 1

    def table(self, most: int) -> CellTable:
        """Cells of about so many rows each; of one row, a cell for each score."""
        steps, self._spans = sorted_steps(*self._rows.arrays, self._spans, most, self._shape)
        self._most = most
        return CellTable(self._rows.keys, *steps)

    def open(self, table: CellTable, opened: BoolArray) -> CellTable:
        """Cut cells into smaller ones, and at last into their scores."""
        self._spans = self._spans[table.numbers[opened]]
        return self.table(self._most // _CUT if self._most > _CUT**2 else 1)


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


# MCDP of the worst pair, and counts that have it of every pair.


def worst_mcdp(data: Data, comparison: Comparison, epsilons: FloatArray, n_jobs: int = 1) -> FloatArray:
    """MCDP of the worst pair at each epsilon; a group that is too small is an error."""
    if not epsilons.size:
        return np.zeros(0)
    if isinstance(data, Predictions):
        worst = None
        if _in_cells(data):
            worst = _worst_in_cells(data, comparison, epsilons, n_jobs)
        if worst is None and data.exchangeable:
            worst = _worst_sorted(data, comparison, epsilons)
        if worst is not None:
            return worst
    curves = each_gap_curve(data, comparison)
    return np.asarray(np.max([curve.mcdp_at(epsilons) for curve in curves], axis=0))


def _in_cells(predictions: Predictions) -> bool:
    """Whether rows are counted in cells: more than a few, and not of very many groups."""
    n_keys = len(predictions.groups) * (1 if predictions.labels is None else 2)
    # With more groups, sorted rows are looked at for more pairs.
    few = 4 * _FEW_ROWS // n_keys**2
    return len(predictions) > few and n_keys <= _MOST_KEYS and predictions.clusters is None


def _worst_in_cells(
    people: Predictions, comparison: Comparison, epsilons: FloatArray, n_jobs: int
) -> FloatArray | None:
    """The same by the search; None where rows are few and tied."""
    rows, ends = KeyedRows.of(people), people.score_range
    n_keys, size = len(rows.keys), rows.scores.size
    most = min(_MOST_CELLS, _MOST_ENTRIES // (n_keys * (1 if rows.weights is None else 1 + LIMBS)))
    ends_of = rows.scores[:: max(1, size // _SAMPLED_ENDS)]
    sample = np.append(rows.scores[:: max(1, size // _SAMPLED_FIRST)], [ends_of.min(), ends_of.max()])
    distinct = np.unique(sample).astype(np.float64)
    # Where scores are tied, few cells do, and those of one score are known once their ends are.
    tied = distinct.size < 0.9 * sample.size
    if tied and size <= _FEW_ROWS // 2:
        return None
    grid = Grid.over(distinct, min(most, _cells_by_root(size) if tied else 2 + size // _ROWS_BY_CELL))
    grid = grid._replace(last=cell_of(ends[1], *grid[:5]))
    source = ArrayRows(rows, grid, ends, ends=tied, n_jobs=n_jobs)
    entries, seen = source.count()
    in_all = np.array([entries[:, key, 0].sum() for key in range(n_keys)])
    search = Search(rows.keys, in_all, comparison, epsilons, ends, people.resolution, worst=True)
    search.check_sizes()
    # Of many cells few matter: they are looked at in blocks first. Of many pairs that only cells tell.
    blocks = _BLOCKS if search.compared.size <= _FEW_PAIRS else _BLOCKS[-1:]
    steps, opened, matters = narrow(entries, seen, grid, ends, blocks, search.compared, search._terms)
    table = CellTable(rows.keys, *steps)
    table, _, matters = search.refine(table, source.open, (opened, matters))
    return search.mcdp(table, matters)


def _worst_sorted(predictions: Predictions, comparison: Comparison, epsilons: FloatArray) -> FloatArray:
    """A shortcut for few rows, or many groups: from all rows sorted.

    A pair with no gap as large as the worst MCDP so far is passed over.
    """
    worst = np.zeros(epsilons.size)
    for rows in SortedRows.strata(predictions, comparison):
        pairs = comparison.pair_places(predictions.groups)
        largest = rows.largest_gaps(pairs) + _SLACK if len(pairs) > 1 else np.ones(1)
        for place in np.argsort(-largest).tolist():
            if largest[place] > worst.min():
                worst = np.maximum(worst, rows.curve(pairs[place]).mcdp_at(epsilons))
    return worst


def count_for(
    predictions: Predictions, comparison: Comparison, epsilons: FloatArray, n_jobs: int = 1
) -> ScoreCounts:
    """Count rows so that MCDP at some epsilons is exact for every pair of groups that are large enough.

    Where rows are few, of many groups, or many of them decide, all of them are sorted.
    """
    rows, ends = KeyedRows.of(predictions), predictions.score_range
    size = rows.scores.size
    if size > _FEW_ROWS // 2 and _in_cells(predictions):
        sample = np.unique(rows.scores[:: max(1, size // _SAMPLED)]).astype(np.float64)
        grid = Grid.over(sample, min(_MOST_COUNTED, _cells_by_root(size)))
        source = ArrayRows(rows, grid, ends, ends=True, squares=True, n_jobs=n_jobs)
        table = source.table()
        sizes = table.rows.sum(axis=0)
        search = Search(rows.keys, sizes, comparison, epsilons, ends, predictions.resolution)
        decided = search.decide(table)
        if 4 * table.rows[decided[0]].sum() <= size:
            table, _, _ = search.refine(table, source.open, decided)
            return table.to_counts(ends, predictions.resolution)
    return ScoreCounts.from_predictions(predictions)


def _cells_by_root(size: int) -> int:
    """How many cells to count so many rows in, where the bounds of every cell are looked at."""
    return 1 + int(_CELLS_BY_ROOT * size**0.5)
