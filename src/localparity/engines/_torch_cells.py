"""Rows counted by cell and by score with the operations of torch, on any device, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from localparity._types import BoolArray, FloatArray, IntArray, ScoreRange
from localparity._validation import range_scale
from localparity.counts._weights import LIMB_BITS, LIMBS, limb_scale
from localparity.engines._refine import CellSelection
from localparity.engines._torch_rows import TensorRows, check_range, ends_of

if TYPE_CHECKING:
    from torch import Tensor


class Grid(NamedTuple):
    """The grid of ``2**level`` cells that rows are counted on; `within` restricts it to a selection.

    Its places are the numbers of the cells, and within a selection those of the finer cells inside of each
    selected one, one selected cell after the other.
    """

    score_range: ScoreRange
    n_keys: int
    level: int
    within: CellSelection | None = None

    @property
    def splits(self) -> int:
        """How many cells a selected one is cut into."""
        return 1 if self.within is None else 2 ** (self.level - self.within.level)

    @property
    def n_places(self) -> int:
        """How many places there are."""
        return 2**self.level + 1 if self.within is None else self.within.numbers.size * self.splits


class CellTotals(NamedTuple):
    """What lies at each place of a grid, on the device.

    `rows` has a row for each key; `only` is the one score at each place, NaN where there is none or several;
    `limbs` are the sums of the weights' limbs, and then of the squared weights', for each key.
    """

    only: Tensor
    rows: Tensor
    limbs: Tensor | None = None


class Blocks(NamedTuple):
    """Blocks of the parts of cells: for each cell, so many one after the other, and how wide they are.

    Attributes
    ----------
    splits, width : int
        How many blocks a cell has, and how many parts a block.
    starts : ndarray
        The first part of each cell.
    before : ndarray of shape (keys, cells)
        The rows of each key below each cell.
    sizes : ndarray
        The rows of each key.
    sides : ndarray of shape (2, pairs, keys)
        Which keys the two sides of each pair have.
    """

    splits: int
    width: int
    starts: IntArray
    before: FloatArray
    sizes: FloatArray
    sides: BoolArray


def count_places(torch: Any, rows: TensorRows, grid: Grid) -> CellTotals:
    """Count rows by the places of a grid."""
    size, device = grid.n_keys * grid.n_places, rows.scores.device
    counted = torch.zeros(size, dtype=torch.int64, device=device)
    ends = torch.full((2, grid.n_places), torch.inf, dtype=torch.float64, device=device)
    limbs = None if rows.weights is None else torch.zeros((2 * LIMBS, size), dtype=torch.int64, device=device)
    if grid.within is None:
        check_range(rows.scores, grid.score_range)
    for chunk in rows.chunks():
        scores, codes, weights, places = _placed(torch, chunk, grid)
        at = codes * grid.n_places + places
        counted += torch.bincount(at, minlength=size)
        ends[0].scatter_reduce_(0, places, scores, "amin")
        ends[1].scatter_reduce_(0, places, -scores, "amin")
        if limbs is not None and weights is not None:
            for limb, cut in zip(limbs, _limbs_of(torch, weights), strict=True):
                limb.index_add_(0, at, cut)
    only = torch.where(ends[0] == -ends[1], ends[0], torch.nan)
    shape = (grid.n_keys, grid.n_places)
    return CellTotals(only, counted.view(shape), None if limbs is None else limbs.view(2 * LIMBS, *shape))


def count_parts(torch: Any, rows: TensorRows, grid: Grid, hot: IntArray) -> Tensor:
    """Count rows, a row for each key, by the places of a grid within a selection."""
    del hot  # a chunk is counted without a queue
    return count_places(torch, rows, grid).rows


def bound_blocks(torch: Any, parts: Tensor, blocks: Blocks) -> Tensor:
    """The rows of each key in blocks of parts, then the least and the greatest gap of each pair inside."""
    span = np.arange(blocks.splits * blocks.width)
    rows = parts[:, torch.from_numpy(blocks.starts[:, None] + span).to(parts.device)]
    before = torch.from_numpy(blocks.before).to(parts.device)
    upto = rows.cumsum(2, dtype=torch.float64) + before[:, :, None]
    found, least, most = [rows.view(len(rows), -1, blocks.width).sum(2).double()], [], []
    for pair in blocks.sides.transpose(1, 0, 2):
        sides = [(np.flatnonzero(side).tolist(), float(blocks.sizes[side].sum())) for side in pair]
        one, two = (upto[keys].sum(0) / size for keys, size in sides)
        in_one, in_two = (rows[keys].sum(0) / size for keys, size in sides)
        least.append((one - in_one - two).view(1, -1, blocks.width).amin(2))
        most.append((one - two + in_two).view(1, -1, blocks.width).amax(2))
    bounded: Tensor = torch.cat(found + least + most)
    return bounded


def collect_rows(torch: Any, rows: TensorRows, grid: Grid, capacity: int) -> TensorRows | None:
    """The rows inside the selection of a grid, None where they are more than a capacity."""
    parts: list[TensorRows] = []
    for chunk in rows.chunks():
        parts.append(chunk.where(_places(torch, _values(chunk.scores, grid.score_range), grid) >= 0))
        if sum(part.size for part in parts) > capacity:
            return None
    scores, codes = (torch.cat([part[place] for part in parts]) for place in (0, 1))
    weights = [part.weights for part in parts if part.weights is not None]
    return TensorRows(scores, codes, torch.cat(weights) if weights else None, rows.first)


def count_runs(torch: Any, rows: TensorRows, grid: Grid) -> tuple[Tensor, Tensor, Tensor]:
    """The codes and scores that occur, in order, and how many rows and which sums of limbs lie at each."""
    found: tuple[Tensor, Tensor, Tensor] | None = None
    if grid.within is None:
        check_range(rows.scores, grid.score_range)
    for chunk in rows.chunks():
        scores, codes, weights, _ = _placed(torch, chunk, grid)
        sums = [torch.ones_like(codes)]
        if weights is not None:
            sums += _limbs_of(torch, weights)
        part = _runs(torch, codes, scores, torch.stack(sums))
        if found is not None:
            part = _runs(torch, *(torch.cat(both, dim=-1) for both in zip(found, part, strict=True)))
        found = part
    assert found is not None
    return found


def _placed(torch: Any, chunk: TensorRows, grid: Grid) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """The scores, codes, weights and places of the rows that count: those inside with a weight above 0."""
    scores, codes = _values(chunk.scores, grid.score_range), chunk.codes.long() - chunk.first
    places, weights = _places(torch, scores, grid), chunk.weights
    if grid.within is None and weights is None:
        return scores, codes, None, places
    kept = places >= 0
    if weights is not None:
        kept &= weights > 0
        weights = weights[kept].double()
    return scores[kept], codes[kept], weights, places[kept]


def _values(scores: Tensor, score_range: ScoreRange) -> Tensor:
    """The scores as they count: one beyond an end that its dtype cannot represent is at that end."""
    values = scores.double() + 0.0  # which turns -0.0 into 0.0
    return values if ends_of(scores, score_range) == score_range else values.clamp(*score_range)


def _places(torch: Any, scores: Tensor, grid: Grid) -> Tensor:
    """The place of each score, -1 outside of the selection."""
    fractions = scores
    if grid.score_range != (0.0, 1.0):
        scale = range_scale(grid.score_range)
        low, high = (scale * end for end in grid.score_range)
        # A GPU multiplies by the inverse of a plain number, which rounds differently; not of a tensor.
        length = torch.tensor(high - low, dtype=torch.float64, device=scores.device)
        fractions = (scores * scale - low) / length
    numbers: Tensor = torch.ceil(fractions * 2.0**grid.level).long()
    if grid.within is None:
        return numbers
    selected = torch.from_numpy(grid.within.numbers).to(scores.device)
    numbers -= 1
    bits = grid.level - grid.within.level
    parents = (numbers >> bits) + 1
    slots = torch.searchsorted(selected, parents).clamp_(max=selected.numel() - 1)
    places: Tensor = (slots << bits) + (numbers & (grid.splits - 1))
    return places.where(selected[slots] == parents, -1)


def _runs(torch: Any, codes: Tensor, scores: Tensor, sums: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct codes and scores, in order, and the sums at each."""
    scores, order = torch.sort(scores, stable=True)
    codes, by_code = torch.sort(codes[order], stable=True)
    scores, order = scores[by_code], order[by_code]
    begins = torch.ones_like(codes, dtype=torch.bool)
    begins[1:] = (scores[1:] != scores[:-1]) | (codes[1:] != codes[:-1])
    starts = begins.nonzero()[:, 0]
    below = torch.nn.functional.pad(torch.cumsum(sums[:, order], 1), (1, 0))
    ends = torch.roll(starts, -1)
    ends[-1:] = codes.numel()
    return codes[starts], scores[starts], below[:, ends] - below[:, starts]


def _limbs_of(torch: Any, weights: Tensor) -> Iterator[Tensor]:
    """The limbs of weights, then of squared weights, in the whole units of `localparity.counts._weights`."""
    base = 2.0**LIMB_BITS
    for numbers in (weights, weights * weights):
        for limb in range(LIMBS):
            scaled = numbers * limb_scale(limb)
            cut = torch.floor(scaled)
            if limb < LIMBS - 1:
                cut = cut - torch.floor(scaled / base) * base
            yield cut.long()
