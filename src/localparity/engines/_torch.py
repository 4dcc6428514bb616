"""Counts of tensors, sorted and searched on their own device; only counts reach the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import Compare, Criterion, FloatArray, IntArray, ScoreRange
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
from localparity.engines._refine import (
    CellSelection,
    CountOptions,
    GroupCounts,
    check_group_weights,
    count_source,
)
from localparity.metrics._mcdp import PAPER_EPSILONS

if TYPE_CHECKING:
    from torch import Tensor

    Key = tuple[int | bool, int | None]

LEVEL = 10
_FEW_GROUPS = 256


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

    The scores of each group are sorted on the device. The counts are exact up to `max_scores` distinct
    scores. Beyond it, bounds of the gap in ``2**level`` cells rule out almost every window, and only the
    cells that decide MCDP at `epsilons` are read again, on ever finer grids, until it is exact.

    Parameters
    ----------
    y_score : torch.Tensor
        Scores inside `score_range`, shape (n_samples,), of a floating dtype.
    sensitive_features : torch.Tensor
        The group of each row: integers or booleans.
    y_true : torch.Tensor, optional
        Labels 0 and 1, where the criterion needs them.
    sample_weight : torch.Tensor, optional
        Weights that are not negative; they take 40 bytes of the device's memory for each row.
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


class OrderedScores(NamedTuple):
    """The distinct scores of one group and label, ascending, and what lies below each, on their device.

    `rows` has the number of rows below each score and, last, of all rows; `limbs` the same of the weights and
    then the squared weights, limb by limb, and nothing without weights.
    """

    scores: Tensor
    rows: Tensor
    limbs: list[Tensor]

    def between(self, key: Key, at: NDArray[Any], places: Tensor) -> GroupCounts:
        """Count between consecutive places among the distinct scores; `at` has one column less."""
        begin, end = places[:, :-1], places[:, 1:]
        rows = np.diff(self.rows[places].cpu().numpy())
        occupied = rows > 0
        lowest, highest = (
            self.scores[place].double().cpu().numpy()[occupied] + 0.0
            for place in (begin.clamp(max=self.scores.numel() - 1), (end - 1).clamp(min=0))
        )
        units = None
        if self.limbs:
            between = np.stack([np.diff(limb[places].cpu().numpy())[occupied] for limb in self.limbs])
            units = carry(between.reshape(2, LIMBS, -1))
        return GroupCounts(key, at[occupied], rows[occupied], lowest, highest, units)


class TorchScores:
    """Tensors as a source of counts: the distinct scores of each group and label, on their device."""

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
        self._torch = require("torch", extra="train")
        self.score_range = score_range
        scores, self.resolution = check_scores(y_score, score_range)
        groups = check_groups(sensitive_features, scores)
        labels = None if y_true is None else check_labels(y_true, scores)
        weights = None if sample_weight is None else _check_weights(sample_weight, scores)
        self._ordered: dict[Key, OrderedScores] = {}
        for key, mask in self._masks(groups, labels):
            if weights is None:
                found = self._order(scores[mask])
            else:
                found = self._order_weighted(scores, weights, mask)
            if found.scores.numel():
                self._ordered[key] = found
        counted = list(dict.fromkeys(group for group, _ in self._ordered))
        present = counted if weights is None else self._torch.unique(groups).tolist()
        check_group_weights(present, counted, "sensitive_features", "sample_weight")

    def _masks(self, groups: Tensor, labels: Tensor | None) -> Iterator[tuple[Key, Tensor]]:
        """The rows of each group and label."""
        torch = self._torch
        if groups.dtype == torch.bool:
            values: list[int | bool] = [False, True]
        else:
            low, high = torch.stack(torch.aminmax(groups)).tolist()
            few = high - low < _FEW_GROUPS
            values = list(range(low, high + 1)) if few else torch.unique(groups).tolist()
        for value in values:
            if labels is None:
                yield (value, None), groups == value
            else:
                yield (value, 0), (groups == value) & ~labels
                yield (value, 1), (groups == value) & labels

    def _order(self, scores: Tensor) -> OrderedScores:
        # `unique` does not keep the rows' order, and takes a fraction of the time of `sort`.
        distinct, rows = self._torch.unique(scores, return_counts=True)
        return OrderedScores(distinct, self._below(rows), [])

    def _order_weighted(self, scores: Tensor, weights: Tensor, mask: Tensor) -> OrderedScores:
        torch = self._torch
        mask &= weights > 0
        ordered, order = torch.sort(scores[mask])
        heavy = weights[mask].double()[order]
        distinct, rows = torch.unique_consecutive(ordered, return_counts=True)
        below = self._below(rows)
        limbs = [*_limbs_of(torch, heavy), *_limbs_of(torch, heavy * heavy)]
        return OrderedScores(distinct, below, [self._below(limb)[below] for limb in limbs])

    def _below(self, numbers: Tensor) -> Tensor:
        """The sum of the numbers before each and, last, of all."""
        sums: Tensor = self._torch.zeros(numbers.numel() + 1, dtype=self._torch.int64, device=numbers.device)
        self._torch.cumsum(numbers, 0, out=sums[1:])
        return sums

    def count_cells(self, level: int, within: CellSelection | None = None) -> list[GroupCounts]:
        """Count the rows by the cells of a grid."""
        if within is None:
            edges = np.arange(2**level + 1)[None]
            # Cell 0 is the bottom of the range, and nothing lies below it.
            pad = self._torch.nn.functional.pad
            return [
                ordered.between(key, edges, pad(places, (1, 0)))
                for key, ordered, places in self._places(edges, level)
            ]
        splits = 2 ** (level - within.level)
        edges = (within.numbers - 1)[:, None] * splits + np.arange(splits + 1)
        return [
            ordered.between(key, edges[:, 1:], places) for key, ordered, places in self._places(edges, level)
        ]

    def count_scores(self, within: CellSelection | None = None) -> list[GroupCounts]:
        """Count the rows by their scores."""
        torch = self._torch
        if within is None:
            chosen = [
                (key, ordered, torch.arange(ordered.scores.numel(), device=ordered.scores.device))
                for key, ordered in self._ordered.items()
            ]
        else:
            ends = np.stack([within.numbers - 1, within.numbers], axis=1)
            chosen = [
                (key, ordered, _ranges(torch, places[:, 0], places[:, 1]))
                for key, ordered, places in self._places(ends, within.level)
            ]
        counts = []
        for key, ordered, begin in chosen:
            at = ordered.scores[begin, None].double().cpu().numpy() + 0.0
            counts.append(ordered.between(key, at, torch.stack([begin, begin + 1], dim=1)))
        return counts

    def estimate_distinct(self) -> int:
        """Return the number of distinct scores, summed over groups and labels."""
        return sum(found.scores.numel() for found in self._ordered.values())

    def _places(self, numbers: IntArray, level: int) -> Iterator[tuple[Key, OrderedScores, Tensor]]:
        """The number of distinct scores of each group and label at or below the edges of some cells."""
        torch = self._torch
        some = next(iter(self._ordered.values())).scores
        edges = cell_edges(numbers.ravel(), level, self.score_range).reshape(numbers.shape)
        at = torch.from_numpy(_rounded_down(edges, some.dtype, torch)).to(some.device)
        for key, found in self._ordered.items():
            yield key, found, torch.searchsorted(found.scores, at, right=True)


def _ranges(torch: Any, begin: Tensor, end: Tensor) -> Tensor:
    """The integers from each begin up to, but not including, its end."""
    sizes = end - begin
    shifts = torch.repeat_interleave(begin - (torch.cumsum(sizes, 0) - sizes), sizes)
    found: Tensor = torch.arange(shifts.numel(), device=begin.device) + shifts
    return found


def _rounded_down(edges: FloatArray, dtype: Any, torch: Any) -> NDArray[Any]:
    """The largest numbers of the scores' dtype that are not above the edges."""
    if dtype == torch.float64:
        return edges
    narrow = np.dtype(str(dtype).removeprefix("torch."))
    rounded = edges.astype(narrow)
    return np.where(rounded > edges, np.nextafter(rounded, narrow.type(-np.inf)), rounded)


