"""Slow and plain definitions of what the losses compute, in numpy and with loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def smoothed_gap(
    scores: NDArray[np.float64], groups: NDArray[np.int64], a: int, b: int, t: float, temperature: float
) -> float:
    """The difference of the two groups' mean sigmoids at one threshold."""

    def share(group: int) -> float:
        members = scores[groups == group]
        return float(np.mean([1.0 / (1.0 + np.exp(min(700.0, -temperature * (t - p)))) for p in members]))

    return share(a) - share(b)


def scanned_gaps(
    scores: NDArray[np.float64], groups: NDArray[np.int64], a: int, b: int, temperature: float, points: int
) -> NDArray[np.float64]:
    """The signed smoothed gap at equally spaced thresholds of [0, 1]."""
    thresholds = np.linspace(0.0, 1.0, points)

    def shares(group: int) -> NDArray[np.float64]:
        members = scores[groups == group]
        exponent = np.clip(-temperature * (thresholds[:, None] - members), -700.0, 700.0)
        return np.mean(1.0 / (1.0 + np.exp(exponent)), axis=1)

    return shares(a) - shares(b)


def scanned_mcdp(gaps: NDArray[np.float64], epsilon: float) -> float:
    """The largest, over windows of a scan, of the smallest gap in the window; 0 where the sign changes."""
    return max(_largest_minimum(gaps, epsilon), _largest_minimum(-gaps, epsilon), 0.0)


def _largest_minimum(gaps: NDArray[np.float64], epsilon: float) -> float:
    half = round(epsilon * (gaps.size - 1))
    padded = np.concatenate([np.full(half, np.inf), gaps, np.full(half, np.inf)])
    return float(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1).min(axis=1).max())
