"""Rows in memory, counted in the cells of a grid or by their scores, as often as asked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from localparity._types import IntArray, ScoreRange
from localparity.counts._bounded import cell_numbers
from localparity.counts._cell_counts import CellCounts
from localparity.counts._keyed_rows import Key, KeyedRows
from localparity.counts._weights import carry
from localparity.engines._refine import CellSelection, GroupCounts


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows in memory.

    Attributes
    ----------
    rows : KeyedRows
        The rows.
    score_range : tuple of float
        The lowest and the highest score there can be.
    """

    rows: KeyedRows
    score_range: ScoreRange

    def within(self, cells: CellSelection) -> HeldRows:
        """The rows in some cells."""
        numbers = cell_numbers(self.rows.scores, cells.level, self.score_range)
        places = np.minimum(np.searchsorted(cells.numbers, numbers), cells.numbers.size - 1)
        inside = np.flatnonzero(cells.numbers[places] == numbers)
        return replace(self, rows=self.rows.take(inside))

    def count_cells(self, level: int) -> list[GroupCounts]:
        """Count the rows by the cells of a grid."""
        numbers, cells = np.unique(
            cell_numbers(self.rows.scores, level, self.score_range), return_inverse=True
        )
        counts = CellCounts.empty(self.rows.keys, numbers.size, weighted=self.rows.weights is not None)
        counts.add_at(cells, self.rows)
        return group_counts(counts, numbers)

    def count_scores(self) -> list[GroupCounts]:
        """Count the rows by their scores."""
        return [
            GroupCounts(key, atoms.scores, atoms.rows, atoms.scores, atoms.scores, atoms.units)
            for key, atoms in self.rows.atoms().items()
            if atoms.size
        ]


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
