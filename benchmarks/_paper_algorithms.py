"""The paper's two algorithms, written from their listings, to compare with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray


def algorithm_1(
    scores: FloatArray, groups: NDArray[np.int64], epsilon: float, *, windows_at_once: int = 1024
) -> float:
    """Exact, by looking up the gap of every score inside the window of every score: O(N^2).

    It goes about it as the published code does, with matrices of whole numbers: a mask for each end of the
    windows, and the places of the scores inside, where place 0 stands for a score outside. The published code
    makes them of all windows at once, which takes gigabytes.

    Parameters
    ----------
    scores : ndarray
        Scores in [0, 1].
    groups : ndarray
        0 or 1.
    epsilon : float
        The half-width of the windows, above 0.
    windows_at_once : int
        How many rows the matrices have.

    Returns
    -------
    float
        MCDP(epsilon).

    Examples
    --------
    >>> algorithm_1(np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 0, 1, 1]), 0.11)
    0.5
    """
    points, gap, best = _start(scores, groups, epsilon)
    starts = points[points <= 1.0 - epsilon, None]
    outside_first = np.concatenate([[np.inf], gap])
    for low in range(0, len(starts), windows_at_once):
        block = starts[low : low + windows_at_once]
        masks = [inside.astype(np.int64) for inside in (points >= block, points <= block + 2.0 * epsilon)]
        places = masks[0] * masks[1] * np.arange(1, points.size + 1)
        best = max(best, float(outside_first[places].min(axis=1).max()))
    return best


def algorithm_1_lean(scores: FloatArray, groups: NDArray[np.int64], epsilon: float) -> float:
    """The same O(N^2) as lean as numpy allows: 64 windows at a time, in the cache, without the places.

    Examples
    --------
    >>> algorithm_1_lean(np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 0, 1, 1]), 0.11)
    0.5
    """
    points, gap, best = _start(scores, groups, epsilon)
    starts = points[points <= 1.0 - epsilon, None]
    for low in range(0, len(starts), 64):
        block = starts[low : low + 64]
        inside = (points >= block) & (points <= block + 2.0 * epsilon)
        best = max(best, float(np.where(inside, gap, np.inf).min(axis=1).max()))
    return best


def algorithm_2(scores: FloatArray, groups: NDArray[np.int64], epsilon: float, k: int) -> float:
    """Approximate, on a grid of step epsilon / k.

    Parameters
    ----------
    scores, groups, epsilon
        As in `algorithm_1`.
    k : int
        How many points there are to a half-width.

    Returns
    -------
    float
        Never below MCDP(epsilon).

    Examples
    --------
    >>> algorithm_2(np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 0, 1, 1]), 0.11, 32)
    0.5
    """
    first, second = (np.sort(scores[groups == group]) for group in (0, 1))
    gap = _gap(first, second, np.arange(0.0, 1.0, epsilon / k))
    windows = np.lib.stride_tricks.sliding_window_view(gap[1:], 2 * k)
    return float(max(gap[: k + 1].min(), windows.min(axis=1).max()))


def _start(
    scores: FloatArray, groups: NDArray[np.int64], epsilon: float
) -> tuple[FloatArray, FloatArray, float]:
    """The points that Algorithm 1 looks at, the gap at each, and the value that it starts from."""
    first, second = (np.sort(scores[groups == group]) for group in (0, 1))
    points = np.sort(np.concatenate([[0.0], scores, [1.0]]))
    gap = _gap(first, second, points)
    return points, gap, float(gap[points <= epsilon].min())


def _gap(first: FloatArray, second: FloatArray, at: FloatArray) -> FloatArray:
    below_first = np.searchsorted(first, at, side="right") / first.size
    below_second = np.searchsorted(second, at, side="right") / second.size
    return np.abs(below_first - below_second)
