"""Check the bytes of a KLL sketch of doubles before DataSketches reads them: it may crash on others."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray

_FIRST = struct.Struct("<BBBBHBB")
_SECOND = struct.Struct("<QHBB")
_FAMILY, _LEAST_LEVEL = 15, 8
_ONE_ROW, _MORE_ROWS = (2, 2), (5, 1)
_SORTED, _SINGLE = 2, 4


def check_kll(part: bytes, k: int, score_range: tuple[float, float]) -> None:
    """Raise a ValueError unless the bytes are a sketch of that size with scores in that range.

    A score at level i stands for ``2**i`` rows. The bytes hold the number of rows, where each level begins,
    the lowest and the highest score, and the scores.
    """
    _check_length(part, _FIRST.size + 8)
    ints, version, family, flags, found_k, least, _ = _FIRST.unpack_from(part)
    kind, flags = (ints, version), flags & ~_SORTED
    of_one, of_more = (kind, flags) == (_ONE_ROW, _SINGLE), (kind, flags) == (_MORE_ROWS, 0)
    if (family, found_k, least) != (_FAMILY, k, _LEAST_LEVEL) or not (of_one or of_more):
        raise ValueError(f"a group's sketch must be a KLL sketch of doubles with k = {k}")
    scores = _scores_of_many(part, k) if of_more else np.frombuffer(part[_FIRST.size :], "<f8")
    low, high = score_range
    if not (low <= scores.min() and scores.max() <= high):
        raise ValueError(f"the scores of a group's sketch must be inside score_range ({low}, {high})")
    if of_more:
        _check_order(part)


def kept_scores(part: bytes) -> tuple[FloatArray, NDArray[np.int64]]:
    """The scores that a sketch of two rows or more kept, and the number of rows each stands for.

    DataSketches' own iterator is wrong: in a merged sketch whose lowest level is empty, it gives every score
    the weight 1.
    """
    rows, _, kept, scores = _levels_of(part)
    weights = np.repeat(1 << np.arange(kept.size), kept)
    if weights.sum() != rows:
        raise ValueError(f"a group's sketch must keep scores for its {rows} rows, got {weights.sum()}")
    return scores[2:], weights


def _scores_of_many(part: bytes, k: int) -> FloatArray:
    """The lowest, the highest and the kept scores of a sketch whose levels add up to its rows."""
    rows, least_k, kept, scores = _levels_of(part)
    counted = sum(int(number) << level for level, number in enumerate(kept))
    if least_k != k or (kept < 0).any() or counted != rows:
        raise ValueError(f"a group's sketch must keep scores for its {rows} rows, got {counted}")
    return scores


def _check_order(part: bytes) -> None:
    """Check that scores lie between the lowest and the highest, in order on each level but the first."""
    _, _, kept, (lowest, highest, *scores) = _levels_of(part)
    above = np.split(np.array(scores), np.cumsum(kept)[:-1])[1:]
    in_order = all((level[1:] >= level[:-1]).all() for level in above)
    if not (in_order and lowest <= min(scores) and max(scores) <= highest):
        raise ValueError(f"a group's sketch must have its scores in order, between {lowest} and {highest}")


def _levels_of(part: bytes) -> tuple[int, int, NDArray[np.int64], FloatArray]:
    """The number of rows, the least k, the number of scores at each level, and the scores."""
    at = _FIRST.size + _SECOND.size
    _check_length(part, at)
    rows, least_k, n_levels, _ = _SECOND.unpack_from(part, _FIRST.size)
    levels = np.frombuffer(part, "<u4", n_levels, at).astype(np.int64)
    scores = np.frombuffer(part, "<f8", offset=at + 4 * n_levels)
    return rows, least_k, np.diff(levels, append=levels[:1] + scores.size - 2), scores


def _check_length(part: bytes, least: int) -> None:
    if len(part) < least:
        raise ValueError(f"a group's sketch must have at least {least} bytes, got {len(part)}")
