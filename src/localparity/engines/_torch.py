"""Counts of tensors: sorted and searched on their own device; only counts come to the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import Compare, Criterion, FloatArray
from localparity._validation import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    as_score_range,
    check_rows,
    held_ends,
    require,
    score_resolution,
)
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._bounded import MAX_SCORES, cell_edges
from localparity.counts._weights import LIMB_BITS, LIMBS, carry, limb_scale
from localparity.engines._refine import Parents, Tally, count_scores
from localparity.metrics._mcdp import PAPER_EPSILONS

if TYPE_CHECKING:
    from torch import Tensor

    Key = tuple[int | bool, int | None]

LEVEL = 10
_FEW_GROUPS = 256


def from_torch(
    scores: Tensor,
    groups: Tensor,
    *,
    labels: Tensor | None = None,
    weights: Tensor | None = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    epsilons: Sequence[float] = PAPER_EPSILONS,
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
    epsilons : sequence of float
        The epsilons at which MCDP comes out exact also on a grid.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    max_scores : int
        The most distinct scores, those of each group and label apart, that are counted as they are.
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
    >>> lp.engines.from_torch(scores, torch.tensor([0, 0, 1])).mcdp(0.1)
    1.0
    """
    source = TorchScores(scores, groups, labels, weights, as_score_range(score_range))
    return count_scores(source, max_scores, level, epsilons, Comparison(criterion, compare))


class OrderedScores(NamedTuple):
    """The distinct scores of one group and label, on their device, and what lies before each.

    Attributes
    ----------
    scores : torch.Tensor
        The distinct scores, ascending.
    rows : torch.Tensor
        How many rows lie before each score, and at the end how many there are.
    limbs : list of torch.Tensor
        The weight before each score and in all, in whole units, limb by limb, and after it the squared
        weights; empty without weights.
    """

    scores: Tensor
    rows: Tensor
    limbs: list[Tensor]

    def tally(self, key: Key, at: NDArray[Any], places: Tensor) -> Tally:
        """What lies from place to place among the distinct scores: a row of `at` for each row of places."""
        begin, end = places[:, :-1], places[:, 1:]
        rows = np.diff(self.rows[places].cpu().numpy())
        occupied = rows > 0
        least, most = (
            self.scores[place].double().cpu().numpy()[occupied] + 0.0
            for place in (begin.clamp(max=self.scores.numel() - 1), (end - 1).clamp(min=0))
        )
        units = None
        if self.limbs:
            between = np.stack([np.diff(limb[places].cpu().numpy())[occupied] for limb in self.limbs])
            units = carry(between.reshape(2, LIMBS, -1))
        return Tally(key, at[occupied], rows[occupied], least, most, units)


