"""Where a smoothed gap is largest, and where it stays large over a window, exactly.

The gap is a cubic spline. Between its nodes, the grid and the extrema inside the grid's cells, it is monotone:
its maximum is at a node, and the people above a level are found by one walk over the nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from localparity._validation import FloatArray
from localparity.boosting._kernels import highest_level, spline_slope
from localparity.boosting._smoothed import Spline

_HAIR = 1e-9


class Place(NamedTuple):
    """Where MCDP(epsilon) is taken: its value, and the thresholds whose gaps make it, with their shares."""

    value: float
    sign: float
    thresholds: FloatArray
    shares: FloatArray


def largest(gap: Spline, epsilon: float) -> Place:
    """The max-min point of MCDP(epsilon) of one smoothed gap.

    At epsilon 0 it is one threshold. Over a window, it is the two ends with the shares that keep the window
    in balance, or the one threshold inside, or at the end of a window that is cut, where the gap is smallest.

    Parameters
    ----------
    gap : Spline
        The difference of two smoothed distributions.
    epsilon : float
        The half-width of the windows.

    Returns
    -------
    Place

    Examples
    --------
    >>> grid = np.linspace(0.0, 1.0, 65)
    >>> gap = Spline(0.5 - (grid - 0.5) ** 2, 1.0 - 2.0 * grid)
    >>> found = largest(gap, epsilon=0.1)
    >>> round(found.value, 6), found.thresholds.round(6), found.shares.round(6)
    (0.49, array([0.4, 0.6]), array([0.5, 0.5]))
    """
    nodes, values = _nodes(gap)
    if epsilon == 0.0:
        place = int(np.argmax(np.abs(values)))
        return Place(abs(values[place]), np.sign(values[place]), nodes[place : place + 1], np.ones(1))
    sides = [_window(gap, nodes, values * sign, sign, epsilon) for sign in (1.0, -1.0)]
    return max(sides, key=lambda side: side.value)


def _nodes(gap: Spline) -> tuple[FloatArray, FloatArray]:
    """The grid and the extrema inside its cells, in order, with the gap there."""
    cells = gap.values.size - 1
    low, high = gap.values[:-1], gap.values[1:]
    left, right = gap.slopes[:-1] / cells, gap.slopes[1:] / cells
    # With u from 0 to 1 in the cell, the cubic is low + left u + square u^2 + cube u^3.
    square, cube = 3.0 * (high - low) - 2.0 * left - right, 2.0 * (low - high) + left + right
    may_turn = np.flatnonzero((left * right < 0.0) | (square * square >= 3.0 * cube * left))
    inside = []
    for sign in (1.0, -1.0):
        root = np.sqrt(np.maximum(square[may_turn] ** 2 - 3.0 * cube[may_turn] * left[may_turn], 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            at = -left[may_turn] / (square[may_turn] + sign * root)
        kept = (at > 0.0) & (at < 1.0)
        inside.append((may_turn[kept], at[kept]))
    cell, at = (np.concatenate(parts) for parts in zip(*inside, strict=True))
    height = low[cell] + at * (left[cell] + at * (square[cell] + at * cube[cell]))
    nodes = np.concatenate([np.arange(cells + 1.0), cell + at]) / cells
    order = np.argsort(nodes, kind="stable")
    return nodes[order], np.concatenate([gap.values, height])[order]


def _window(gap: Spline, nodes: FloatArray, heights: FloatArray, sign: float, epsilon: float) -> Place:
    """The same on one side of the gap, whose sign the heights have already."""
    values, slopes = gap.values * sign, gap.slopes * sign
    level, low, high = highest_level(values, slopes, nodes, heights, min(epsilon, 1.0))
    if low > high:
        return Place(0.0, sign, np.zeros(1), np.zeros(1))
    cut = low == 0.0 or high == 1.0
    if high - low > (1.0 if cut else 2.0) * min(epsilon, 1.0) + _HAIR:
        inside = (nodes >= low) & (nodes <= high)
        lowest = nodes[inside][np.argmin(heights[inside])]
        return Place(level, sign, np.array([lowest]), np.ones(1))
    if cut:
        return Place(level, sign, np.array([high if low == 0.0 else low]), np.ones(1))
    ends = np.array([low, high])
    rise, fall = np.abs([spline_slope(values, slopes, end) for end in ends])
    share = fall / (rise + fall) if rise + fall > 0.0 else 0.5
    return Place(level, sign, ends, np.array([share, 1.0 - share]))
