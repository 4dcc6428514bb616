"""The search for the scores that decide MCDP of tensors, in two passes over the rows.

The first pass counts rows in cells of scores, the second those of the cells that decide in thousands of parts
of each. The parts stay on the device and bound the gap inside blocks of them, far more closely than the rows
of a block alone. Only the blocks that still decide are looked into, until each of their scores is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from localparity._types import BoolArray, FloatArray, IntArray
from localparity._validation import require
from localparity.counts import Comparison
from localparity.counts._bounded import cell_edges, cell_numbers
from localparity.counts._comparison import check_sizes
from localparity.engines._refine import CellSelection, check_group_weights
from localparity.engines._search_kernels import bound_worst
from localparity.engines._torch import TorchScores
from localparity.engines._torch_cells import Blocks, Grid
from localparity.engines._torch_rows import numpy_dtype
from localparity.metrics._gap_curve import units_of
from localparity.metrics._gap_curves import gap_between
from localparity.metrics._profile import mcdp_of, reach_bounds

if TYPE_CHECKING:
    from torch import Tensor

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

_SAMPLED = 2**14
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
