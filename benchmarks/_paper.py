"""The paper's two algorithms, written from their listings, to compare with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def _gap(first: Array, second: Array, at: Array) -> Array:
    below_first = np.searchsorted(first, at, side="right") / first.size
    below_second = np.searchsorted(second, at, side="right") / second.size
    return np.abs(below_first - below_second)


def algorithm_1(scores: Array, groups: NDArray[np.int64], epsilon: float) -> float:
    """Exact, by looking up the gap of every score inside the window of every score: O(N^2).

    It goes about it as the published code does, with N x N matrices of whole numbers: a mask for each end of
    the windows, and the places of the scores inside, where place 0 stands for a score outside.
    """
    points, gap, best = _start(scores, groups, epsilon)
    starts = points[points <= 1.0 - epsilon, None]
    masks = [inside.astype(np.int64) for inside in (points >= starts, points <= starts + 2.0 * epsilon)]
    places = masks[0] * masks[1] * np.arange(1, points.size + 1)
    return float(max(best, np.concatenate([[np.inf], gap])[places].min(axis=1).max()))


def algorithm_1_in_blocks(scores: Array, groups: NDArray[np.int64], epsilon: float) -> float:
    """The same O(N^2) as lean as numpy allows: 64 windows at a time, in the cache, without the places."""
    points, gap, best = _start(scores, groups, epsilon)
    starts = points[points <= 1.0 - epsilon]
    for low in range(0, starts.size, 64):
        start = starts[low : low + 64, None]
        inside = (points >= start) & (points <= start + 2.0 * epsilon)
        best = max(best, np.where(inside, gap, np.inf).min(axis=1).max())
    return float(best)


def _start(scores: Array, groups: NDArray[np.int64], epsilon: float) -> tuple[Array, Array, float]:
    first, second = (np.sort(scores[groups == group]) for group in (0, 1))
    points = np.sort(np.concatenate([[0.0], scores, [1.0]]))
    gap = _gap(first, second, points)
    return points, gap, gap[points <= epsilon].min()


def algorithm_2(scores: Array, groups: NDArray[np.int64], epsilon: float, k: int) -> float:
    """Approximate, on a grid of step epsilon / k."""
    first, second = (np.sort(scores[groups == group]) for group in (0, 1))
    gap = _gap(first, second, np.arange(0.0, 1.0, epsilon / k))
    windows = np.lib.stride_tricks.sliding_window_view(gap[1:], 2 * k)
    return float(max(gap[: k + 1].min(), windows.min(axis=1).max()))
