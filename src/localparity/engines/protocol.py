"""What writes an engine: a source of counts, and the counts that are made of it.

A first pass counts rows by the cells of a grid. The gap is exact at the cells' edges and bounded inside them.
The search of `localparity.metrics._exact` reads the cells that decide MCDP again, which makes it exact.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from localparity._types import BoolArray, Group, IntArray, ScoreRange
from localparity._validation import Argument, InputError, as_count, as_epsilons
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._coarsen import MAX_SCORES, cell_edges
from localparity.counts._rows import Key
from localparity.counts._weights import LIMBS
from localparity.metrics._exact import CellTable, Search
from localparity.metrics._mcdp import PAPER_EPSILONS

__all__ = ["CellSelection", "CellTable", "CountOptions", "ScoreSource", "count_source"]

LEVEL = 12
"""So many that few rows lie in the cells that decide, and so few that a core keeps their counts close by."""

_MAX_CELLS_READ = 2**16
_MOST_READ = 2**18
"""The most counts, of cells and groups, that are read again; cut into four parts they are `MAX_SCORES`."""

_MAX_LEVEL = 46


class CellSelection(NamedTuple):
    """The cells that a pass is restricted to: their numbers on the grid of ``2**level`` cells.

    Examples
    --------
    >>> import localparity as lp
    >>> lp.engines.protocol.CellSelection(level=2, numbers=np.array([1, 3])).level
    2
    """

    level: int
    numbers: IntArray


class ScoreSource(Protocol):
    """Rows that can be counted several times, wherever they are: what an engine implements.

    Attributes
    ----------
    score_range : tuple of float
        The lowest and the highest score there can be.
    resolution : float
        `localparity._scale.score_resolution` of the scores' dtype.
    max_refined : int
        The most cells or scores that one further pass may return.

    Examples
    --------
    The page "Add an engine" of the documentation has an engine for people in a list.

    >>> import localparity as lp
    >>> source = lp.engines.protocol.ScoreSource
    >>> sorted(name for name in dir(source) if name.startswith(("count", "estimate")))
    ['count_cells', 'count_scores', 'estimate_distinct']
    """

    score_range: ScoreRange
    resolution: float
    max_refined: int

    def count_cells(self, level: int, within: CellSelection | None = None) -> CellTable:
        """Count the rows by the cells of the grid of ``2**level`` cells.

        Cell i holds the scores above edge i - 1 and not above edge i, as in `cell_numbers`; cell 0 holds the
        lowest score there can be.

        Parameters
        ----------
        level : int
            The grid has ``2**level`` cells.
        within : CellSelection, optional
            Count only the rows in these cells.

        Returns
        -------
        CellTable
            The cells that have rows, by their numbers, with the same keys in the same order every time: every
            group, and with labels every group and label.
        """
        ...

    def count_scores(self, within: CellSelection | None = None) -> ScoreCounts:
        """Count the rows by their scores.

        Parameters
        ----------
        within : CellSelection, optional
            Count only the rows in these cells.

        Returns
        -------
        ScoreCounts
            Every score that has rows, by group and label.
        """
        ...

    def estimate_distinct(self) -> int:
        """Estimate the number of distinct scores, summed over groups and labels."""
        ...


@dataclass(frozen=True)
class CountOptions:
    """How the rows of a source are counted.

    Parameters
    ----------
    epsilons : sequence of float
        The half-widths of windows at which MCDP is exact, also on a grid.
    comparison : Comparison
        Who is compared there.
    max_scores : int
        The most distinct scores, summed over groups and labels, that are counted one by one.
    level : int
        Beyond it, scores are counted on a grid of ``2**level`` cells.

    Examples
    --------
    >>> import localparity as lp
    >>> lp.engines.protocol.CountOptions(epsilons=[0.05], level=16).comparison
    Comparison(criterion='demographic_parity', compare='between_groups', min_group_size=1)
    """

    epsilons: Sequence[float] = PAPER_EPSILONS
    comparison: Comparison = field(default_factory=Comparison)
    max_scores: int = MAX_SCORES
    level: int = LEVEL

    def __post_init__(self) -> None:
        as_epsilons(list(self.epsilons), "epsilons")
        as_count(self.max_scores, "max_scores")
        as_count(self.level, "level")


def count_source(source: ScoreSource, options: CountOptions) -> ScoreCounts:
    """Count the rows of a source: by score up to `max_scores`, else on a grid that is exact where it matters.

    The first pass is on the grid. Where every cell holds one score, no other is needed; where the scores fit
    `max_scores`, a second pass counts them one by one. Otherwise the cells that decide MCDP are read again,
    on ever finer grids, until it is exact for every pair. Where these are too many, as when several large
    groups are all but equal, it is exact for the worst pair alone; bounds remain only where tens of thousands
    of cells decide that too.

    Parameters
    ----------
    source : ScoreSource
        The rows.
    options : CountOptions
        How they are counted.

    Returns
    -------
    ScoreCounts
        The counts by group, and by label where the source has labels.

    Examples
    --------
    >>> import torch
    >>> import localparity as lp
    >>> from localparity.engines._torch import TorchScores
    >>> scores, groups = torch.tensor([0.2, 0.6, 0.4, 0.8]), torch.tensor([0, 0, 1, 1])
    >>> source, options = TorchScores(scores, groups), lp.engines.protocol.CountOptions()
    >>> lp.mcdp(lp.engines.protocol.count_source(source, options))
    0.5
    """
    table = first_table(source, options.level)
    known, occupied = table.known, table.rows > 0
    if not known.all():
        fewest = int(np.maximum(occupied.sum(axis=1), np.where(known, 0, 2)).sum())
        most = int(np.where(known[:, None], occupied, table.rows).sum())
        limit = options.max_scores
        if most <= limit or (fewest <= limit and source.estimate_distinct() <= limit):
            counts, sizes = source.count_scores(), table.rows.sum(axis=0).tolist()
            if [counts.atoms[key].size if key in counts.atoms else 0 for key in table.keys] != sizes:
                raise rows_changed()
            if sum(atoms.scores.size for atoms in counts.atoms.values()) <= limit:
                return counts
        table = _refined(table, source, options)
    return table.to_counts(source.score_range, source.resolution)


def first_table(source: ScoreSource, level: int) -> CellTable:
    """All rows of a source by the cells of a grid."""
    return _edge_to_edge(source.count_cells(level), level, source.score_range)


def search_of(table: CellTable, source: ScoreSource, options: CountOptions) -> Search:
    """The search for MCDP of every pair, given a table of all rows."""
    epsilons, sizes = np.asarray(options.epsilons, dtype=np.float64), table.rows.sum(axis=0)
    return Search(table.keys, sizes, options.comparison, epsilons, source.score_range, source.resolution)


def _refined(table: CellTable, source: ScoreSource, options: CountOptions) -> CellTable:
    """The table with the cells that decide MCDP of every pair, or of the worst alone, read again."""
    search, opener = search_of(table, source, options), SourceOpener(source, options.level)
    table, opened, _ = search.refine(table, opener)
    if opened.any():
        table, _, _ = replace(search, worst=True).refine(table, opener)
    return table


class SourceOpener:
    """Reads cells of a source again: on a finer grid, or by score where their rows are few."""

    def __init__(self, source: ScoreSource, level: int) -> None:
        self._source, self._level = source, level

    def __call__(self, table: CellTable, opened: BoolArray) -> CellTable | None:
        """The finer cells of those opened; None where more would be read than in a reasonable time."""
        source, cells = self._source, table.at(opened)
        numbers, rows = cells.numbers, int(cells.rows.sum())
        if numbers.size > _MAX_CELLS_READ or min(numbers.size * len(cells.keys), rows) > _MOST_READ:
            return None
        within = CellSelection(self._level, numbers)
        if rows <= source.max_refined or self._level >= _MAX_LEVEL:
            finer = table_of_scores(cells.keys, source.count_scores(within))
        else:
            finer_by = int(np.clip(np.log2(source.max_refined / numbers.size), 2, 10))
            self._level = min(self._level + finer_by, _MAX_LEVEL)
            counted = source.count_cells(self._level, within)
            finer = _edge_to_edge(counted, self._level, source.score_range)
        if finer.keys != cells.keys or not np.array_equal(finer.rows.sum(axis=0), cells.rows.sum(axis=0)):
            raise rows_changed()
        return finer


def table_of_scores(keys: list[Key], counts: ScoreCounts) -> CellTable:
    """Counts as a table in which every score is a cell."""
    weighted = any(atoms.units is not None for atoms in counts.atoms.values())
    scores = np.unique(np.concatenate([np.empty(0), *(atoms.scores for atoms in counts.atoms.values())]))
    table = CellTable.empty(keys, scores.size, weighted=weighted)
    for key, atoms in counts.atoms.items():
        places, column = np.searchsorted(scores, atoms.scores), keys.index(key)
        table.entries[places, column, 0] = atoms.rows
        if atoms.units is not None:
            table.entries[places, column, 1:] = atoms.units.reshape(2 * LIMBS, -1).T
    return replace(table, numbers=np.full(scores.size, -1), lowest=scores, highest=scores)


def _edge_to_edge(table: CellTable, level: int, score_range: ScoreRange) -> CellTable:
    """The table with each cell in which scores differ taken from one edge to the other."""
    several = np.flatnonzero(table.lowest < table.highest)
    lowest, highest, numbers = table.lowest.copy(), table.highest.copy(), table.numbers[several]
    lowest[several] = np.nextafter(cell_edges(numbers - 1, level, score_range), np.inf)
    highest[several] = cell_edges(numbers, level, score_range)
    return replace(table, lowest=lowest, highest=highest)


def check_weighted_groups(
    groups: Sequence[Group], weighted: Collection[Group], of_groups: Argument, of_weights: Argument
) -> None:
    """Raise a ValueError where there is one group only, or one without weight."""
    if len(groups) == 1:
        raise InputError(f"must have at least two groups, got {groups[0]!r} only", argument=of_groups)
    for group in groups:
        if group not in weighted:
            reason = f"must be > 0 in some row of group {group!r}, got 0 in all of them"
            raise InputError(reason, argument=of_weights)


def rows_changed(name: str = "the table") -> ValueError:
    """The error for rows that are others the second time."""
    return InputError("must have the same rows whenever it is read", argument=name)
