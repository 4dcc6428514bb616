"""Counts of tensors, made on their own device; only counts reach the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._scale import score_resolution
from localparity._types import BoolArray, Compare, Criterion, FloatArray, IntArray, ScoreRange
from localparity._validation import as_score_range, require
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.counts._coarsen import MAX_SCORES, cell_edges, cell_numbers
from localparity.counts._rows import Key
from localparity.counts._weights import LIMBS, carry
from localparity.engines import _torch_cells, _torch_kernels
from localparity.engines._torch_cells import (
    Blocks,
    CellPlaces,
    CellTotals,
    DeviceRows,
    as_flat_scores,
    bound_blocks,
    check_range,
    code_rows,
    numpy_dtype,
    tensor_groups,
    tensor_labels,
    tensor_weights,
)
from localparity.engines.protocol import (
    CellSelection,
    CellTable,
    CountOptions,
    SourceOpener,
    check_weighted_groups,
    count_source,
    first_table,
    search_of,
)
from localparity.metrics._mcdp import PAPER_EPSILONS

if TYPE_CHECKING:
    from torch import Tensor


LEVEL = 13
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

_FEW_ROWS = 2**14
_TOGETHER = 3
"""The first look is at cells of a grid so many levels coarser, since most are far from deciding."""

_MOST_PAIRS = 32
_BLOCKS = 2**11
_WIDTH = 64


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
    worst_only: bool = False,
) -> ScoreCounts:
    """Count tensors on a GPU, or on the CPU, without copying the scores to the host.

    The counts are exact up to `max_scores` distinct scores. Beyond it, rows are counted in ``2**level``
    cells, bounds of the gap rule out almost every window, and only the cells that decide MCDP at `epsilons`
    are read again, on ever finer grids, until it is exact. Nothing is sorted but the last few rows. On an
    NVIDIA GPU torch compiles the kernels that count on first use; at most a quarter of the rows is copied.

    Where `lp.mcdp` is all that will be asked of the counts, `worst_only` takes a fraction of the time.

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
    worst_only : bool
        Whether the counts are for `mcdp` of the worst pair alone. It is exact at `epsilons`; everything else
        computed from the counts is as coarse as the grid.

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
    >>> quick = lp.engines.from_torch(torch.rand(1000), torch.arange(1000) % 2, worst_only=True)
    """
    source = TorchScores(
        y_score,
        sensitive_features,
        y_true=y_true,
        sample_weight=sample_weight,
        score_range=as_score_range(score_range),
    )
    options = CountOptions(epsilons, Comparison(criterion, compare), max_scores, level)
    return count_worst(source, options) if worst_only else count_source(source, options)


class TorchScores:
    """Tensors as a source of counts. A pass over some cells copies their rows for the passes that follow."""

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
        codes, first, self._all_keys = code_rows(torch, groups, labels)
        self._rows = DeviceRows(scores, codes, weights, first)
        self._present = None if weights is None else torch.unique(groups).tolist()
        self._counting = counting_of(torch, scores, weights)
        self._keys: list[Key] = []
        self._copied: tuple[CellSelection, DeviceRows] | None = None

    def count_cells(self, level: int, within: CellSelection | None = None) -> CellTable:
        """Count the rows by the cells of a grid."""
        grid, rows = self._grid(level, within), self._rows if within is None else self._inside(within)
        totals: CellTotals = self._counting.count_places(self._torch, rows, grid)
        counted, only = totals.rows.cpu().numpy(), totals.only.cpu().numpy()
        if within is None:
            self._note_keys(counted.any(axis=1))
        places, codes = np.flatnonzero(counted.any(axis=0)), self._codes
        ends = np.where(np.isnan(only[places]), [[-np.inf], [np.inf]], only[places])
        entries = counted[codes][:, places, None].transpose(1, 0, 2)
        if totals.limbs is not None:
            limbs = totals.limbs[:, codes][:, :, places].cpu().numpy()
            units = carry(limbs.reshape(2, LIMBS, -1)).reshape(2 * LIMBS, len(codes), -1)
            entries = np.concatenate([entries, units.transpose(2, 1, 0)], axis=2)
        entries = np.ascontiguousarray(entries, dtype=np.int64)
        return CellTable(self._keys, grid.numbers[places], ends[0], ends[1], entries)

    def count_scores(self, within: CellSelection | None = None) -> ScoreCounts:
        """Count the rows by their scores."""
        rows = self._rows if within is None else self._inside(within)
        if within is None:
            check_range(rows.scores, self.score_range)
        if rows.size <= _FEW_ROWS:  # which take the CPU less time than it takes to tell a GPU
            rows = rows.on_cpu()
        copied = self._copied is not None and self._copied[0] is within
        grid = self._grid(1) if within is None or copied else self._grid(within.level, within)
        runs = _torch_cells.count_runs(self._torch, rows, grid)
        codes, scores, sums = (part.cpu().numpy() for part in runs)
        if within is None:
            self._note_keys(np.isin(np.arange(len(self._all_keys)), codes))
        ends = np.searchsorted(codes, np.arange(len(self._all_keys) + 1))
        atoms = {}
        for key, code in zip(self._keys, self._codes, strict=True):
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

    def count_parts(self, within: CellSelection, heaviest: int) -> tuple[CellPlaces, Tensor] | None:
        """Count the rows in some cells by as many parts of each as fit, by key; None where none does.

        `heaviest` is the number of rows in the cell that has most of them.
        """
        rows, n_keys = self._rows, len(self._all_keys)
        room = _PARTS.get(rows.scores.device.type, 0) // (n_keys * within.numbers.size)
        bits = min(_MOST_BITS, room.bit_length() - 1)
        fits = n_keys <= _MOST_KEYS and rows.size < _MOST_ROWS and within.level <= _MOST_CUT_LEVEL
        if rows.weights is not None or not fits or bits < 1:
            return None
        grid = self._grid(within.level + bits, within)
        hot = np.full(within.numbers.size, -1)
        if heaviest >= _HEAVY * rows.size:
            self._find_hot_parts(grid, hot)
        parts = self._counting.count_parts(self._torch, rows, grid, hot)
        return grid, parts[self._torch.tensor(self._codes, device=parts.device)]

    def _find_hot_parts(self, grid: CellPlaces, hot: IntArray) -> None:
        """Note the part of each cell that many rows may share, which are better counted apart."""
        assert grid.within is not None
        selected, bits = grid.within.numbers, grid.level - grid.within.level
        scores = self._rows.scores
        sample = scores[:: -(-scores.numel() // _SAMPLED)].cpu().numpy()
        seen, times = np.unique(sample, return_counts=True)
        often = seen[np.argsort(times)[np.sort(times) >= _HEAVY * _SAMPLED / 4]].astype(np.float64)
        numbers = cell_numbers(often, grid.level, grid.score_range) - 1
        slots = np.searchsorted(selected, (numbers >> bits) + 1) % selected.size
        right = selected[slots] == (numbers >> bits) + 1
        hot[slots[right]] = numbers[right] & (2**bits - 1)

    def part_ends(self, numbers: IntArray, level: int) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest score that there can be in cells, of the scores' dtype."""
        # On any other range, a score of few bits may stand for an end that it is not equal to.
        unit = self.score_range == (0.0, 1.0)
        dtype: Any = numpy_dtype(self._rows.scores) if unit else np.dtype(np.float64)
        low, high = (cell_edges(ends, level, self.score_range) for ends in (numbers - 1, numbers))
        lowest, highest = low.astype(dtype), high.astype(dtype)
        lowest = np.where(lowest <= low, np.nextafter(lowest, dtype.type(np.inf)), lowest)
        highest = np.where(highest > high, np.nextafter(highest, -dtype.type(np.inf)), highest)
        return lowest.astype(np.float64), highest.astype(np.float64)

    @property
    def _codes(self) -> list[int]:
        """The code of each key."""
        return [self._all_keys.index(key) for key in self._keys]

    def _grid(self, level: int, within: CellSelection | None = None) -> CellPlaces:
        """The grid of ``2**level`` cells, or what lies of it within a selection."""
        return CellPlaces(self.score_range, len(self._all_keys), level, within)

    def _note_keys(self, occur: Any) -> None:
        """Note the groups that have rows, by code; one group only, or one without weight, is an error."""
        groups = list(dict.fromkeys(key[0] for key, has in zip(self._all_keys, occur, strict=True) if has))
        check_weighted_groups(self._present or groups, groups, "sensitive_features", "sample_weight")
        self._keys = [key for key in self._all_keys if key[0] in groups]

    def _inside(self, within: CellSelection) -> DeviceRows:
        """Rows among which are all of those in some cells, and few others where they are few."""
        rows = self._rows
        if self._copied is not None and _holds(self._copied[0], within):
            rows = self._copied[1]
        capacity = min(rows.size, self._rows.size // _KEPT_SHARE)
        grid = self._grid(within.level, within)
        inside: DeviceRows | None = self._counting.collect_rows(self._torch, rows, grid, capacity)
        if inside is None:
            return rows
        self._copied = within, inside
        return inside


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


# MCDP of the worst pair alone.


def count_worst(source: TorchScores, options: CountOptions) -> ScoreCounts:
    """Counts that have MCDP of the worst pair, by the search with its parts of cells on the device."""
    cells = first_table(source, options.level)
    search = replace(search_of(cells, source, options), worst=True)
    table, parents = _together(cells)
    opened, matters = search.decide(table)
    table = table.with_finer(opened, cells.at(opened[parents]))
    opened, matters = search.decide(table, matters)
    opener = SourceOpener(source, options.level)
    if np.count_nonzero(matters) <= _MOST_PAIRS:
        opener = PartsOpener(source, options.level, search.sides, matters)
    table, opened, _ = search.refine(table, opener, (opened, matters))
    if opened.any():  # so many that bounds remain, which these counts could not tell
        return count_source(source, options)
    return table.to_counts(source.score_range, source.resolution)


def _together(cells: CellTable) -> tuple[CellTable, IntArray]:
    """The cells of a grid a few at a time, and the place of each one's."""
    begins = np.diff((cells.numbers - 1) >> _TOGETHER, prepend=-2) != 0
    parents, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    last = np.append(first[1:], begins.size) - 1
    entries = np.add.reduceat(cells.entries, first, axis=0)
    table = CellTable(cells.keys, cells.numbers[first], cells.lowest[first], cells.highest[last], entries)
    return table, parents


class PartsOpener(SourceOpener):
    """Opens cells by thousands of parts of each, which one pass over the rows counts and the device keeps.

    Cells are cut into blocks of parts. The parts bound the gap inside a block far more closely than its rows
    do, so that few blocks decide and are cut again. Once they are single parts, the rows are read again.
    """

    def __init__(self, source: TorchScores, level: int, sides: BoolArray, matters: BoolArray) -> None:
        super().__init__(source, level)
        self._tensors, self._sides, self._matters = source, sides[matters], matters
        self._parts: Tensor | None = None
        self._starts, self._width, self._tied = np.empty(0, dtype=np.int64), 0, False

    def __call__(self, table: CellTable, opened: BoolArray) -> CellTable | None:
        """The blocks of the cells opened."""
        numbers = table.numbers[opened]
        if self._parts is None:
            heaviest = int(table.rows[opened].sum(axis=1).max())
            counted = self._tensors.count_parts(CellSelection(self._level, numbers), heaviest)
            if counted is not None:
                self._parts, self._width = counted[1], counted[0].splits
                self._starts = np.arange(numbers.size) * self._width
        elif self._width > 1:
            self._starts = self._starts[opened[table.numbers >= 0]]
        if self._width <= 1:
            return super().__call__(table, opened)
        splits = min(self._width, _WIDTH) if self._tied else _splits(self._width, numbers.size)
        blocks = self._bound(table, opened, splits)
        rows, gaps = (part.cpu().numpy() for part in blocks)
        self._width //= splits
        self._level += splits.bit_length() - 1
        occupied = rows.any(axis=0)
        self._tied = bool(np.count_nonzero(occupied) <= numbers.size)  # one score a block
        numbers = ((numbers - 1)[:, None] * splits + np.arange(1, splits + 1)).ravel()[occupied]
        self._starts = (self._starts[:, None] + np.arange(splits) * self._width).ravel()[occupied]
        entries = np.ascontiguousarray(rows.T[occupied, :, None])
        ends = self._tensors.part_ends(numbers, self._level)
        return CellTable(table.keys, numbers, *ends, entries, self._all_gaps(gaps[..., occupied]))

    def _bound(self, table: CellTable, opened: BoolArray, splits: int) -> tuple[Tensor, Tensor]:
        """The rows of each key in the blocks of cells, and the bounds of the gap of each pair inside."""
        assert self._parts is not None
        upto = np.cumsum(table.rows, axis=0)
        below = np.ascontiguousarray((upto - table.rows)[opened].T)
        blocks = Blocks(self._starts, self._width, splits, below)
        return bound_blocks(require("torch", extra="train"), self._parts, blocks, self._sides, upto[-1])

    def _all_gaps(self, gaps: FloatArray) -> FloatArray:
        """The bounds by label and pair, where those that do not matter have none."""
        known = np.empty((*self._matters.shape, *gaps.shape[1:]))
        known[:, :, 0], known[:, :, 1] = -np.inf, np.inf
        known[self._matters] = gaps
        return known


def _splits(width: int, blocks: int) -> int:
    """Into how many each of some blocks of parts is cut: at once into single parts, or not too finely."""
    if width * blocks <= 2 * _BLOCKS:
        return width
    most = 1 << max(2, (_BLOCKS // blocks).bit_length() - 1)
    return min(width, most, max(2, width // _WIDTH))
