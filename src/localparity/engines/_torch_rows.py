"""Rows as tensors, checked: the score of each, the code of its group and label, and its weight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from localparity._types import ScoreRange
from localparity._validation import LEAST_WEIGHT, MOST_WEIGHT, check_rows, held_ends

if TYPE_CHECKING:
    from torch import Tensor

    Key = tuple[int | bool, int | None]

CHUNK = 2**24
"""Rows that are looked at together where each takes memory of its own; on a CPU, what its caches hold."""

_CPU_CHUNK = 2**16

_FEW_GROUPS = 256


class UnknownCodeError(Exception):
    """A row has a code beyond those that rows were said to have."""


class TensorRows(NamedTuple):
    """The rows on their device; `first` is the code of the first key."""

    scores: Tensor
    codes: Tensor
    weights: Tensor | None = None
    first: int = 0

    @property
    def size(self) -> int:
        """How many rows there are."""
        return self.scores.numel()

    def where(self, chosen: Tensor) -> TensorRows:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        return TensorRows(self.scores[chosen], self.codes[chosen], weights, self.first)

    def chunks(self) -> Iterator[TensorRows]:
        """The rows, a bounded number at a time, and of none an empty chunk."""
        size = _CPU_CHUNK if self.scores.device.type == "cpu" else CHUNK
        for start in range(0, max(1, self.size), size):
            part = slice(start, start + size)
            weights = None if self.weights is None else self.weights[part]
            yield TensorRows(self.scores[part], self.codes[part], weights, self.first)


def numpy_dtype(scores: Tensor) -> np.dtype[Any]:
    """The dtype of the scores as numpy names it."""
    return np.dtype(str(scores.dtype).removeprefix("torch."))


def ends_of(scores: Tensor, score_range: ScoreRange) -> ScoreRange:
    """The ends of the range that scores of a dtype may reach, as in memory."""
    dtype = numpy_dtype(scores)
    return held_ends(score_range, dtype) if dtype == np.float32 else score_range


def as_flat_scores(y_score: Tensor) -> Tensor:
    """The scores, detached and flat; their range is not checked."""
    known = ("torch.float16", "torch.float32", "torch.float64")
    if str(y_score.dtype) not in known:
        raise ValueError(f"y_score must be one of {', '.join(known)}, got {y_score.dtype}")
    if not y_score.numel():
        raise ValueError("y_score is empty")
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
        raise ValueError(f"{name} must be on the device of y_score, {scores.device}, got {flat.device}")
    return flat


def check_range(scores: Tensor, score_range: ScoreRange) -> None:
    """Raise a ValueError where a score lies outside of the range, or is NaN."""
    lowest, highest = ends_of(scores, score_range)
    least, most = (float(end) for end in scores.aminmax())
    if not (least >= lowest and most <= highest):
        inside = (scores >= lowest) & (scores <= highest)
        check_score(scores, int(inside.logical_not().nonzero()[0]), score_range)


def check_score(scores: Tensor, row: int, score_range: ScoreRange) -> None:
    """Raise a ValueError where the score of a row lies outside of the range, or is NaN."""
    lowest, highest = ends_of(scores, score_range)
    score = scores[row].item()
    if not lowest <= score <= highest:
        low, high = score_range
        raise ValueError(f"y_score must be inside score_range ({low}, {high}), got {score} at row {row}")


def as_groups(sensitive_features: Tensor, scores: Tensor) -> Tensor:
    """The group of each score, as integers or booleans."""
    if sensitive_features.is_floating_point() or sensitive_features.is_complex():
        raise ValueError(f"sensitive_features must be integers or booleans, got {sensitive_features.dtype}")
    return as_flat(sensitive_features, "sensitive_features", scores)


def as_labels(y_true: Tensor, scores: Tensor) -> Tensor:
    """Whether the label of each score, 0 or 1, is 1."""
    flat = as_flat(y_true, "y_true", scores)
    if str(flat.dtype) == "torch.bool":
        return flat
    labels = flat == 1
    for start in range(0, flat.numel(), CHUNK):
        part = flat[start : start + CHUNK]
        wrong = ~labels[start : start + CHUNK] & (part != 0)
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0])
            raise ValueError(f"y_true must be 0 or 1, got {part[row].item():g} at row {start + row}")
    return labels


def as_weights(sample_weight: Tensor, scores: Tensor) -> Tensor:
    """The weight of each score."""
    weights = as_flat(sample_weight, "sample_weight", scores)
    for start in range(0, weights.numel(), CHUNK):
        exact = weights[start : start + CHUNK].double()
        wrong = (exact != 0.0) & ~((exact >= LEAST_WEIGHT) & (exact <= MOST_WEIGHT))
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0])
            raise ValueError(
                f"sample_weight must be 0 or between {LEAST_WEIGHT:.2g} and {MOST_WEIGHT:.2g}, "
                f"got {exact[row].item():g} at row {start + row}"
            )
    return weights


def span_of(torch: Any, groups: Tensor) -> tuple[int, int]:
    """The lowest and the highest group."""
    if groups.dtype == torch.bool:
        return 0, 1
    low, high = torch.stack(torch.aminmax(groups)).tolist()
    return low, high


def code_rows(
    torch: Any, groups: Tensor, labels: Tensor | None, span: tuple[int, int]
) -> tuple[Tensor, int, list[Key]]:
    """The code of each row, the lowest code, and the groups and labels that the codes stand for in order.

    Groups of one byte are their own codes where there are no labels; a code may stand for nobody.
    """
    low, high = span
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
        codes = groups.to(torch.uint8, copy=True).sub_(low % _FEW_GROUPS)
    else:
        codes = torch.empty(groups.numel(), dtype=torch.int32, device=groups.device)
        for start in range(0, groups.numel(), CHUNK):
            part = groups[start : start + CHUNK]
            places = part - low if distinct is None else torch.searchsorted(distinct, part)
            codes[start : start + CHUNK] = places
    return codes if labels is None else codes.mul_(2).add_(labels), 0, keys
