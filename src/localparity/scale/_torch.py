"""Counts of tensors: sorted and searched on their own device; only counts come to the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localparity._optional import require
from localparity._validation import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    FloatArray,
    as_score_range,
    check_rows,
    score_resolution,
)
from localparity.metrics import ScoreCounts
from localparity.metrics._criteria import Criterion
from localparity.metrics._groups import Compare
from localparity.metrics._units import LIMB_BITS, LIMBS, carry, limb_scale, to_whole
from localparity.scale._grid import EPSILONS, MAX_SCORES, Parents, Tally, cell_edges, count_scores

if TYPE_CHECKING:
    from torch import Tensor

    Key = tuple[int | bool, int | None]

LEVEL = 12
_FEW_GROUPS = 256


def from_torch(
    scores: Tensor,
    groups: Tensor,
    *,
    labels: Tensor | None = None,
    weights: Tensor | None = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    epsilons: Sequence[float] = EPSILONS,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    max_scores: int = MAX_SCORES,
    level: int = LEVEL,
) -> ScoreCounts:
    """Count tensors on a GPU, or on the CPU, without a copy of the scores to the host.

    The scores of each group are sorted on the device. The counts are exact while the distinct scores fit
    `max_scores`; beyond it the bounds of the gap in ``2**level`` cells decide almost every window, and only
    the cells that decide MCDP at `epsilons` are looked into, ever finer, until it is exact.

    Parameters
    ----------
    scores : torch.Tensor
        One score a row, of a floating dtype.
    groups : torch.Tensor
        The group of each row, whole numbers or truth values.
    labels : torch.Tensor, optional
        Labels 0 and 1, where a criterion needs them.
    weights : torch.Tensor, optional
        Weights that are not negative; they take 40 bytes a row of the device's memory.
    score_range : tuple of float
        The lowest and the highest score there can be.
    epsilons, criterion, compare, max_scores
        Where MCDP comes out exact, and when a grid is used, as in `from_duckdb`.
    level : int
        The first grid has ``2**level`` cells.

    Returns
    -------
    ScoreCounts
        The groups are Python's own numbers or truth values.

    Examples
    --------
    >>> import torch
    >>> import localparity as lp
    >>> scores = torch.tensor([0.2, 0.4, 0.9])
    >>> lp.scale.from_torch(scores, torch.tensor([0, 0, 1])).mcdp(0.1)
    1.0
    """
    source = TorchScores(scores, groups, labels, weights, as_score_range(score_range))
    return count_scores(
        source,
        max_scores=max_scores,
        level=level,
        epsilons=epsilons,
        criterion=criterion,
        compare=compare,
    )


class TorchScores:
    """Tensors as a source of counts: the scores of each group and label, sorted on their device."""

    # The host works on what comes back, and it should not be what takes the time.
    budget = 2**14

    def __init__(
        self,
        scores: Tensor,
        groups: Tensor,
        labels: Tensor | None,
        weights: Tensor | None,
        score_range: tuple[float, float],
    ) -> None:
        self._torch = require("torch", extra="train")
        self.score_range = score_range
        self.resolution = check_scores(scores, score_range)
        for name, tensor in (("groups", groups), ("labels", labels), ("weights", weights)):
            if tensor is not None:
                check_rows(name, tensor.numel(), scores.numel(), of="scores")
        check_whole(groups)
        if weights is not None:
            _check_weights(weights)
        self._sorted: dict[Key, Tensor] = {}
        self._limbs: dict[Key, tuple[list[Tensor], int]] = {}
        for key, mask in self._masks(groups.flatten(), None if labels is None else labels.flatten()):
            self._sort(key, scores.detach().flatten(), mask, weights)
        self._check_groups()

    def _masks(self, groups: Tensor, labels: Tensor | None) -> Iterator[tuple[Key, Tensor]]:
        """Each group and label, and where its rows are."""
        torch = self._torch
        if groups.dtype == torch.bool:
            values: list[int | bool] = [False, True]
        else:
            low, high = (int(end) for end in torch.aminmax(groups))
            few = high - low < _FEW_GROUPS
            values = list(range(low, high + 1)) if few else torch.unique(groups).tolist()
        if labels is None:
            for value in values:
                yield (value, None), groups == value
            return
        is_one = labels == 1
        if not bool((is_one | (labels == 0)).all()):
            row = int((is_one | (labels == 0)).logical_not().nonzero()[0])
            raise ValueError(
                f"labels has {labels[row].item():g} at row {row} where labels 0 and 1 are expected"
            )
        for value in values:
            yield (value, 0), (groups == value) & ~is_one
            yield (value, 1), (groups == value) & is_one

    def _sort(self, key: Key, scores: Tensor, mask: Tensor, weights: Tensor | None) -> None:
        torch = self._torch
        if weights is None:
            chosen = scores[mask]
            del mask
            if chosen.numel():
                self._sorted[key] = torch.sort(chosen).values
            return
        present = bool(mask.any())
        mask = mask & (weights.flatten() > 0)
        chosen, heavy = scores[mask], weights.detach().flatten()[mask].double()
        if present:
            self._sorted[key], order = torch.sort(chosen)
            limbs = [torch.cumsum(limb, 0) for limb in _limbs_of(torch, heavy[order])]
            zero = torch.zeros(1, dtype=torch.int64, device=scores.device)
            squares = np.array([[int(limb.sum())] for limb in _limbs_of(torch, heavy * heavy)])
            self._limbs[key] = [torch.cat([zero, limb]) for limb in limbs], to_whole(squares)

    def _check_groups(self) -> None:
        groups = list(dict.fromkeys(group for group, _ in self._sorted))
        if len(groups) < 2:
            raise ValueError(f"groups has one group only, {groups[0]!r}, where two or more are expected")
        for group in groups:
            if not any(ordered.numel() for key, ordered in self._sorted.items() if key[0] == group):
                raise ValueError(f"weights is 0 in all rows of group {group!r}")

    def on_grid(self, level: int, parents: Parents | None = None) -> list[Tally]:
        """Count the rows by cells of a level."""
        if parents is None:
            numbers = np.arange(2**level + 1)
        else:
            splits = 2 ** (level - parents.level)
            numbers = ((parents.numbers - 1)[:, None] * splits + np.arange(1, splits + 1)).ravel()
        tallies = []
        for key, ordered in self._sorted.items():
            begin, end = self._places(ordered, numbers, level)
            occupied = end > begin
            begin, end = begin[occupied], end[occupied]
            at = numbers[occupied.cpu().numpy()]
            least, most = ordered[begin], ordered[end - 1]
            tallies.append(self._tally(key, at, begin, end, least, most))
        return tallies

    def exactly(self, parents: Parents | None = None) -> list[Tally]:
        """Count the rows by their scores."""
        torch = self._torch
        tallies = []
        for key, ordered in self._sorted.items():
            if parents is None:
                inside = None
                distinct, rows = torch.unique_consecutive(ordered, return_counts=True)
                end = torch.cumsum(rows, 0)
            else:
                first, last = self._places(ordered, parents.numbers, parents.level)
                sizes = last - first
                shifts = torch.repeat_interleave(first - (torch.cumsum(sizes, 0) - sizes), sizes)
                inside = torch.arange(shifts.numel(), device=ordered.device) + shifts
                distinct, rows = torch.unique_consecutive(ordered[inside], return_counts=True)
                # Cells do not part equal scores, so the last row of each score is the last inside as well.
                end = inside[torch.cumsum(rows, 0) - 1] + 1 if distinct.numel() else rows
            at = distinct.double().cpu().numpy() + 0.0
            tallies.append(self._tally(key, at, end - rows, end, distinct, distinct))
        return tallies

    def distinct(self) -> int:
        """How many different scores there are, those of each group and label apart."""
        return sum(
            int(self._torch.count_nonzero(ordered[1:] != ordered[:-1])) + bool(ordered.numel())
            for ordered in self._sorted.values()
        )

    def _places(self, ordered: Tensor, numbers: NDArray[np.int64], level: int) -> tuple[Tensor, Tensor]:
        """Where the rows of each cell begin and end among the sorted scores."""
        torch = self._torch
        ends = []
        for shift in (-1, 0):
            edges = cell_edges(np.maximum(numbers + shift, 0), level, self.score_range)
            at = torch.from_numpy(_rounded_down(edges, ordered.dtype, torch)).to(ordered.device)
            ends.append(torch.searchsorted(ordered, at, right=True))
        # The bottom of the range is number 0, and nothing lies below it.
        bottom = torch.from_numpy(numbers == 0).to(ordered.device)
        return ends[0].masked_fill(bottom, 0), ends[1]

    def _tally(
        self, key: Key, at: NDArray[Any], begin: Tensor, end: Tensor, least: Tensor, most: Tensor
    ) -> Tally:
        units, square_units = None, 0
        if key in self._limbs:
            limbs, square_units = self._limbs[key]
            units = carry(np.stack([(limb[end] - limb[begin]).cpu().numpy() for limb in limbs]))
        ends = [each.double().cpu().numpy() + 0.0 for each in (least, most)]
        return Tally(key, at, (end - begin).cpu().numpy(), ends[0], ends[1], units, square_units)


def _rounded_down(edges: FloatArray, dtype: Any, torch: Any) -> NDArray[Any]:
    """Edges in the scores' dtype, such that a score is at or below the one exactly when it is the other."""
    if dtype == torch.float64:
        return edges
    narrow = np.dtype(str(dtype).removeprefix("torch."))
    rounded = edges.astype(narrow)
    return np.where(rounded > edges, np.nextafter(rounded, narrow.type(-np.inf)), rounded)


