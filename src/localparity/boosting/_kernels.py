"""The loops over rows and over the grid, compiled by numba on first use and cached on disk."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._validation import FloatArray
from localparity.metrics._kernels import _compiled

ORDERS = 4
"""How many moments of the scores inside a bin are kept."""


@_compiled
def bin_moments(
    margins: NDArray[Any],
    weights: FloatArray,
    cells: NDArray[np.int32],
    n_cells: int,
    bins: int,
    temperature: float,
) -> tuple[FloatArray, FloatArray]:
    """The scores of margins, and for each cell of people and bin of scores the weighted moments.

    The moment of order m is that of (temperature x (middle of the bin - score))^m / m!, so that a sum of
    moments times derivatives of the sigmoid is Taylor's series of the smoothed distribution.
    """
    rows = margins.size
    scores = np.empty(rows, np.float64)
    moments = np.zeros((n_cells, bins, 4), np.float64)
    width = temperature / bins
    for row in range(rows):
        score = 1.0 / (1.0 + math.exp(-margins[row]))
        scores[row] = score
        place = score * bins
        found = min(int(place), bins - 1)
        offset = (found + 0.5 - place) * width
        moment = moments[cells[row], found]
        weight = weights[row]
        moment[0] += weight
        weight *= offset
        moment[1] += weight
        weight *= offset * 0.5
        moment[2] += weight
        moment[3] += weight * offset * (1.0 / 3.0)
    return scores, moments


@_compiled
def derivatives(
    scores: FloatArray,
    labels: FloatArray,
    weights: FloatArray,
    cells: NDArray[np.int32],
    pulls: FloatArray,
    thresholds: FloatArray,
    shares: FloatArray,
    temperature: float,
    positive: bool,
) -> tuple[FloatArray, FloatArray]:
    """First and second derivatives in each row's margin: of the logistic loss and of the smoothed gap.

    `pulls` is, for each cell of people, the signed factor of its part of the gap. With `positive`, the gap's
    second derivative is replaced by its bound that is not negative.
    """
    first = np.empty(scores.size, np.float64)
    second = np.empty(scores.size, np.float64)
    for row in range(scores.size):
        score = scores[row]
        spread = score * (1.0 - score)
        slope = score - labels[row]
        bend = spread
        pull = pulls[cells[row]]
        if pull != 0.0:
            lean = 1.0 - 2.0 * score
            for place in range(thresholds.size):
                below = 1.0 / (1.0 + math.exp(-temperature * (thresholds[place] - score)))
                push = pull * shares[place] * temperature * below * (1.0 - below) * spread
                slope -= push
                if positive:
                    bend += abs(push) * (temperature * spread + abs(lean))
                else:
                    bend += push * (temperature * (1.0 - 2.0 * below) * spread - lean)
        first[row] = weights[row] * slope
        second[row] = weights[row] * bend
    return first, second


@_compiled
def spline_value(values: FloatArray, slopes: FloatArray, at: float) -> float:
    """A cubic spline on an equally spaced grid of [0, 1], at one point."""
    cells = values.size - 1
    cell = min(int(at * cells), cells - 1)
    u = at * cells - cell
    low, high = values[cell], values[cell + 1]
    left, right = slopes[cell] / cells, slopes[cell + 1] / cells
    square = 3.0 * (high - low) - 2.0 * left - right
    cube = 2.0 * (low - high) + left + right
    return float(low + u * (left + u * (square + u * cube)))


@_compiled
def spline_slope(values: FloatArray, slopes: FloatArray, at: float) -> float:
    """Its derivative there."""
    cells = values.size - 1
    cell = min(int(at * cells), cells - 1)
    u = at * cells - cell
    left, right = slopes[cell], slopes[cell + 1]
    rise = (values[cell + 1] - values[cell]) * cells
    return float(left + u * (2.0 * (3.0 * rise - 2.0 * left - right) + u * 3.0 * (left + right - 2.0 * rise)))


@_compiled
def _crossing(values: FloatArray, slopes: FloatArray, below: float, above: float, level: float) -> float:
    """Between a point below the level and one at or above it, the point from which it is at or above."""
    for _ in range(60):
        middle = 0.5 * (below + above)
        if middle in (below, above):
            break
        if spline_value(values, slopes, middle) >= level:
            above = middle
        else:
            below = middle
    return above


@_compiled
def _run_at_level(
    values: FloatArray, slopes: FloatArray, nodes: FloatArray, heights: FloatArray, level: float, epsilon: float
) -> tuple[float, float]:
    """A run at or above the level that has room for a window, from end to end; (1, 0) where there is none.

    A run that starts or ends the range has room for a window that is cut there.
    """
    start = 0
    inside = False
    for node in range(nodes.size + 1):
        above = node < nodes.size and heights[node] >= level
        if above and not inside:
            start, inside = node, True
        elif inside and not above:
            inside = False
            last = node - 1
            outer_low = nodes[max(start - 1, 0)]
            outer_high = nodes[min(node, nodes.size - 1)]
            whole = start == 0 and last == nodes.size - 1
            cut = start == 0 or last == nodes.size - 1
            room = 0.0 if whole else epsilon if cut else 2.0 * epsilon
            if outer_high - outer_low < room:
                continue
            low, high = nodes[start], nodes[last]
            if start > 0:
                low = _crossing(values, slopes, outer_low, low, level)
            if last < nodes.size - 1:
                high = _crossing(values, slopes, outer_high, high, level)
            if high - low >= room:
                return low, high
    return 1.0, 0.0


@_compiled
def highest_level(
    values: FloatArray, slopes: FloatArray, nodes: FloatArray, heights: FloatArray, epsilon: float
) -> tuple[float, float, float]:
    """The highest level above 0 at which a window has room, and a run there; level 0 where there is none."""
    level, low, high = 0.0, 1.0, 0.0
    too_high = heights.max()
    if too_high <= 0.0:
        return level, low, high
    low, high = _run_at_level(values, slopes, nodes, heights, too_high, epsilon)
    if low <= high:
        return too_high, low, high
    for _ in range(60):
        middle = 0.5 * (level + too_high)
        if middle in (level, too_high):
            break
        found_low, found_high = _run_at_level(values, slopes, nodes, heights, middle, epsilon)
        if found_low <= found_high:
            level, low, high = middle, found_low, found_high
        else:
            too_high = middle
    return level, low, high
