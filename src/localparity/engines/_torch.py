"""Counts of tensors, made on their own device; only counts reach the host."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._types import Compare, Criterion, FloatArray, IntArray, ScoreRange
from localparity._validation import as_score_range, require, score_resolution
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._bounded import MAX_SCORES
from localparity.counts._weights import LIMBS, Units, carry
from localparity.engines import _torch_cells, _torch_kernels
from localparity.engines._refine import (
    CellSelection,
    CountOptions,
    GroupCounts,
    check_group_weights,
    count_source,
)
from localparity.engines._torch_cells import Blocks, CellTotals, Grid
from localparity.engines._torch_rows import (
    TensorRows,
    UnknownCodeError,
    as_flat_scores,
    as_groups,
    as_labels,
    as_weights,
    code_rows,
    numpy_dtype,
    span_of,
)
from localparity.metrics._mcdp import PAPER_EPSILONS

if TYPE_CHECKING:
    from torch import Tensor

LEVEL = 12
_SAMPLED = 2**14
_KEPT_SHARE = 4
"""One row in so many is copied at most."""


def from_torch(
    y_score: Tensor,
    sensitive_features: Tensor,
    *,
    y_true: Tensor | None = None,
    sample_weight: Tensor | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    epsilons: Sequence[float] = PAPER_EPSILONS,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    max_scores: int = MAX_SCORES,
    level: int = LEVEL,
) -> ScoreCounts:
    """Count tensors on a GPU, or on the CPU, without copying the scores to the host.

    The counts are exact up to `max_scores` distinct scores. Beyond it, rows are counted in ``2**level``
    cells, bounds of the gap rule out almost every window, and only the cells that decide MCDP at `epsilons`
    are read again, on ever finer grids, until it is exact. Nothing is sorted but the last few rows. On an
    NVIDIA GPU kernels count that torch compiles on first use; at most a quarter of the rows is copied.

    Parameters
    ----------
    y_score : torch.Tensor
        Scores inside `score_range`, shape (n_samples,), of a floating dtype.
    sensitive_features : torch.Tensor
        The group of each row: integers or booleans.
    y_true : torch.Tensor, optional
        Labels 0 and 1, where the criterion needs them.
    sample_weight : torch.Tensor, optional
        Weights that are not negative.
    score_range : tuple of float
        The lowest and the highest score there can be.
    epsilons : sequence of float
        The half-widths of windows at which MCDP is exact, also on a grid.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    max_scores : int
        The most distinct scores, summed over groups and labels, that are counted one by one.
    level : int
        The first grid has ``2**level`` cells.

    Returns
    -------
    ScoreCounts
        Its groups are Python's own integers or booleans.

    Examples
    --------
    >>> import torch
    >>> import localparity as lp
    >>> counts = lp.engines.from_torch(torch.tensor([0.2, 0.4, 0.9]), torch.tensor([0, 0, 1]))
    >>> lp.mcdp(counts, epsilon=0.1)
    1.0
    """
    source = TorchScores(
        y_score,
        sensitive_features,
        y_true=y_true,
        sample_weight=sample_weight,
        score_range=as_score_range(score_range),
    )
    return count_source(source, CountOptions(epsilons, Comparison(criterion, compare), max_scores, level))


class TorchScores:
    """Tensors as a source of counts: the rows as they are and, once a pass was restricted, those inside."""

    # The host works on what a pass returns, and it should not be what takes the time.
    max_refined = 2**13

    def __init__(
        self,
        y_score: Tensor,
        sensitive_features: Tensor,
        *,
        y_true: Tensor | None = None,
        sample_weight: Tensor | None = None,
        score_range: ScoreRange = (0.0, 1.0),
    ) -> None:
        self._torch = torch = require("torch", extra="train")
        self.score_range = score_range
        scores = as_flat_scores(y_score)
        self.resolution = score_resolution(numpy_dtype(scores), score_range)
        groups = as_groups(sensitive_features, scores)
        labels = None if y_true is None else as_labels(y_true, scores)
        weights = None if sample_weight is None else as_weights(sample_weight, scores)
        # Groups of one byte are looked at in a sample; the kernels say where there are others.
        self._counting = counting_of(torch, scores, weights)
        sampled = self._counting is _torch_kernels and labels is None and groups.element_size() == 1
        span = span_of(torch, groups[:: max(1, groups.numel() // _SAMPLED)] if sampled else groups)
        codes, first, self.keys = code_rows(torch, groups, labels, span)
        self.rows = TensorRows(scores, codes, weights, first)
        self._present = None if weights is None else torch.unique(groups).tolist()
        self._kept: tuple[CellSelection, TensorRows] | None = None

    def count_cells(self, level: int, within: CellSelection | None = None) -> list[GroupCounts]:
        """Count the rows by the cells of a grid."""
        grid = self.grid(level, within)
        rows = self.rows if within is None else self._inside(within)
        totals = self.count_places(grid, rows)
        only, counted = totals.only.cpu().numpy(), totals.rows.cpu().numpy()
        lowest, highest = np.where(np.isnan(only), [[-np.inf], [np.inf]], only)
        limbs = None if totals.limbs is None else totals.limbs.cpu().numpy()
        if within is None:
            numbers = np.arange(grid.n_places)
        else:
            splits = np.arange(1, grid.splits + 1)
            numbers = ((within.numbers - 1)[:, None] * grid.splits + splits).ravel()
        found = []
        for code, (key, at_places) in enumerate(zip(self.keys, counted, strict=True)):
            if (places := np.flatnonzero(at_places)).size:
                units = None if limbs is None else _units_of(limbs[:, code, places])
                ends = lowest[places], highest[places]
                found.append(GroupCounts(key, numbers[places], at_places[places], *ends, units))
        return found if within is not None else self._checked(found)

    def grid(self, level: int, within: CellSelection | None = None) -> Grid:
        """The grid of ``2**level`` cells, or what lies of it within a selection."""
        return Grid(self.score_range, len(self.keys), level, within)

    def count_places(self, grid: Grid, rows: TensorRows) -> CellTotals:
        """Count rows by the places of a grid."""
        try:
            totals: CellTotals = self._counting.count_places(self._torch, rows, grid)
        except UnknownCodeError:
            codes = self.rows.codes
            codes, first, self.keys = code_rows(self._torch, codes, None, span_of(self._torch, codes))
            self.rows = self.rows._replace(codes=codes, first=first)
            return self.count_places(self.grid(grid.level), self.rows)
        return totals

    def count_parts(self, grid: Grid, hot: IntArray) -> Tensor:
        """Count the rows of each key by the places of a grid within a selection, on their device."""
        counted: Tensor = self._counting.count_parts(self._torch, self.rows, grid, hot)
        return counted

    def bound_blocks(self, parts: Tensor, blocks: Blocks) -> FloatArray:
        """The rows of each key in blocks of parts, then the bounds of the gap of each pair inside."""
        found: FloatArray = self._counting.bound_blocks(self._torch, parts, blocks).cpu().numpy()
        return found

    def count_scores(self, within: CellSelection | None = None, most: int | None = None) -> list[GroupCounts]:
        """Count the rows by their scores, where it is known how many there are at most in little memory."""
        rows = self.rows if within is None else self._inside(within, most)
        grid = self.grid(1 if within is None else within.level, within)
        codes, scores, sums = (
            part.cpu().numpy() for part in _torch_cells.count_runs(self._torch, rows, grid)
        )
        ends = np.searchsorted(codes, np.arange(len(self.keys) + 1))
        found = []
        for key, begin, end in zip(self.keys, ends[:-1], ends[1:], strict=True):
            if begin < end:
                at = scores[begin:end]
                units = _units_of(sums[1:, begin:end]) if len(sums) > 1 else None
                found.append(GroupCounts(key, at, sums[0, begin:end], at, at, units))
        return found if within is not None else self._checked(found)

    def estimate_distinct(self) -> int:
        """Estimate the number of distinct scores, summed over groups and labels, from a sample."""
        torch, scores = self._torch, self.rows.scores
        generator = torch.Generator(scores.device).manual_seed(0)
        drawn = torch.randint(self.rows.size, (_SAMPLED,), generator=generator, device=scores.device)
        times = np.unique(scores[drawn].cpu().numpy(), return_counts=True)[1]
        once, twice = int((times == 1).sum()), int((times == 2).sum())
        return (times.size + once * (once - 1) // (2 * (twice + 1))) * len(self.keys)

    def _inside(self, within: CellSelection, most: int | None = None) -> TensorRows:
        """Rows among which are all of those in some cells, and few others where they are few."""
        rows = self.rows
        if self._kept is not None and _holds(self._kept[0], within):
            rows = self._kept[1]
        grid = self.grid(within.level, within)
        capacity = min(rows.size, self.rows.size // _KEPT_SHARE, rows.size if most is None else most)
        found: TensorRows | None = self._counting.collect_rows(self._torch, rows, grid, capacity)
        if found is None:
            return rows
        self._kept = within, found
        return found

    def _checked(self, counted: list[GroupCounts]) -> list[GroupCounts]:
        """Raise a ValueError where there is one group only, or one without weight."""
        groups = list(dict.fromkeys(each.key[0] for each in counted))
        check_group_weights(self._present or groups, groups, "sensitive_features", "sample_weight")
        return counted


def counting_of(torch: Any, scores: Tensor, weights: Tensor | None = None) -> ModuleType:
    """The module that counts rows: compiled kernels where they can run, operations of torch elsewhere."""
    compiled = weights is None and _torch_kernels.can_compile(torch, scores)
    return _torch_kernels if compiled else _torch_cells


def _holds(outer: CellSelection, inner: CellSelection) -> bool:
    """Whether every cell of a selection lies in a cell of another one."""
    if outer.level > inner.level:
        return False
    parents = ((inner.numbers - 1) >> (inner.level - outer.level)) + 1
    return bool(np.isin(parents, outer.numbers).all())


def _units_of(limbs: IntArray) -> Units:
    """The weights and the squared weights in whole units, from the sums of their limbs."""
    return carry(limbs.reshape(2, LIMBS, -1))