def _limbs_of(torch: Any, numbers: Tensor) -> Iterator[Tensor]:
    """The limbs of numbers in whole units, as in `localparity.metrics._units`."""
    base = 2.0**LIMB_BITS
    for limb in range(LIMBS):
        scaled = numbers * limb_scale(limb)
        cut = torch.floor(scaled)
        if limb < LIMBS - 1:
            cut = cut - torch.floor(scaled / base) * base
        yield cut.long()


def check_scores(scores: Tensor, score_range: tuple[float, float]) -> float:
    """Whether all scores are numbers inside the range, and the resolution of their dtype."""
    known = {"torch.float16", "torch.float32", "torch.float64"}
    if str(scores.dtype) not in known:
        raise ValueError(
            f"scores has dtype {scores.dtype} where one of {', '.join(sorted(known))} is expected"
        )
    if not scores.numel():
        raise ValueError("scores is empty")
    low, high = score_range
    least, most = (float(end) for end in scores.aminmax())
    if not (least >= low and most <= high):
        flat = scores.flatten()
        row = int(((flat >= low) & (flat <= high)).logical_not().nonzero()[0])
        raise ValueError(f"scores has {flat[row].item()} at row {row}, outside score_range ({low}, {high})")
    return score_resolution(np.dtype(str(scores.dtype).removeprefix("torch.")), score_range)


def check_whole(groups: Tensor) -> None:
    if groups.is_floating_point() or groups.is_complex():
        raise ValueError(f"groups has dtype {groups.dtype} where whole numbers or truth values are expected")


def _check_weights(weights: Tensor) -> None:
    flat = weights.detach().flatten().double()
    fits = (flat == 0.0) | ((flat >= LEAST_WEIGHT) & (flat <= MOST_WEIGHT))
    if not bool(fits.all()):
        row = int(fits.logical_not().nonzero()[0])
        raise ValueError(
            f"weights has {flat[row].item():g} at row {row} where 0 or a weight from {LEAST_WEIGHT:.2g} to "
            f"{MOST_WEIGHT:.2g} is expected"
        )
