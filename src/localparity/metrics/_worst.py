"""MCDP of the worst pair at given epsilons, exactly, without sorting all rows.

Rows are counted in a table of many cells of scores. The gap between two groups is exact at the end of each
cell and bounded inside it, which rules out almost every cell, at first in blocks and then one by one. Those
that are left are cut again where they hold many rows, and the rows of those that still decide are sorted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._scale import range_scale, threshold_reach
from localparity._types import BoolArray, FloatArray, IntArray
from localparity.counts._cells import Grid, find_in, in_parts
from localparity.counts._comparison import Comparison
from localparity.counts._kernels import cell_of
from localparity.counts._rows import KeyedRows
from localparity.counts._weights import LIMBS, carry, to_floats
from localparity.metrics._gap_curve import gap_between, units_of
from localparity.metrics._kernels import count_table, decide, entries_below, narrow, score_steps, with_finer
from localparity.metrics._profile import mcdp_of, reach_bounds
from localparity.predictions import Predictions

_SAMPLED = 256
_ROWS_BY_CELL = 4
_MOST_CELLS = 2**15
_MOST_ENTRIES = 2**17
_MANY_ROWS = 2**13
_BLOCKS = (64, 8, 1)
_LEAST_PARTS = 4
_ROWS_BY_PART = 8
_MOST_PARTS = 2**14
_MOST_PLACES = 2**26
_MOST_CUT = 2**20
_SLACK = 1e-12


class Table(NamedTuple):
    """Rows counted by cell and key: the number of rows and, where there are weights, the limbs of these."""

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
        return cls(grid, entries)


class Question(NamedTuple):
    """What is asked: of whom, under which label, and at which half-widths.

    Attributes
    ----------
    group_of : ndarray of shape (labels, keys)
        The group of each key under each label, -1 for those who are not compared.
    pairs : ndarray of shape (pairs, 2)
        The groups that are compared; everyone is the last.
    reach : ndarray of shape (2, epsilons)
        The half-widths that runs must exceed: to carry a window whatever the rounding, and at all.
    frame : tuple of float
        What scores are multiplied by, the range's bottom and length thereafter, and the highest score at the
        bottom.
    slack : float
        What shares may be off by.
    """

    group_of: IntArray
    pairs: IntArray
    reach: FloatArray
    frame: tuple[float, float, float, float]
    slack: float = _SLACK


def worst_in_cells(
    people: Predictions, comparison: Comparison, epsilons: FloatArray, n_jobs: int
) -> FloatArray | None:
    """MCDP of the worst pair at each epsilon; a group that is too small is an error.

    None where so many rows decide that a table of their scores and keys would not fit.
    """
    rows, ends = KeyedRows.of(people), people.score_range
    n_keys, width = _shape(rows)
    most = min(_MOST_CELLS, _MOST_ENTRIES // (n_keys * width))
    sample = rows.scores[:: max(1, rows.scores.size // _SAMPLED)]
    grid = Grid.over(sample, min(most, 2 + rows.scores.size // _ROWS_BY_CELL))
    table = Table.of(rows, grid._replace(last=cell_of(ends[1], *grid[:5])), n_jobs)
    in_all = np.array([table.entries[:, key, 0].sum() for key in range(n_keys)])
    group_of = np.array([each.group_of for each in rows.strata(comparison, in_all)])
    question = Question(
        group_of,
        comparison.pair_places(people.groups),
        reach_bounds(epsilons, people.resolution),
        _frame(people),
    )
    steps, opened, matters = narrow(table.entries, table.grid, ends, _BLOCKS, question)
    numbers = steps[0][opened]
    rows = find_in(rows, table.grid, numbers, _count(steps, opened), n_jobs)
    grid, many, most = table.grid, _MANY_ROWS, _MOST_PLACES // (n_keys * width)
    while rows.scores.size > many and grid.last < _MOST_CUT:
        parts = min(rows.scores.size // _ROWS_BY_PART, _MOST_PARTS) // numbers.size
        cut = grid.cut(numbers, max(_LEAST_PARTS, parts))
        if not cut.bits:  # cells of single floats, but for the ends
            break
        numbers = np.arange(cut.cells)
        finer = numbers, *cut.edges(numbers, ends), Table.of(rows, cut, n_jobs).entries
        steps = with_finer(steps, opened, finer)
        opened, matters = decide(steps, question)
        rows = find_in(rows, cut, steps[0][opened], _count(steps, opened), n_jobs)
        grid, numbers = cut.all_cut(steps[0][opened])
        many = most  # cells are cut once, and again only where their rows are too many to sort
    if rows.scores.size > most:
        return None
    _, _, highest, entries = with_finer(steps, opened, score_steps(*rows.arrays, *_shape(rows)))
    knots, worst = units_of(highest, ends, people.resolution), np.zeros(epsilons.size)
    for group_of, chosen in zip(question.group_of, matters, strict=True):
        below = entries_below(entries, group_of, len(people.groups))
        for pair in question.pairs[chosen].tolist():
            first, second = (_weights_of(below[side]) for side in pair)
            gap = gap_between(first, second, first[-1], second[-1])[1:]
            worst = np.maximum(worst, mcdp_of(knots, gap, epsilons, people.resolution, ends))
    return worst


def _shape(rows: KeyedRows) -> tuple[int, int]:
    """The keys of rows, and how many numbers an entry has."""
    return len(rows.keys), 1 if rows.weights is None else 1 + LIMBS


def _frame(people: Predictions) -> tuple[float, float, float, float]:
    """What makes fractions of the score range of scores, as `units_of` does."""
    scale = range_scale(people.score_range)
    low, high = (scale * end for end in people.score_range)
    return (
        scale,
        low,
        high - low,
        threshold_reach(people.score_range[0], people.resolution, people.score_range),
    )


def _count(steps: Any, opened: BoolArray) -> int:
    """How many rows there are in the steps that are opened."""
    return int(steps[3][opened][:, :, 0].sum())


def _weights_of(entries: IntArray) -> NDArray[Any]:
    """The rows of entries, or their weights in extended precision."""
    return entries[0] if len(entries) == 1 else to_floats(carry(entries[1:]), np.longdouble)