class TorchScores:
    """Tensors as a source of counts: the distinct scores of each group and label, on their device."""

    # The host works on what comes back, and it should not be what takes the time.
    budget = 2**13

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
        flat, self.resolution = check_scores(scores, score_range)
        for name, tensor in (("groups", groups), ("labels", labels), ("weights", weights)):
            if tensor is not None:
                check_rows(name, tensor.numel(), scores.numel(), of="scores")
        check_whole(groups)
        if weights is not None:
            _check_weights(weights)
        self._ordered: dict[Key, OrderedScores] = {}
        heavy = None if weights is None else weights.detach().flatten()
        for key, mask in self._masks(groups.flatten(), None if labels is None else labels.flatten()):
            found = self._order(flat[mask]) if heavy is None else self._order_weighted(flat, heavy, mask)
            if found.scores.numel():
                self._ordered[key] = found
        self._check_groups(groups, weighted=weights is not None)

    def _masks(self, groups: Tensor, labels: Tensor | None) -> Iterator[tuple[Key, Tensor]]:
        """Each group and label, and where its rows are."""
        torch = self._torch
        if groups.dtype == torch.bool:
            values: list[int | bool] = [False, True]
        else:
            low, high = torch.stack(torch.aminmax(groups)).tolist()
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

    def _order(self, scores: Tensor) -> OrderedScores:
        # Without the rows' order the device sorts the scores alone, in a fraction of the time of its `sort`.
        distinct, rows = self._torch.unique(scores, return_counts=True)
        return OrderedScores(distinct, self._below(rows), [])

    def _order_weighted(self, scores: Tensor, weights: Tensor, mask: Tensor) -> OrderedScores:
        torch = self._torch
        mask &= weights > 0
        ordered, order = torch.sort(scores[mask])
        heavy = weights[mask].double()[order]
        distinct, rows = torch.unique_consecutive(ordered, return_counts=True)
        below = self._below(rows)
        limbs = [
            self._below(limb)[below] for each in (heavy, heavy * heavy) for limb in _limbs_of(torch, each)
        ]
        return OrderedScores(distinct, below, limbs)

    def _below(self, numbers: Tensor) -> Tensor:
        """The sums of all numbers before each, and of all."""
        sums: Tensor = self._torch.zeros(numbers.numel() + 1, dtype=self._torch.int64, device=numbers.device)
        self._torch.cumsum(numbers, 0, out=sums[1:])
        return sums

    def _check_groups(self, groups: Tensor, *, weighted: bool) -> None:
        with_weight = list(dict.fromkeys(group for group, _ in self._ordered))
        present = self._torch.unique(groups).tolist() if weighted else with_weight
        if len(present) < 2:
            raise ValueError(f"groups has one group only, {present[0]!r}, where two or more are expected")
        for group in present:
            if group not in with_weight:
                raise ValueError(f"weights is 0 in all rows of group {group!r}")

    def on_grid(self, level: int, parents: Parents | None = None) -> list[Tally]:
        """Count the rows by cells of a level."""
        if parents is None:
            fences = np.arange(2**level + 1)[None]
        else:
            splits = 2 ** (level - parents.level)
            fences = (parents.numbers - 1)[:, None] * splits + np.arange(splits + 1)
        found = self._places(fences, level)
        if parents is not None:
            return [ordered.tally(key, fences[:, 1:], places) for key, ordered, places in found]
        # The bottom of the range is number 0, and nothing lies below it.
        pad = self._torch.nn.functional.pad
        return [ordered.tally(key, fences, pad(places, (1, 0))) for key, ordered, places in found]

    def exactly(self, parents: Parents | None = None) -> list[Tally]:
        """Count the rows by their scores."""
        torch = self._torch
        if parents is None:
            inside = [
                (key, ordered, torch.arange(ordered.scores.numel(), device=ordered.scores.device))
                for key, ordered in self._ordered.items()
            ]
        else:
            fences = np.stack([parents.numbers - 1, parents.numbers], axis=1)
            inside = [
                (key, ordered, _ranges(torch, places[:, 0], places[:, 1]))
                for key, ordered, places in self._places(fences, parents.level)
            ]
        return [
            ordered.tally(
                key,
                ordered.scores[begin, None].double().cpu().numpy() + 0.0,
                torch.stack([begin, begin + 1], dim=1),
            )
            for key, ordered, begin in inside
        ]

    def distinct(self) -> int:
        """How many different scores there are, those of each group and label apart."""
        return sum(found.scores.numel() for found in self._ordered.values())

    def _places(self, fences: NDArray[np.int64], level: int) -> Iterator[tuple[Key, OrderedScores, Tensor]]:
        """How many distinct scores of each group and label lie at or below each edge of a level."""
        torch = self._torch
        some = next(iter(self._ordered.values())).scores
        edges = cell_edges(fences.ravel(), level, self.score_range).reshape(fences.shape)
        at = torch.from_numpy(_rounded_down(edges, some.dtype, torch)).to(some.device)
        for key, found in self._ordered.items():
            yield key, found, torch.searchsorted(found.scores, at, right=True)


def _ranges(torch: Any, begin: Tensor, end: Tensor) -> Tensor:
    """All whole numbers from each begin up to, but not at, its end."""
    sizes = end - begin
    shifts = torch.repeat_interleave(begin - (torch.cumsum(sizes, 0) - sizes), sizes)
    found: Tensor = torch.arange(shifts.numel(), device=begin.device) + shifts
    return found


def _rounded_down(edges: FloatArray, dtype: Any, torch: Any) -> NDArray[Any]:
    """Edges in the scores' dtype, such that a score is at or below the one exactly when it is the other."""
    if dtype == torch.float64:
        return edges
    narrow = np.dtype(str(dtype).removeprefix("torch."))
    rounded = edges.astype(narrow)
    return np.where(rounded > edges, np.nextafter(rounded, narrow.type(-np.inf)), rounded)


def _limbs_of(torch: Any, numbers: Tensor) -> Iterator[Tensor]:
    """The limbs of numbers in whole units, as in `localparity.counts._weights`."""
    base = 2.0**LIMB_BITS
    for limb in range(LIMBS):
        scaled = numbers * limb_scale(limb)
        cut = torch.floor(scaled)
        if limb < LIMBS - 1:
            cut = cut - torch.floor(scaled / base) * base
        yield cut.long()


class CheckedScores(NamedTuple):
    """Scores inside the range, without their graph and in one dimension, and their dtype's resolution."""

    values: Tensor
    resolution: float


def check_scores(scores: Tensor, score_range: tuple[float, float]) -> CheckedScores:
    """Whether all scores are numbers inside the range.

    A score beyond an end of the range, which its few bits cannot hold, is at that end, as in memory.
    """
    known = {"torch.float16", "torch.float32", "torch.float64"}
    if str(scores.dtype) not in known:
        raise ValueError(
            f"scores has dtype {scores.dtype} where one of {', '.join(sorted(known))} is expected"
        )
    if not scores.numel():
        raise ValueError("scores is empty")
    flat = scores.detach().flatten()
    dtype = np.dtype(str(scores.dtype).removeprefix("torch."))
    held = held_ends(score_range, dtype) if dtype == np.float32 else score_range
    least, most = (float(end) for end in flat.aminmax())
    if not (least >= held[0] and most <= held[1]):
        row = int(((flat >= held[0]) & (flat <= held[1])).logical_not().nonzero()[0])
        low, high = score_range
        raise ValueError(f"scores has {flat[row].item()} at row {row}, outside score_range ({low}, {high})")
    values = flat if held == score_range else flat.double().clamp(*score_range)
    return CheckedScores(values, score_resolution(dtype, score_range))


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
