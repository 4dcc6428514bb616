"""Counts of tensors, made on their own device; only counts reach the host."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._scale import score_resolution
from localparity._types import Compare, Criterion, FloatArray, IntArray, ScoreRange
from localparity._validation import as_score_range, require
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.counts._coarsen import MAX_SCORES, cell_edges, cell_numbers
from localparity.counts._rows import Key
from localparity.counts._weights import LIMBS, carry
from localparity.engines import _torch_cells, _torch_kernels
from localparity.engines._torch_cells import (
    CellPlaces,
    CellTotals,
    DeviceRows,
    UnknownCodeError,
    as_flat_scores,
    code_rows,
    numpy_dtype,
    span_of,
    tensor_groups,
    tensor_labels,
    tensor_weights,
)
from localparity.engines.protocol import (
    CellSelection,
    CellTable,
    CountOptions,
    check_weighted_groups,
    count_source,
)
from localparity.metrics._mcdp import PAPER_EPSILONS

if TYPE_CHECKING:
    from torch import Tensor


LEVEL = 12
_SAMPLED = 2**14
_KEPT_SHARE = 4
"""One row in so many is copied at most."""

_PARTS = {"cuda": 2**24}
"""The most counters of parts by device; more do not fit the cache of a large GPU, and a CPU copies rows."""

_MOST_BITS = 14
_MOST_KEYS = 256
_MOST_ROWS = 2**31
"""Counters of parts have 32 bits."""

_MOST_CUT_LEVEL = 14
"""Parts are those of cells on a grid of so many levels at most, and the grid of parts has at most 30."""

_HEAVY = 2**-8
"""Where more of the rows than this lie in one cell, many may have one score."""


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
    NVIDIA GPU torch compiles the kernels that count on first use; at most a quarter of the rows is copied.

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
    """Tensors as a source of counts.

    A pass over some cells counts their parts, as many as fit, in one go where that pays; these stay on the
    device, and further passes add them up. Otherwise the rows of the cells are copied, and those are counted.
    """

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
        groups = tensor_groups(sensitive_features, scores)
        labels = None if y_true is None else tensor_labels(y_true, scores)
        weights = None if sample_weight is None else tensor_weights(sample_weight, scores)
        # Groups of one byte are looked at in a sample; the kernels say where there are others.
        self._counting = counting_of(torch, scores, weights)
        sampled = self._counting is _torch_kernels and labels is None and groups.element_size() == 1
        span = span_of(torch, groups[:: max(1, groups.numel() // _SAMPLED)] if sampled else groups)
        codes, first, self._all_keys = code_rows(torch, groups, labels, span)
        self._rows = DeviceRows(scores, codes, weights, first)
        self._present = None if weights is None else torch.unique(groups).tolist()
        self._keys: list[Key] = []
        self._heaviest = 0
        self._kept: tuple[CellSelection, DeviceRows] | None = None
        self._parts: tuple[CellPlaces, Tensor] | None = None
        self._was_cut = False

    def count_cells(self, level: int, within: CellSelection | None = None) -> CellTable:
        """Count the rows by the cells of a grid."""
        grid = self._grid(level, within)
        parts = None if within is None else self._sum_parts(grid)
        if within is None or parts is None:
            totals = self._count(grid, self._rows if within is None else self._inside(within))
            rows, only = totals.rows.cpu().numpy(), totals.only.cpu().numpy()
        else:
            totals, rows, only = None, parts.cpu().numpy(), None
        if within is None:
            self._note_keys(rows.any(axis=1))
            self._heaviest = int(rows.sum(axis=0).max())
        codes = [self._all_keys.index(key) for key in self._keys]
        places = np.flatnonzero(rows.any(axis=0))
        numbers = grid.numbers[places]
        if only is None:
            lowest, highest = self._ends(numbers, level)
        else:
            lowest, highest = np.where(np.isnan(only[places]), [[-np.inf], [np.inf]], only[places])
        entries = rows[codes][:, places, None].transpose(1, 0, 2)
        if totals is not None and totals.limbs is not None:
            limbs = totals.limbs[:, codes][:, :, places].cpu().numpy()
            units = carry(limbs.reshape(2, LIMBS, -1)).reshape(2 * LIMBS, len(codes), -1)
            entries = np.concatenate([entries, units.transpose(2, 1, 0)], axis=2)
        return CellTable(self._keys, numbers, lowest, highest, np.ascontiguousarray(entries, dtype=np.int64))

    def count_scores(self, within: CellSelection | None = None) -> ScoreCounts:
        """Count the rows by their scores, where it is known how many there are at most in little memory."""
        rows, grid = self._rows, self._grid(1 if within is None else within.level, within)
        if within is not None:
            parts = self._sum_parts(grid)
            rows = self._inside(within, None if parts is None else int(parts.sum()))
        codes, scores, sums = (
            part.cpu().numpy() for part in _torch_cells.count_runs(self._torch, rows, grid)
        )
        if within is None:
            self._note_keys(np.isin(np.arange(len(self._all_keys)), codes))
        ends = np.searchsorted(codes, np.arange(len(self._all_keys) + 1))
        atoms = {}
        for key in self._keys:
            code = self._all_keys.index(key)
            part = slice(ends[code], ends[code + 1])
            units = carry(sums[1:, part].reshape(2, LIMBS, -1)) if len(sums) > 1 else None
            atoms[key] = Atoms.of_counts(scores[part], sums[0, part], units)
        return ScoreCounts(atoms, self.score_range, self.resolution)

    def estimate_distinct(self) -> int:
        """Estimate the number of distinct scores, summed over groups and labels, from a sample."""
        torch, scores = self._torch, self._rows.scores
        generator = torch.Generator(scores.device).manual_seed(0)
        drawn = torch.randint(self._rows.size, (_SAMPLED,), generator=generator, device=scores.device)
        times = np.unique(scores[drawn].cpu().numpy(), return_counts=True)[1]
        once, twice = int((times == 1).sum()), int((times == 2).sum())
        return (times.size + once * (once - 1) // (2 * (twice + 1))) * len(self._all_keys)

    def _grid(self, level: int, within: CellSelection | None = None) -> CellPlaces:
        """The grid of ``2**level`` cells, or what lies of it within a selection."""
        return CellPlaces(self.score_range, len(self._all_keys), level, within)

    def _count(self, grid: CellPlaces, rows: DeviceRows) -> CellTotals:
        """Count rows by the places of a grid."""
        try:
            totals: CellTotals = self._counting.count_places(self._torch, rows, grid)
        except UnknownCodeError:
            codes = self._rows.codes
            codes, first, self._all_keys = code_rows(self._torch, codes, None, span_of(self._torch, codes))
            self._rows = self._rows._replace(codes=codes, first=first)
            return self._count(self._grid(grid.level), self._rows)
        return totals

    def _note_keys(self, occur: Any) -> None:
        """Note the groups that have rows, by code; one group only, or one without weight, is an error."""
        groups = list(dict.fromkeys(key[0] for key, has in zip(self._all_keys, occur, strict=True) if has))
        check_weighted_groups(self._present or groups, groups, "sensitive_features", "sample_weight")
        self._keys = [key for key in self._all_keys if key[0] in groups]

    def _ends(self, numbers: IntArray, level: int) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest score that there can be in cells, of the scores' dtype."""
        # On any other range, a score of few bits may stand for an end that it is not equal to.
        unit = self.score_range == (0.0, 1.0)
        dtype: Any = numpy_dtype(self._rows.scores) if unit else np.dtype(np.float64)
        low, high = (cell_edges(ends, level, self.score_range) for ends in (numbers - 1, numbers))
        lowest, highest = low.astype(dtype), high.astype(dtype)
        lowest = np.where(lowest <= low, np.nextafter(lowest, dtype.type(np.inf)), lowest)
        highest = np.where(highest > high, np.nextafter(highest, -dtype.type(np.inf)), highest)
        return lowest.astype(np.float64), highest.astype(np.float64)

    def _sum_parts(self, grid: CellPlaces) -> Tensor | None:
        """The rows of each key at the places of a grid, from the parts; None where these do not say."""
        torch, inner = self._torch, grid.within
        assert inner is not None
        if not self._was_cut:
            self._parts, self._was_cut = self._count_parts(inner), True
        if self._parts is None:
            return None
        finest, rows = self._parts
        outer = finest.within
        assert outer is not None
        if grid.level > finest.level or not _holds(outer, inner):
            return None
        if outer.level != inner.level or outer.numbers.size != inner.numbers.size:
            steps = inner.level - outer.level
            slots = np.searchsorted(outer.numbers, (inner.numbers - 1 >> steps) + 1)
            starts = (slots << steps) + (inner.numbers - 1 & (1 << steps) - 1)
            inside = torch.from_numpy(starts).to(rows.device)
            rows = rows.view(len(rows), -1, finest.splits >> steps)[:, inside]
        sums: Tensor = rows.reshape(len(rows), -1, 2 ** (finest.level - grid.level)).sum(2)
        return sums

    def _count_parts(self, within: CellSelection) -> tuple[CellPlaces, Tensor] | None:
        """Count the rows in some cells by as many parts of each as fit."""
        rows, n_keys = self._rows, len(self._all_keys)
        room = _PARTS.get(rows.scores.device.type, 0) // (n_keys * within.numbers.size)
        bits = min(_MOST_BITS, room.bit_length() - 1)
        fits = n_keys <= _MOST_KEYS and rows.size < _MOST_ROWS and within.level <= _MOST_CUT_LEVEL
        if rows.weights is not None or not fits or bits < 1:
            return None
        grid = self._grid(within.level + bits, within)
        return grid, self._counting.count_parts(self._torch, rows, grid, self._hot_parts(grid))

    def _hot_parts(self, grid: CellPlaces) -> IntArray:
        """The part of each cell that many rows may share, which are better counted apart, or -1."""
        assert grid.within is not None
        selected, bits = grid.within.numbers, grid.level - grid.within.level
        hot = np.full(selected.size, -1)
        if self._heaviest < _HEAVY * self._rows.size:
            return hot
        scores = self._rows.scores
        seen, times = np.unique(scores[:: -(-scores.numel() // _SAMPLED)].cpu().numpy(), return_counts=True)
        often = seen[np.argsort(times)[np.sort(times) >= _HEAVY * _SAMPLED / 4]].astype(np.float64)
        numbers = cell_numbers(often, grid.level, grid.score_range) - 1
        slots = np.searchsorted(selected, (numbers >> bits) + 1) % selected.size
        right = selected[slots] == (numbers >> bits) + 1
        hot[slots[right]] = numbers[right] & (2**bits - 1)
        return hot

    def _inside(self, within: CellSelection, most: int | None = None) -> DeviceRows:
        """Rows among which are all of those in some cells, and few others where they are few."""
        rows = self._rows
        if self._kept is not None and _holds(self._kept[0], within):
            rows = self._kept[1]
        capacity = min(rows.size, self._rows.size // _KEPT_SHARE, rows.size if most is None else most)
        grid = self._grid(within.level, within)
        found: DeviceRows | None = self._counting.collect_rows(self._torch, rows, grid, capacity)
        if found is None:
            return rows
        self._kept = within, found
        return found


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
