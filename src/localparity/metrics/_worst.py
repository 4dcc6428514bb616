"""MCDP of the worst pair at given epsilons, exactly, without sorting all rows.

Rows are counted in a table of many cells of scores. The gap between two groups is exact at the end of each cell
and bounded inside it, which rules out almost every cell, at first in blocks and then one by one. Those that are
left are cut again where they hold many rows, and the rows of those that still decide are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import BoolArray, FloatArray, IntArray, ScoreRange
from localparity.counts._cell_counts import Grid, find_in, in_parts
from localparity.counts._cell_kernels import cell_of
from localparity.counts._comparison import Comparison
from localparity.counts._keyed_rows import KeyedRows
from localparity.counts._weights import LIMBS, carry, to_floats
from localparity.metrics._gap_curve import units_of
from localparity.metrics._gap_curves import gap_between
from localparity.metrics._profile import mcdp_of, reach_bounds
from localparity.metrics._table_kernels import (
    add_blocks,
    count_scores,
    count_table,
    decide,
    entries_below,
    step_order,
)
from localparity.predictions import Predictions

_ROWS_BY_CELL = 4
_MOST_CELLS = 2**15
_MOST_ENTRIES = 2**17
_MANY_CELLS = 2**12
_MANY_ROWS = 2**12
_BLOCK = 32
_LEAST_PARTS = 8
_MOST_PARTS = 2**14
_SLACK = 1e-12


class Steps(NamedTuple):
    """Parts of the score range, ascending, with the rows of all groups and labels counted in each.

    Attributes
    ----------
    numbers : ndarray
        The number of each in the finest grid, -1 for those that are not of it.
    lowest, highest : ndarray
        The lowest and the highest score that there can be in each.
    entries : ndarray of shape (steps, keys, 1 or 1 + limbs)
        The number of rows and, where there are weights, the limbs of their sum.
    """

    numbers: IntArray
    lowest: FloatArray
    highest: FloatArray
    entries: IntArray

    def with_finer(self, opened: BoolArray, finer: Steps) -> Steps:
        """The steps with those that are opened replaced by finer ones of the same rows."""
        order = step_order(opened, self.highest, finer.highest)
        joined = Steps(*(np.concatenate(both)[order] for both in zip(self, finer, strict=True)))
        joined.numbers[order < opened.size] = -1
        return joined


@dataclass(frozen=True, eq=False)
class Search:
    """What MCDP of the worst pair is asked of.

    Attributes
    ----------
    people : Predictions
        The people.
    group_of : ndarray of shape (labels, keys)
        For each label the group of each key, -1 for those who are not compared.
    pairs : ndarray of shape (pairs, 2)
        The groups that are compared; everyone is the last.
    epsilons : ndarray
        The half-widths of windows.
    """

    people: Predictions
    group_of: IntArray
    pairs: IntArray
    epsilons: FloatArray

    def decide(self, steps: Steps) -> tuple[BoolArray, BoolArray]:
        """The steps that must be opened to know MCDP of the worst pair, and by label which may be that."""
        begins = self._units(np.stack([steps.lowest, steps.highest], axis=1).ravel())
        known = steps.lowest == steps.highest
        return decide(steps.entries, begins, known, self.group_of, self.pairs, self._reach, _SLACK)

    @cached_property
    def _reach(self) -> FloatArray:
        """The half-widths that runs must exceed: to carry a window whatever the rounding, and at all."""
        return reach_bounds(self.epsilons, self.people.resolution)

    def answer(self, steps: Steps, matters: BoolArray) -> FloatArray:
        """MCDP of the worst of the pairs that matter at each epsilon, given steps that decide it."""
        knots, worst = self._units(steps.highest), np.zeros(self.epsilons.size)
        for group_of, chosen in zip(self.group_of, matters, strict=True):
            below = _weights_of(entries_below(steps.entries, group_of, len(self.people.groups)))
            for first, second in (below[pair] for pair in self.pairs[chosen]):
                gap = gap_between(first, second, first[-1], second[-1])[1:]
                found = mcdp_of(knots, gap, self.epsilons, self.people.resolution, self.people.score_range)
                worst = np.maximum(worst, found)
        return worst

    def _units(self, scores: FloatArray) -> FloatArray:
        return units_of(scores, self.people.score_range, self.people.resolution)


def _weights_of(entries: IntArray) -> NDArray[Any]:
    """Of each group, given the entries up to each step, the rows, or the weights in extended precision."""
    if entries.shape[1] == 1:
        return entries[:, 0]
    return np.stack([to_floats(carry(limbs), np.longdouble) for limbs in entries[:, 1:]])


class Table(NamedTuple):
    """Rows counted by the cells of a grid: the entry of each cell and key."""

    rows: KeyedRows
    grid: Grid
    entries: IntArray

    @classmethod
    def of(cls, rows: KeyedRows, grid: Grid, n_jobs: int) -> Table:
        """Count rows; the same counts whatever the number of jobs."""

        def count(part: KeyedRows) -> IntArray:
            entries = np.zeros((grid.cells, *_shape(part)), dtype=np.int64)
            count_table(*part.arrays, grid, entries)
            return entries

        entries, *others = in_parts(count, rows, n_jobs)
        for other in others:
            entries += other
        return cls(rows, grid, entries)

    def blocks(self, size: int, score_range: ScoreRange) -> Steps:
        """So many cells at a time, by the number of the first."""
        numbers = np.arange(0, self.grid.cells, size)
        lasts = np.minimum(numbers + size, self.grid.cells) - 1
        lowest, highest = (self.grid.edges(ends, score_range) for ends in (numbers, lasts))
        return Steps(numbers, lowest[0], highest[1], add_blocks(self.entries, size))

    def cells(self, numbers: IntArray, score_range: ScoreRange) -> Steps:
        """Some of the cells."""
        return Steps(numbers, *self.grid.edges(numbers, score_range), self.entries[numbers])

    def find(self, numbers: IntArray, n_jobs: int) -> KeyedRows:
        """The rows of some cells."""
        chosen = np.zeros(self.grid.cells, dtype=bool)
        chosen[numbers] = True
        return find_in(self.rows, self.grid, chosen, n_jobs)


def _shape(rows: KeyedRows) -> tuple[int, int]:
    """The keys of rows, and how many numbers an entry has."""
    return len(rows.keys), 1 if rows.weights is None else 1 + LIMBS


def _steps_of_scores(rows: KeyedRows) -> Steps:
    """Rows counted by their scores."""
    entries = np.zeros((rows.scores.size, *_shape(rows)), dtype=np.int64)
    scores = count_scores(*rows.by_score().arrays, entries)
    return Steps(np.arange(scores.size), scores, scores, entries[: scores.size])


def worst_in_cells(
    people: Predictions, comparison: Comparison, epsilons: FloatArray, n_jobs: int
) -> FloatArray:
    """MCDP of the worst pair at each epsilon; a group that is too small is an error."""
    rows, score_range = KeyedRows.of(people), people.score_range
    n_keys, width = _shape(rows)
    most = min(_MOST_CELLS, _MOST_ENTRIES // (n_keys * width))
    grid = Grid.over(rows.scores, min(most, 2 + rows.scores.size // _ROWS_BY_CELL))
    table = Table.of(rows, grid._replace(last=cell_of(score_range[1], *grid[:5])), n_jobs)
    in_all = np.array([table.entries[:, key, 0].sum() for key in range(n_keys)])
    pairs = comparison.pair_places(people.groups)
    group_of = np.stack([each.group_of for each in rows.strata(comparison, in_all)])
    search = Search(people, group_of, pairs, epsilons)

    size = _BLOCK if table.grid.cells > _MANY_CELLS else 1
    steps = table.blocks(size, score_range)
    opened, matters = search.decide(steps)
    if size > 1:
        inside = np.flatnonzero(np.repeat(opened, size)[: table.grid.cells])
        steps = steps.with_finer(opened, table.cells(inside, score_range))
        opened, matters = search.decide(steps)
    rows = table.find(steps.numbers[opened], n_jobs)
    if rows.scores.size > _MANY_ROWS:
        numbers = steps.numbers[opened]
        parts = min(rows.scores.size // _ROWS_BY_CELL, _MOST_PARTS) // numbers.size
        grid = table.grid.cut(numbers, max(_LEAST_PARTS, parts))
        table = Table.of(rows, grid, n_jobs)
        steps = steps.with_finer(opened, table.cells(np.arange(grid.cells), score_range))
        opened, matters = search.decide(steps)
        rows = table.find(steps.numbers[opened], n_jobs)
    steps = steps.with_finer(opened, _steps_of_scores(rows))
    return search.answer(steps, matters)
