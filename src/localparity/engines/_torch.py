"""Counts of tensors, made on their own device; only counts reach the host."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from localparity._scale import score_resolution
from localparity._types import BoolArray, Compare, Criterion, FloatArray, IntArray, ScoreRange
from localparity._validation import as_epsilons, as_score_range, require
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._coarsen import MAX_SCORES, cell_edges, cell_numbers
from localparity.counts._comparison import check_sizes, require_labels
from localparity.counts._weights import LIMBS, Units, carry
from localparity.engines import _torch_cells, _torch_kernels
from localparity.engines._search_kernels import bound_worst
from localparity.engines._source import (
    CellSelection,
    CountOptions,
    GroupCounts,
    check_group_weights,
    count_source,
)
from localparity.engines._torch_cells import (
    Blocks,
    CellTotals,
    Grid,
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
from localparity.metrics import mcdp
from localparity.metrics._gap_curve import gap_between, units_of
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.metrics._profile import mcdp_of, reach_bounds

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


# The search for the scores that decide MCDP of tensors, in two passes over the rows.
#
# The first pass counts rows in cells of scores, the second those of the cells that decide in thousands of
# parts of each. The parts stay on the device and bound the gap inside blocks of them, far more closely than
# the rows of a block alone. Only the blocks that still decide are looked into, until each of their scores is
# known.


MOST_KEYS = 256
MOST_ROWS = 2**31
"""Counters have 32 bits, and a block of threads holds some thousands of them."""

_LEVEL = 13
_COUNTERS = 2**14
_TOGETHER = 3
"""The first look is at cells of a grid so many levels coarser."""

_PARTS = 2**24
"""More counters do not fit the cache of a large GPU."""

_MOST_BITS = 14
_BLOCKS = 2**11
_WIDTH = 64
_HEAVY = 2**-8
"""Where more of the rows than this lie in one cell, many may have one score."""

_FEW_ROWS = 2**20


class Cells(NamedTuple):
    """Rows counted in cells of scores, which ascend: a column for each cell.

    Its rows are the lowest and the highest score that there can be in each cell, its number on the finest
    grid so far, -1 where it belongs to a coarser one, the rows of each key, and for each pair the least and
    the greatest signed gap inside, as far as more is known of these than the rows say.
    """

    table: FloatArray
    n_keys: int

    @classmethod
    def of(cls, ends: Any, numbers: IntArray, rows: Any, gaps: FloatArray) -> Cells:
        """Cells of which the gaps have the shape (2, pairs, cells)."""
        parts = [np.stack([*ends, numbers]), rows, gaps.reshape(-1, numbers.size)]
        return cls(np.concatenate(parts), len(rows))

    def below(self, cells: BoolArray) -> tuple[FloatArray, FloatArray]:
        """The rows of each key below some cells, and in all."""
        places, upto = np.flatnonzero(cells), np.cumsum(self.rows, axis=1)
        return upto.take(places, axis=1) - self.rows.take(places, axis=1), upto[:, -1]

    @property
    def ends(self) -> FloatArray:
        """The lowest and the highest score of each cell."""
        return self.table[:2]

    @property
    def numbers(self) -> IntArray:
        """The numbers of the cells."""
        return np.asarray(self.table[2].astype(np.int64))

    @property
    def rows(self) -> FloatArray:
        """The rows of each key."""
        return self.table[3 : 3 + self.n_keys]

    @property
    def gaps(self) -> FloatArray:
        """What the gap of each pair lies between inside."""
        return self.table[3 + self.n_keys :].reshape(2, -1, self.table.shape[1])

    @property
    def known(self) -> BoolArray:
        """Whether all rows of a cell have one score."""
        return np.asarray(self.table[0] == self.table[1])

    def replace(self, opened: BoolArray, finer: Cells) -> Cells:
        """The cells with some of them replaced by finer ones of the same rows."""
        table = np.concatenate([self.table, finer.table], axis=1)
        table[2, : opened.size] = -1.0
        kept = np.concatenate([np.flatnonzero(~opened), np.arange(opened.size, table.shape[1])])
        order = kept[np.argsort(table[1].take(kept), kind="stable")]
        return self._replace(table=table.take(order, axis=1))


class Search:
    """MCDP of the worst pair of the rows of a source."""

    def __init__(self, source: TorchScores, comparison: Comparison, epsilons: FloatArray) -> None:
        self._torch = require("torch", extra="train")
        self._source = source
        self._comparison = comparison
        self._epsilons = np.sort(epsilons)
        self._order = np.argsort(np.argsort(epsilons))
        self._reach = reach_bounds(self._epsilons, source.resolution)
        self._least = np.zeros(epsilons.size)
        # On any other range, a score of few bits may stand for an end that it is not equal to.
        unit = source.score_range == (0.0, 1.0)
        self._dtype: Any = numpy_dtype(source.rows.scores) if unit else np.dtype(np.float64)

    def mcdp(self) -> FloatArray:
        """MCDP of the worst pair at each epsilon."""
        level = min(_LEVEL, (_COUNTERS // len(self._source.keys)).bit_length() - 1)
        numbers, rows, only = self._count(self._source.grid(level))
        self._sides = self._compared(rows.sum(axis=1))
        # Most of the cells are far from deciding, and are looked at a few together.
        parents = (numbers - 1 >> _TOGETHER) + 1
        begins = np.flatnonzero(np.diff(parents, prepend=-1))
        cells = self._cells(parents[begins], level - _TOGETHER, np.add.reduceat(rows, begins, axis=1))
        matters, opened = self._bound(cells)
        self._sides = self._sides[:, matters]
        near = np.isin(parents, cells.numbers[opened])
        cells = Cells.of(cells.ends, cells.numbers, cells.rows, self._unknown(opened.size))
        cells = cells.replace(opened, self._cells(numbers[near], level, rows[:, near], only[near]))
        _, opened = self._bound(cells)
        if opened.any():
            cells = self._look_into(level, cells, opened)
        return self._answer(cells)[self._order]

    def _count(self, grid: Grid) -> tuple[IntArray, IntArray, FloatArray]:
        """The cells of a grid that have rows, how many, and the one score in each or NaN."""
        totals = self._source.count_places(grid, self._source.rows)
        only, counted = totals.only.cpu().numpy(), totals.rows.cpu().numpy()
        kept = np.flatnonzero(counted.any(axis=0))
        return kept if grid.within is None else grid.within.numbers[kept], counted[:, kept], only[kept]

    def _cells(self, numbers: IntArray, level: int, rows: Any, only: Any = np.nan, gaps: Any = None) -> Cells:
        """Cells of a grid, as narrow as the scores' dtype has them."""
        low, high = (cell_edges(ends, level, self._source.score_range) for ends in (numbers - 1, numbers))
        lowest, highest = low.astype(self._dtype), high.astype(self._dtype)
        lowest = np.where(lowest <= low, np.nextafter(lowest, self._dtype.type(np.inf)), lowest)
        highest = np.where(highest > high, np.nextafter(highest, -self._dtype.type(np.inf)), highest)
        several = np.isnan(only)
        ends = np.where(several, lowest, only), np.where(several, highest, only)
        return Cells.of(ends, numbers, rows, self._unknown(numbers.size) if gaps is None else gaps)

    def _unknown(self, n_cells: int) -> FloatArray:
        """Bounds on the gaps inside cells about which nothing is known."""
        return np.broadcast_to([[[-np.inf]], [[np.inf]]], (2, self._sides.shape[1], n_cells))

    def _compared(self, sizes: IntArray) -> BoolArray:
        """The keys of the two sides (rows) of each pair; a group without rows under a label is an error."""
        keys = self._source.keys
        groups = list(dict.fromkeys(key[0] for key, size in zip(keys, sizes, strict=True) if size))
        check_group_weights(groups, groups, "sensitive_features", "sample_weight")
        found = []
        for label in self._comparison.labels:
            everyone = np.array([label in (None, key[1]) for key in keys])
            sides = [everyone & np.array([key[0] == group for key in keys]) for group in groups]
            check_sizes(self._comparison, groups, [int(sizes[side].sum()) for side in sides], label)
            sides.append(everyone)
            found += [(sides[one], sides[other]) for one, other in self._comparison.pair_places(groups)]
        return np.array(found).transpose(1, 0, 2)

    def _bound(self, cells: Cells) -> tuple[BoolArray, BoolArray]:
        """The pairs that may be the worst, and the cells that decide."""
        ends = np.ascontiguousarray(cells.ends.T).ravel()
        begins = units_of(ends, self._source.score_range, self._source.resolution)
        given = begins, cells.known, cells.rows, self._sides, cells.gaps
        matters, opened = bound_worst(*given, self._reach, self._least)
        return matters, opened & (cells.table[2] >= 0.0)

    def _look_into(self, level: int, cells: Cells, opened: BoolArray) -> Cells:
        """The cells with those that decide cut into parts, and at last into scores."""
        within = CellSelection(level, cells.numbers[opened])
        room = _PARTS // (cells.n_keys * within.numbers.size)
        grid = self._source.grid(level + min(_MOST_BITS, max(1, room.bit_length() - 1)), within)
        parts = self._source.count_parts(grid, self._hot_parts(grid, cells, opened))
        starts, width = np.arange(within.numbers.size) * grid.splits, grid.splits
        while starts.size and width > 1:
            splits = _splits(width, starts.size)
            level, width = level + splits.bit_length() - 1, width // splits
            blocks = Blocks(splits, width, starts, *cells.below(opened), self._sides)
            rows, gaps = self._blocks(parts, blocks)
            numbers = ((cells.numbers[opened] - 1)[:, None] * splits + np.arange(1, splits + 1)).ravel()
            starts = (starts[:, None] + np.arange(splits) * width).ravel()
            kept = np.flatnonzero(rows.any(axis=0))
            finer = self._cells(numbers[kept], level, rows[:, kept], gaps=gaps[..., kept])
            cells = cells.replace(opened, finer)
            if finer.known.all():
                return cells
            _, opened = self._bound(cells)
            starts = starts[kept[opened[cells.table[2] >= 0.0]]]
        return self._look_up(level, cells, opened)

    def _blocks(self, parts: Tensor, blocks: Blocks) -> tuple[FloatArray, FloatArray]:
        """The rows of blocks of parts, and what the gap of each pair lies between inside."""
        n_keys, n_pairs = len(parts), self._sides.shape[1]
        if blocks.width > 1:
            found = self._source.bound_blocks(parts, blocks)
            return found[:n_keys], found[n_keys:].reshape(2, n_pairs, -1)
        at = (blocks.starts[:, None] + np.arange(blocks.splits)).ravel()
        rows = parts[:, self._torch.from_numpy(at).to(parts.device)].cpu().numpy()
        return rows, self._unknown(at.size)

    def _hot_parts(self, grid: Grid, cells: Cells, opened: BoolArray) -> IntArray:
        """The part of each cell that so many rows may have that they are better counted apart, or -1."""
        assert grid.within is not None
        selected, bits = grid.within.numbers, grid.level - grid.within.level
        hot = np.full(selected.size, -1)
        if cells.rows[:, opened].sum(axis=0).max() < _HEAVY * self._source.rows.size:
            return hot
        scores = self._source.rows.scores
        seen, times = np.unique(scores[:: -(-scores.numel() // _SAMPLED)].cpu().numpy(), return_counts=True)
        often = seen[np.argsort(times)[np.sort(times) >= _HEAVY * _SAMPLED / 4]].astype(np.float64)
        numbers = cell_numbers(often, grid.level, grid.score_range) - 1
        slots = np.searchsorted(selected, (numbers >> bits) + 1) % selected.size
        right = selected[slots] == (numbers >> bits) + 1
        hot[slots[right]] = numbers[right] & (2**bits - 1)
        return hot

    def _look_up(self, level: int, cells: Cells, opened: BoolArray) -> Cells:
        """The cells with those that still decide replaced by their scores, one by one."""
        if cells.rows[:, opened].sum() > _FEW_ROWS:
            # Most of the rows have one score, which is the only one of its cell.
            within = CellSelection(level, cells.numbers[opened])
            numbers, rows, only = self._count(self._source.grid(level, within))
            cells = cells.replace(opened, self._cells(numbers, level, rows, only))
            _, opened = self._bound(cells)
        if not opened.any():
            return cells
        within, most = CellSelection(level, cells.numbers[opened]), int(cells.rows[:, opened].sum())
        counted = self._source.count_scores(within, most)
        scores = np.unique(np.concatenate([each.at for each in counted]))
        inside = np.zeros((cells.n_keys, scores.size))
        for each in counted:
            key: Any = each.key
            inside[self._source.keys.index(key), np.searchsorted(scores, each.at)] = each.rows
        numbers = np.full(scores.size, -1)
        return cells.replace(opened, Cells.of((scores, scores), numbers, inside, self._unknown(scores.size)))

    def _answer(self, cells: Cells) -> FloatArray:
        """MCDP of the worst pair at each epsilon, given cells that decide it."""
        source, worst = self._source, np.zeros(self._epsilons.size)
        below = np.cumsum(cells.rows.astype(np.int64), axis=1)
        knots = units_of(cells.ends[1], source.score_range, source.resolution)
        for sides in self._sides.transpose(1, 0, 2):
            first, second = (below[side].sum(axis=0) for side in sides)
            gap = gap_between(first, second, first[-1], second[-1])
            mcdp = mcdp_of(knots, gap, self._epsilons, source.resolution, source.score_range)
            worst = np.maximum(worst, mcdp)
        return worst


def _splits(width: int, blocks: int) -> int:
    """Into how many parts each of some blocks is cut: at once into single ones, or not too finely."""
    if width * blocks <= 2 * _BLOCKS:
        return width
    most = 1 << max(1, (_BLOCKS // blocks).bit_length() - 1)
    return min(width, most, max(2, width // _WIDTH))


# MCDP of tensors, without counts of them.


def mcdp_from_torch(
    y_score: Tensor,
    sensitive_features: Tensor,
    *,
    y_true: Tensor | None = None,
    sample_weight: Tensor | None = None,
    epsilon: float | Sequence[float] = 0.0,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    score_range: ScoreRange = (0.0, 1.0),
) -> float | FloatArray:
    """MCDP of the worst pair, of tensors on a GPU or on the CPU; the same number that `mcdp` gives of arrays.

    On a GPU the scores stay there and are not sorted: two passes over the rows find the few scores that
    decide. `from_torch` takes longer, and returns counts from which every other metric is computed.

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
    epsilon : float or sequence of float
        The half-width of the windows, as a fraction of the score range; several at once cost little more.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    score_range : tuple of float
        The lowest and the highest score there can be.

    Returns
    -------
    float or ndarray
        A fraction in [0, 1]; of several epsilons, one for each.

    Examples
    --------
    >>> import torch
    >>> import localparity as lp
    >>> scores, sex = torch.tensor([0.1, 0.3, 0.5, 0.4, 0.6, 0.9]), torch.tensor([0, 0, 0, 1, 1, 1])
    >>> lp.engines.mcdp_from_torch(scores, sex, epsilon=[0.0, 0.1])
    array([0.66666667, 0.33333333])
    """
    epsilons, comparison = as_epsilons(epsilon), Comparison(criterion, compare)
    require_labels(comparison, y_true)
    asked: dict[str, Any] = {"epsilon": epsilon, "criterion": criterion, "compare": compare}
    labels = y_true if comparison.needs_labels else None
    if y_score.device.type != "cuda":
        columns = {"sensitive_features": _on_cpu(sensitive_features), "sample_weight": _on_cpu(sample_weight)}
        return _mcdp(_on_cpu(labels), _on_cpu(y_score), **columns, **asked, score_range=score_range)
    given: dict[str, Any] = {"y_true": labels, "sample_weight": sample_weight}
    given["score_range"] = as_score_range(score_range)
    source = TorchScores(y_score, sensitive_features, **given)
    if sample_weight is not None or len(source.keys) > MOST_KEYS or source.rows.size >= MOST_ROWS:
        counts = from_torch(
            y_score,
            sensitive_features,
            **given,
            epsilons=epsilons.ravel().tolist(),
            criterion=criterion,
            compare=compare,
        )
        return _mcdp(counts, **asked)
    found = Search(source, comparison, epsilons.ravel()).mcdp()
    return found.reshape(epsilons.shape) if epsilons.ndim else float(found[0])


def _mcdp(*arrays: Any, **options: Any) -> float | FloatArray:
    """MCDP of arrays or counts."""
    found: float | FloatArray = mcdp(*arrays, **options)
    return found


def _on_cpu(part: Tensor | None) -> Tensor | None:
    """What a row has, flat and in the memory of the CPU."""
    return None if part is None else part.detach().flatten().cpu()
