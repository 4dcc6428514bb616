"""MCDP at given epsilons, exactly, without sorting all rows.

Rows are counted in cells of scores. The gap between two groups is exact at the end of each cell and bounded
inside it, which bounds MCDP and rules out almost every cell. Those that are left are cut again, and the rows
of those that still decide are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from localparity._types import BoolArray, FloatArray, Group, IntArray, ScoreRange
from localparity.counts._cells import CellCounts, Grid
from localparity.counts._comparison import Comparison
from localparity.counts._rows import KeyedRows
from localparity.counts._score_counts import Data, ScoreCounts
from localparity.metrics._gap_curve import SortedRows, each_gap_curve, units_of
from localparity.metrics._kernels import bound_pairs, open_cells
from localparity.metrics._profile import reach_bounds
from localparity.metrics._worst import worst_in_cells
from localparity.predictions import Predictions

_CELLS_BY_ROOT = 4.0
_MOST_CELLS = 2**14
_MOST_KEYS = 64
_FEW_ROWS = 2**14
_LEAST_PARTS = 16
_SLACK = 1e-12
_SAMPLED = 256
_MOST_PLACES = 2**26


@dataclass(frozen=True, eq=False)
class Bounds:
    """What cells say of MCDP under one label.

    Attributes
    ----------
    columns : list of ndarray
        The keys of each group, and of everyone last.
    begins : ndarray
        Where each cell begins and ends, as fractions of the score range.
    shares : ndarray of shape (groups, cells + 1)
        The share of each group, and of everyone last, before the first cell and up to the end of each.
    pairs : ndarray of shape (pairs, 2)
        The rows of `shares` that are compared.
    least, most : ndarray of shape (pairs, epsilons)
        The bounds of MCDP.
    """

    columns: list[IntArray]
    begins: FloatArray
    shares: FloatArray
    pairs: IntArray
    least: FloatArray
    most: FloatArray


@dataclass(frozen=True, eq=False)
class Question:
    """Of whom MCDP is asked, and at which epsilons."""

    groups: tuple[Group, ...]
    score_range: ScoreRange
    resolution: float
    comparison: Comparison
    epsilons: FloatArray

    @cached_property
    def _reach(self) -> FloatArray:
        """The half-widths that runs must exceed: to carry a window whatever the rounding, and at all."""
        return reach_bounds(self.epsilons, self.resolution)

    def bounds(self, cells: CellCounts) -> list[Bounds]:
        """What cells say of MCDP, for each label that is compared."""
        ends = np.stack([cells.lowest, cells.highest], axis=1).ravel()
        begins = units_of(ends, self.score_range, self.resolution)
        found = []
        for label in self.comparison.labels:
            columns, pairs = self._compared(cells, label)
            below = np.stack([cells.below(each, np.float64) for each in columns]).astype(np.float64)
            shares = below / np.maximum(below[:, -1:], np.finfo(np.float64).tiny)
            given = begins, cells.known, shares, pairs
            least, most = bound_pairs(*given, self._reach, _SLACK, False)
            found.append(Bounds(columns, begins, shares, pairs, least, most))
        return found

    def _compared(self, cells: CellCounts, label: int | None) -> tuple[list[IntArray], IntArray]:
        """The keys of each group, and of everyone last, and the pairs of the groups that are large enough."""
        columns = self._columns(cells, label)
        large = np.array([*self.sizes(cells, label), np.inf]) >= max(1, self.comparison.min_group_size)
        pairs = self.comparison.pair_places(self.groups)
        return [*columns, np.concatenate(columns)], pairs[large[pairs].all(axis=1)]

    def _columns(self, cells: CellCounts, label: int | None) -> list[IntArray]:
        """The keys of each group under a label."""
        columns: dict[Group, list[int]] = {group: [] for group in self.groups}
        for column, (group, of) in enumerate(cells.keys):
            if label in (None, of):
                columns[group].append(column)
        return [np.array(each, dtype=np.int64) for each in columns.values()]

    def sizes(self, cells: CellCounts, label: int | None) -> list[int]:
        """How many rows each group has under a label."""
        rows = cells.rows.sum(axis=0)
        return [int(rows[each].sum()) for each in self._columns(cells, label)]

    def opened(self, cells: CellCounts, bounds: list[Bounds], *, worst: bool = False) -> BoolArray:
        """The cells whose rows must be known to know MCDP of each pair, or of the worst pair alone."""
        opened = np.zeros(cells.known.size, dtype=bool)
        floor = np.max([found.least.max(axis=0, initial=0.0) for found in bounds], axis=0) if worst else 0.0
        for found in bounds:
            matters = (found.most >= floor).any(axis=1)
            given = found.begins, cells.known, found.shares, found.pairs[matters]
            least, most = np.maximum(found.least, floor)[matters], found.most[matters]
            opened |= open_cells(*given, least, most, self._reach[1], _SLACK)
        # What was not opened in coarser cells, and has no number since, does not decide.
        return opened & (cells.numbers >= 0)


def _in_cells(predictions: Predictions, few: int) -> bool:
    """Whether rows are counted in cells: more than a few, and not of very many groups."""
    n_keys = len(predictions.groups) * (1 if predictions.labels is None else 2)
    return len(predictions) > few and n_keys <= _MOST_KEYS and predictions.clusters is None


def cells_for(question: Question, predictions: Predictions, n_jobs: int) -> CellCounts | None:
    """Rows counted so that the answer to a question is exact.

    None where sorting all rows is quicker, or the only way: few rows, many groups, or many rows that decide.
    """
    if not _in_cells(predictions, _FEW_ROWS):
        return None
    rows = KeyedRows.of(predictions)
    size = rows.scores.size
    n_cells = min(_MOST_CELLS, 1 + int(_CELLS_BY_ROOT * size**0.5))
    grid = Grid.over(rows.scores, n_cells)
    cells = CellCounts.of(rows, grid, n_jobs=n_jobs)
    opened = question.opened(cells, question.bounds(cells))
    if 4 * cells.rows[opened].sum() > size:
        return None
    if opened.any():
        rows = cells.find(rows, grid, opened, n_jobs)
        if rows.scores.size > _FEW_ROWS:
            numbers = cells.numbers[opened]
            grid = grid.cut(numbers, max(_LEAST_PARTS, n_cells // numbers.size))
            cells = cells.with_finer(opened, CellCounts.of(rows, grid, n_jobs=n_jobs))
            opened = question.opened(cells, question.bounds(cells))
            rows = cells.find(rows, grid, opened, n_jobs)
    if opened.any():
        if rows.scores.size * len(rows.keys) > _MOST_PLACES:
            return None
        cells = cells.with_finer(opened, CellCounts.of_scores(rows))
    return cells


def _people(predictions: Predictions) -> tuple[tuple[Group, ...], ScoreRange, float]:
    """What a question says of predictions."""
    return predictions.groups, predictions.score_range, predictions.resolution


def worst_mcdp(data: Data, comparison: Comparison, epsilons: FloatArray, n_jobs: int = 1) -> FloatArray:
    """MCDP of the worst pair at each epsilon."""
    if not epsilons.size:
        return np.zeros(0)
    if isinstance(data, Predictions):
        if _in_cells(data, _FEW_ROWS // 8) and not _few_scores(data.scores):
            found = worst_in_cells(data, comparison, epsilons, n_jobs)
            if found is not None:
                return found
        if not _in_cells(data, _FEW_ROWS) and data.exchangeable:
            return _worst_sorted(data, comparison, epsilons)
        data = count_for(data, comparison, epsilons, n_jobs)
    curves = each_gap_curve(data, comparison)
    return np.asarray(np.max([curve.mcdp_at(epsilons) for curve in curves], axis=0))


def _few_scores(scores: FloatArray) -> bool:
    """Whether there are so few distinct scores that rows of one score are best counted together."""
    sample = scores[:: max(1, scores.size // _SAMPLED)]
    return np.unique(sample).size < 0.9 * sample.size


def _worst_sorted(predictions: Predictions, comparison: Comparison, epsilons: FloatArray) -> FloatArray:
    """The same from all rows sorted; a pair with no gap as large as the worst MCDP is passed over."""
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
    """Count rows so that MCDP at some epsilons is exact for every pair of groups that are large enough."""
    found = cells_for(Question(*_people(predictions), comparison, epsilons), predictions, n_jobs)
    if found is None:
        return ScoreCounts.from_predictions(predictions)
    return found.to_counts(predictions.score_range, predictions.resolution)
