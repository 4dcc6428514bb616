"""MCDP of the worst pair at given epsilons, exactly, without sorting all rows.

Rows are counted in a table of many cells of scores. Bounds rule out almost all of these, at first in blocks
and then one by one; the rows of those that are left are found again and sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localparity._types import BoolArray, FloatArray, IntArray
from localparity.counts._cell_counts import Grid, find_in, in_parts
from localparity.counts._cell_kernels import cell_of
from localparity.counts._comparison import Comparison
from localparity.counts._keyed_rows import Compared, KeyedRows
from localparity.counts._weights import LIMBS, carry, to_floats
from localparity.metrics._gap_curve import units_of
from localparity.metrics._gap_curves import gap_between
from localparity.metrics._kernels import bound_pairs, open_cells
from localparity.metrics._profile import mcdp_of, reach_bounds
from localparity.metrics._table_kernels import count_table, exact_below, shares_at
from localparity.predictions import Predictions

_ROWS_BY_CELL = 8
_MOST_CELLS = 2**15
_MOST_ENTRIES = 2**17
_MANY_CELLS = 2**12
_BLOCK = 32
_SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class Table:
    """Rows counted by cell, and by group and label, and what is asked of them.

    Attributes
    ----------
    people : Predictions
        The people.
    rows : KeyedRows
        Their rows.
    grid : Grid
        The cells, the last of which has the highest score that there can be.
    entries : ndarray of shape (cells, keys, 1 or 1 + limbs)
        The number of rows and, where there are weights, the limbs of their sum.
    pairs : ndarray of shape (pairs, 2)
        The groups that are compared.
    epsilons : ndarray
        The half-widths of windows.
    """

    people: Predictions
    rows: KeyedRows
    grid: Grid
    entries: IntArray
    pairs: IntArray
    epsilons: FloatArray

    def deciding(self, strata: list[Compared]) -> tuple[IntArray, BoolArray, FloatArray]:
        """The steps that cells are taken together in, which of them must be opened, and bounds of MCDP.

        Steps go from one mark up to the next. Those that decide are cut into their cells until all are.
        """
        cells = self.grid.cells
        begins = np.zeros(cells, dtype=bool)
        begins[:: _BLOCK if cells > _MANY_CELLS else 1] = True
        while True:
            marks = np.append(np.flatnonzero(begins), cells)
            opened, bounds = self._bound(strata, marks)
            inside = np.repeat(opened, np.diff(marks))
            if begins[inside].all():
                return marks, opened, bounds
            begins |= inside

    def _bound(self, strata: list[Compared], marks: IntArray) -> tuple[BoolArray, FloatArray]:
        """Which steps decide, and the least and the greatest MCDP by label, pair and epsilon."""
        people, groups = self.people, len(self.people.groups)
        reach = reach_bounds(self.epsilons, people.resolution)
        ends = np.stack(self.ends(marks), axis=1)
        begins = units_of(ends.ravel(), people.score_range, people.resolution)
        known = ends[:, 0] == ends[:, 1]
        shares = [shares_at(self.entries, marks, each.group_of, groups) for each in strata]
        bounds = np.stack(
            [bound_pairs(begins, known, each, self.pairs, reach, _SLACK, True) for each in shares]
        )
        floor = bounds[:, 0].max(axis=(0, 1))
        opened = np.zeros(known.size, dtype=bool)
        for each, (least, most) in zip(shares, bounds, strict=True):
            matters = (most >= floor).any(axis=1)
            between = np.maximum(least, floor)[matters], most[matters]
            opened |= open_cells(begins, known, each, self.pairs[matters], *between, reach[1], _SLACK)
        return opened, bounds

    def ends(self, marks: IntArray) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest score that there can be in each step."""
        lowest, _ = self.grid.edges(marks[:-1], self.people.score_range)
        return lowest, np.append(np.nextafter(lowest[1:], -np.inf), self.people.score_range[1])

    def mcdp(self, comparison: Comparison, n_jobs: int) -> FloatArray:
        """MCDP of the worst pair at each epsilon; a group that is too small is an error."""
        sizes = [int(self.entries[:, key, 0].sum()) for key in range(len(self.rows.keys))]
        strata = list(self.rows.strata(comparison, np.array(sizes)))
        marks, opened, bounds = self.deciding(strata)
        inside = np.repeat(opened, np.diff(marks))
        rows = find_in(self.rows, self.grid, inside, n_jobs).by_score()
        ends, floor = self.ends(marks)[1], bounds[:, 0].max(axis=(0, 1))
        worst = np.zeros(self.epsilons.size)
        for each, most in zip(strata, bounds[:, 1], strict=True):
            knots, below = exact_below(
                self.entries, marks, opened, ends, rows.arrays, each.group_of, len(self.people.groups)
            )
            units = units_of(knots, self.people.score_range, self.people.resolution)
            for pair in self.pairs[(most >= floor).any(axis=1)].tolist():
                first, second = (_weights_of(below[:, side]) for side in pair)
                gap = gap_between(first, second, first[-1], second[-1])[1:]
                found = mcdp_of(units, gap, self.epsilons, self.people.resolution, self.people.score_range)
                worst = np.maximum(worst, found)
        return worst


def worst_in_cells(
    people: Predictions, comparison: Comparison, epsilons: FloatArray, n_jobs: int
) -> FloatArray:
    """Count rows; the same counts whatever the number of jobs."""
    rows = KeyedRows.of(people)
    shape = len(rows.keys), 1 if rows.weights is None else 1 + LIMBS
    most = min(_MOST_CELLS, _MOST_ENTRIES // (shape[0] * shape[1]))
    grid = Grid.over(rows.scores, min(most, 2 + rows.scores.size // _ROWS_BY_CELL))
    grid = grid._replace(last=cell_of(people.score_range[1], *grid[:5]))

    def count(part: KeyedRows) -> IntArray:
        entries = np.zeros((grid.cells, *shape), dtype=np.int64)
        count_table(*part.arrays, grid, entries)
        return entries

    first, *others = in_parts(count, rows, n_jobs)
    for other in others:
        first += other
    table = Table(people, rows, grid, first, comparison.pair_places(people.groups), epsilons)
    return table.mcdp(comparison, n_jobs)


def _weights_of(entries: IntArray) -> NDArray:
    """The weight of entries: rows as whole numbers, and weights in extended precision."""
    if entries.shape[1] == 1:
        return entries[:, 0]
    return to_floats(carry(entries[:, 1:].T.copy()), np.longdouble)
