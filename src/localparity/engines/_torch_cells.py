"""Rows counted by cell and by score with the operations of torch, on any device, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from localparity._scale import range_scale, representable_range
from localparity._types import BoolArray, IntArray, ScoreRange
from localparity._validation import LEAST_WEIGHT, MOST_WEIGHT, InputError, check_rows, setting
from localparity.counts._rows import Key
from localparity.counts._weights import LIMB_BITS, LIMBS, limbs_of
from localparity.engines.protocol import CellSelection

if TYPE_CHECKING:
    from torch import Tensor


# Rows as tensors, checked: the score of each, the code of its group and label, and its weight.


CHUNK = 2**24
"""Rows that are looked at together where each takes memory of its own; on a CPU, what its caches hold."""

_CPU_CHUNK = 2**16

_FEW_GROUPS = 256


class DeviceRows(NamedTuple):
    """The rows on their device; `first` is the code of the first key."""

    scores: Tensor
    codes: Tensor
    weights: Tensor | None = None
    first: int = 0

    @property
    def size(self) -> int:
        """How many rows there are."""
        return self.scores.numel()

    def on_cpu(self) -> DeviceRows:
        """The rows, in the memory of the CPU."""
        weights = None if self.weights is None else self.weights.cpu()
        return DeviceRows(self.scores.cpu(), self.codes.cpu(), weights, self.first)

    def where(self, chosen: Tensor) -> DeviceRows:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        return DeviceRows(self.scores[chosen], self.codes[chosen], weights, self.first)

    def chunks(self) -> Iterator[DeviceRows]:
        """The rows, a bounded number at a time, and of none an empty chunk."""
        size = _CPU_CHUNK if self.scores.device.type == "cpu" else CHUNK
        for start in range(0, max(1, self.size), size):
            part = slice(start, start + size)
            weights = None if self.weights is None else self.weights[part]
            yield DeviceRows(self.scores[part], self.codes[part], weights, self.first)


def numpy_dtype(scores: Tensor) -> np.dtype[Any]:
    """The dtype of the scores as numpy names it."""
    return np.dtype(str(scores.dtype).removeprefix("torch."))


def ends_of(scores: Tensor, score_range: ScoreRange) -> ScoreRange:
    """The ends of the range that scores of a dtype may reach, as in memory."""
    dtype = numpy_dtype(scores)
    return representable_range(score_range, dtype) if dtype == np.float32 else score_range


def as_flat_scores(y_score: Tensor) -> Tensor:
    """The scores, detached and flat; their range is not checked."""
    known = ("torch.float16", "torch.float32", "torch.float64")
    if str(y_score.dtype) not in known:
        raise InputError(f"must be one of {', '.join(known)}, got {y_score.dtype}", argument="y_score")
    if not y_score.numel():
        raise InputError("is empty", argument="y_score")
    flat = y_score.detach().flatten()
    # Apple's GPU shares its memory with the CPU, and has no float64.
    return flat.cpu() if flat.device.type == "mps" else flat


def as_flat(values: Tensor, name: str, scores: Tensor) -> Tensor:
    """One value for each score, detached, flat and on the device of the scores."""
    check_rows(name, values.numel(), scores.numel())
    flat = values.detach().flatten()
    if flat.device.type == "mps":
        flat = flat.cpu()
    if flat.device != scores.device:
        reason = f"must be on the device of y_score, {scores.device}, got {flat.device}"
        raise InputError(reason, argument=name)
    return flat


def check_range(scores: Tensor, score_range: ScoreRange) -> None:
    """Raise an InputError where a score lies outside of the range, or is NaN."""
    lowest, highest = ends_of(scores, score_range)
    least, most = (float(end) for end in scores.aminmax())
    if not (least >= lowest and most <= highest):
        inside = (scores >= lowest) & (scores <= highest)
        check_score(scores, int(inside.logical_not().nonzero()[0]), score_range)


def check_score(scores: Tensor, row: int, score_range: ScoreRange) -> None:
    """Raise an InputError where the score of a row lies outside of the range, or is NaN."""
    lowest, highest = ends_of(scores, score_range)
    score, (low, high) = scores[row].item(), score_range
    if not lowest <= score <= highest:
        reason = f"must be inside {setting('score_range')} ({low}, {high}), got {score} at row {row}"
        raise InputError(reason, argument="y_score", row=row)


def _check_rows(values: Tensor, name: str, expected: str, good: Callable[[Tensor], Tensor]) -> None:
    """Raise an InputError for the first row, if any, whose value is not good."""
    for start in range(0, values.numel(), CHUNK):
        part = values[start : start + CHUNK]
        wrong = ~good(part)
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0])
            reason = f"must be {expected}, got {part[row].item():g} at row {start + row}"
            raise InputError(reason, argument=name, row=start + row)


def tensor_groups(sensitive_features: Tensor, scores: Tensor) -> Tensor:
    """The group of each score, as integers or booleans."""
    if sensitive_features.is_floating_point() or sensitive_features.is_complex():
        reason = f"must be integers or booleans, got {sensitive_features.dtype}"
        raise InputError(reason, argument="sensitive_features")
    return as_flat(sensitive_features, "sensitive_features", scores)


def tensor_labels(y_true: Tensor, scores: Tensor) -> Tensor:
    """Whether the label of each score, 0 or 1, is 1."""
    flat = as_flat(y_true, "y_true", scores)
    if str(flat.dtype) == "torch.bool":
        return flat
    _check_rows(flat, "y_true", "0 or 1", lambda part: (part == 0) | (part == 1))
    return flat == 1


def tensor_weights(sample_weight: Tensor, scores: Tensor) -> Tensor:
    """The weight of each score."""
    weights = as_flat(sample_weight, "sample_weight", scores)

    def good(part: Tensor) -> Tensor:
        exact = part.double()
        return (exact == 0.0) | ((exact >= LEAST_WEIGHT) & (exact <= MOST_WEIGHT))

    _check_rows(weights, "sample_weight", f"0 or between {LEAST_WEIGHT:.2g} and {MOST_WEIGHT:.2g}", good)
    return weights


def code_rows(torch: Any, groups: Tensor, labels: Tensor | None) -> tuple[Tensor, int, list[Key]]:
    """The code of each row, the lowest code, and the groups and labels that the codes stand for in order.

    Groups of one byte are their own codes where there are no labels; a code may stand for nobody.
    """
    low, high = 0, 1
    if groups.dtype != torch.bool:
        low, high = torch.stack(torch.aminmax(groups)).tolist()
    values: Any = range(low, high + 1)
    distinct = None
    if groups.dtype == torch.bool:
        groups, values = groups.view(torch.uint8), [False, True]
    elif high - low >= _FEW_GROUPS:
        distinct = torch.unique(groups)
        values = distinct.tolist()
    if labels is None and groups.element_size() == 1:
        return groups, low, [(value, None) for value in values]
    found = (None,) if labels is None else (0, 1)
    keys: list[Key] = [(value, label) for value in values for label in found]
    if distinct is None and len(keys) <= _FEW_GROUPS:
        # Whole numbers of one byte wrap around, and what is left are the differences.
        codes = groups.view(torch.uint8) if groups.element_size() == 1 else groups.to(torch.uint8)
        if labels is not None:
            codes = torch.add(labels.view(torch.uint8), codes, alpha=2)
            low *= 2
        return codes - low % _FEW_GROUPS if low else codes, 0, keys
    codes = torch.empty(groups.numel(), dtype=torch.int32, device=groups.device)
    for start in range(0, groups.numel(), CHUNK):
        part = groups[start : start + CHUNK]
        codes[start : start + CHUNK] = part - low if distinct is None else torch.searchsorted(distinct, part)
    return codes if labels is None else codes.mul_(2).add_(labels), 0, keys


class CellPlaces(NamedTuple):
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

    @property
    def numbers(self) -> IntArray:
        """The number of the cell at each place."""
        if self.within is None:
            return np.arange(self.n_places)
        return ((self.within.numbers - 1)[:, None] * self.splits + np.arange(1, self.splits + 1)).ravel()


class CellTotals(NamedTuple):
    """What lies at each place of a grid, on the device.

    `rows` has a row for each key; `only` is the one score at each place, NaN where there is none or several;
    `limbs` are the sums of the weights' limbs, and then of the squared weights', for each key.
    """

    only: Tensor
    rows: Tensor
    limbs: Tensor | None = None


def count_places(torch: Any, rows: DeviceRows, grid: CellPlaces) -> CellTotals:
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


def count_parts(torch: Any, rows: DeviceRows, grid: CellPlaces, hot: IntArray) -> Tensor:
    """Count rows without weights, a row for each key, by the places of a grid within a selection."""
    del hot  # a chunk is counted without a queue
    return count_places(torch, rows, grid).rows


class Blocks(NamedTuple):
    """Blocks of parts: where they start, how many parts each has, and into how many it is cut.

    `below` has the rows of each key below each block.
    """

    starts: IntArray
    width: int
    splits: int
    below: IntArray


def bound_blocks(
    torch: Any, parts: Tensor, blocks: Blocks, sides: BoolArray, totals: IntArray
) -> tuple[Tensor, Tensor]:
    """The rows of each key in what blocks of parts are cut into, and bounds of the signed gap inside.

    `sides` says which keys the two sides of each pair are made of, and `totals` how many rows each key has.
    """
    starts, below = (torch.from_numpy(part).to(parts.device) for part in (blocks.starts, blocks.below))
    inside = parts[:, starts[:, None] + torch.arange(blocks.width, device=parts.device)]
    after = torch.cumsum(inside, 2, dtype=torch.int64) + below[:, :, None]
    before, shape = after - inside, (starts.numel() * blocks.splits, blocks.width // blocks.splits)
    gaps = torch.empty((len(sides), 2, shape[0]), dtype=torch.float64, device=parts.device)

    def share(rows: Tensor, side: BoolArray) -> Tensor:
        one, *others = np.flatnonzero(side)
        in_all = rows[one].double()
        for key in others:
            in_all += rows[key]
        return in_all.div_(float(totals[side].sum()))

    for (first, second), (least, most) in zip(sides, gaps, strict=True):
        least[:] = (share(before, first) - share(after, second)).view(shape).amin(1)
        most[:] = (share(after, first) - share(before, second)).view(shape).amax(1)
    return inside.view(len(parts), *shape).sum(2), gaps


def collect_rows(torch: Any, rows: DeviceRows, grid: CellPlaces, capacity: int) -> DeviceRows | None:
    """The rows inside the selection of a grid, None where they are more than a capacity."""
    parts: list[DeviceRows] = []
    for chunk in rows.chunks():
        parts.append(chunk.where(_places(torch, _values(chunk.scores, grid.score_range), grid) >= 0))
        if sum(part.size for part in parts) > capacity:
            return None
    scores, codes = (torch.cat([part[place] for part in parts]) for place in (0, 1))
    weights = [part.weights for part in parts if part.weights is not None]
    return DeviceRows(scores, codes, torch.cat(weights) if weights else None, rows.first)


def count_runs(torch: Any, rows: DeviceRows, grid: CellPlaces) -> tuple[Tensor, Tensor, Tensor]:
    """The codes and scores that occur, in order, and how many rows and which sums of limbs lie at each."""
    found: tuple[Tensor, Tensor, Tensor] | None = None
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


def _placed(torch: Any, chunk: DeviceRows, grid: CellPlaces) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
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


def _places(torch: Any, scores: Tensor, grid: CellPlaces) -> Tensor:
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
    for numbers in (weights, weights * weights):
        cuts = limbs_of(numbers.mul, torch.floor, lambda whole, above: whole - above * 2.0**LIMB_BITS)
        yield from (cut.long() for cut in cuts)