def _limbs_of(torch: Any, numbers: Tensor) -> Iterator[Tensor]:
    """The limbs of numbers in the whole units of `localparity.counts._weights`."""
    base = 2.0**LIMB_BITS
    for limb in range(LIMBS):
        scaled = numbers * limb_scale(limb)
        cut = torch.floor(scaled)
        if limb < LIMBS - 1:
            cut = cut - torch.floor(scaled / base) * base
        yield cut.long()


def check_scores(y_score: Tensor, score_range: ScoreRange) -> tuple[Tensor, float]:
    """The scores, detached and flat, and the resolution of their dtype.

    A score beyond an end of the range that its dtype cannot represent is at that end, as in memory.
    """
    known = ("torch.float16", "torch.float32", "torch.float64")
    if str(y_score.dtype) not in known:
        raise ValueError(f"y_score must be one of {', '.join(known)}, got {y_score.dtype}")
    if not y_score.numel():
        raise ValueError("y_score is empty")
    flat = y_score.detach().flatten()
    dtype = np.dtype(str(y_score.dtype).removeprefix("torch."))
    held = held_ends(score_range, dtype) if dtype == np.float32 else score_range
    least, most = (float(end) for end in flat.aminmax())
    if not (least >= held[0] and most <= held[1]):
        row = int(((flat >= held[0]) & (flat <= held[1])).logical_not().nonzero()[0])
        low, high = score_range
        raise ValueError(
            f"y_score must be inside score_range ({low}, {high}), got {flat[row].item()} at row {row}"
        )
    values = flat if held == score_range else flat.double().clamp(*score_range)
    return values, score_resolution(dtype, score_range)


def check_groups(sensitive_features: Tensor, scores: Tensor) -> Tensor:
    """The group of each score, as integers or booleans."""
    if sensitive_features.is_floating_point() or sensitive_features.is_complex():
        raise ValueError(f"sensitive_features must be integers or booleans, got {sensitive_features.dtype}")
    check_rows("sensitive_features", sensitive_features.numel(), scores.numel())
    return sensitive_features.flatten()


def check_labels(y_true: Tensor, scores: Tensor) -> Tensor:
    """Whether the label of each score, 0 or 1, is 1."""
    check_rows("y_true", y_true.numel(), scores.numel())
    flat = y_true.flatten()
    wrong = (flat != 0) & (flat != 1)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ValueError(f"y_true must be 0 or 1, got {flat[row].item():g} at row {row}")
    return flat == 1


def _check_weights(sample_weight: Tensor, scores: Tensor) -> Tensor:
    """The weight of each score."""
    check_rows("sample_weight", sample_weight.numel(), scores.numel())
    weights = sample_weight.detach().flatten()
    exact = weights.double()
    wrong = (exact != 0.0) & ~((exact >= LEAST_WEIGHT) & (exact <= MOST_WEIGHT))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ValueError(
            f"sample_weight must be 0 or between {LEAST_WEIGHT:.2g} and {MOST_WEIGHT:.2g}, "
            f"got {exact[row].item():g} at row {row}"
        )
    return weights
