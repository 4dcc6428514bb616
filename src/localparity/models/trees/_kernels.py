"""The loops over rows and over the grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled
from localparity._types import FloatArray

ORDERS = 4
"""How many moments of the scores inside a bin are kept."""

BY_CATEGORY, MISSING_LEFT, ZERO_MISSING = 1, 2, 4
"""What the flags of a split say: it is by category, missing values go left, zeros count as missing."""


@compiled
def bin_moments(
    scores: FloatArray,
    weights: FloatArray,
    cells: NDArray[np.int32],
    n_cells: int,
    bins: int,
    temperature: float,
) -> FloatArray:
    """Return the weighted moments of each cell and bin of scores.

    The moment of order m is that of (temperature x (middle of the bin - score))^m / m!, so that a sum of
    moments times derivatives of the sigmoid is Taylor's series of the smoothed distribution.
    """
    moments = np.zeros((n_cells, bins, 4), np.float64)
    width = temperature / bins
    for row in range(scores.size):
        place = scores[row] * bins
        index = min(max(int(place), 0), bins - 1)
        offset = (index + 0.5 - place) * width
        moment = moments[cells[row], index]
        weight = weights[row]
        moment[0] += weight
        weight *= offset
        moment[1] += weight
        weight *= offset * 0.5
        moment[2] += weight
        moment[3] += weight * offset * (1.0 / 3.0)
    return moments


@compiled
def derivatives(
    scores: FloatArray,
    labels: FloatArray,
    weights: FloatArray,
    cells: NDArray[np.int32],
    pulls: FloatArray,
    bump: FloatArray,
    first: FloatArray,
    second: FloatArray,
) -> None:
    """Write the first and second derivative in each row's margin: of the logistic loss and of the penalty.

    The penalty moves with a score p of a cell by -pull x bump(p): `pulls` has a factor a cell, and `bump` the
    coefficients of a spline. Of the penalty's second derivative the absolute value is taken.
    """
    pieces = bump.shape[0]
    for row in range(scores.size):
        score = scores[row]
        spread = score * (1.0 - score)
        slope = score - labels[row]
        bend = spread
        pull = pulls[cells[row]]
        if pull != 0.0:
            place = score * pieces
            piece = min(max(int(place), 0), pieces - 1)
            u = place - piece
            cubic = bump[piece]
            height = cubic[0] + u * (cubic[1] + u * (cubic[2] + u * cubic[3]))
            rise = pieces * (cubic[1] + u * (2.0 * cubic[2] + u * 3.0 * cubic[3]))
            push = pull * spread
            slope -= push * height
            turn = -push * (rise * spread + height * (1.0 - 2.0 * score))
            bend += abs(turn)
        first[row] = weights[row] * slope
        second[row] = weights[row] * bend


@compiled
def _piece(cubics: FloatArray, at: float) -> tuple[FloatArray, float]:
    """Return the cubic that a point lies on, and how far along it, from 0 to 1."""
    place = at * cubics.shape[0]
    piece = min(int(place), cubics.shape[0] - 1)
    return cubics[piece], place - piece


@compiled
def spline_value(cubics: FloatArray, at: float) -> float:
    """Return the value at one point of a cubic spline on an equally spaced grid of [0, 1]."""
    cubic, u = _piece(cubics, at)
    return float(cubic[0] + u * (cubic[1] + u * (cubic[2] + u * cubic[3])))


@compiled
def spline_slope(cubics: FloatArray, at: float) -> float:
    """Return its derivative at one point."""
    cubic, u = _piece(cubics, at)
    return float(cubics.shape[0] * (cubic[1] + u * (2.0 * cubic[2] + u * 3.0 * cubic[3])))


@compiled
def _crossing(cubics: FloatArray, below: float, above: float, level: float) -> float:
    """Between a point below the level and one at or above it, the point from which it is at or above."""
    for _ in range(60):
        middle = 0.5 * (below + above)
        if middle in (below, above):
            break
        if spline_value(cubics, middle) >= level:
            above = middle
        else:
            below = middle
    return above


@compiled
def _run_at_level(
    cubics: FloatArray, nodes: FloatArray, heights: FloatArray, level: float, epsilon: float
) -> tuple[float, float]:
    """Return the ends of a run at or above the level with room for a window; (1, 0) if there is none.

    A run that starts or ends the range has room for a window that is cut there. Between two nodes the
    spline is monotone.
    """
    start = 0
    inside = False
    last_node = nodes.size - 1
    for node in range(nodes.size + 1):
        above = node < nodes.size and heights[node] >= level
        if above and not inside:
            start, inside = node, True
        elif inside and not above:
            inside = False
            last = node - 1
            outer_low, outer_high = nodes[max(start - 1, 0)], nodes[min(node, last_node)]
            room = epsilon * ((start > 0) + (last < last_node))
            if outer_high - outer_low < room:
                continue
            low, high = nodes[start], nodes[last]
            if start > 0:
                low = _crossing(cubics, outer_low, low, level)
            if last < last_node:
                high = _crossing(cubics, outer_high, high, level)
            if high - low >= room:
                return low, high
    return 1.0, 0.0


@compiled
def highest_level(
    cubics: FloatArray, nodes: FloatArray, heights: FloatArray, epsilon: float
) -> tuple[float, float, float]:
    """Return the highest level above 0 at which a window has room, and a run there; else level 0."""
    level, low, high = 0.0, 1.0, 0.0
    too_high = heights.max()
    if too_high <= 0.0:
        return level, low, high
    for _ in range(100):
        middle = 0.5 * (level + too_high)
        if middle in (level, too_high):
            break
        run_low, run_high = _run_at_level(cubics, nodes, heights, middle, epsilon)
        if run_low <= run_high:
            level, low, high = middle, run_low, run_high
        else:
            too_high = middle
    return level, low, high


Nodes = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8], FloatArray]
Sets = tuple[NDArray[np.int32], NDArray[np.uint32]]


@compiled
def goes_left(number: float, flag: int, value: float, sets: Sets) -> bool:
    """Return whether a split sends a number left."""
    bounds, words = sets
    if np.isnan(number) or (flag & ZERO_MISSING and number == 0.0):
        return flag & MISSING_LEFT != 0
    if flag & BY_CATEGORY:
        first = bounds[int(value)]
        last = bounds[int(value) + 1]
        if not 0.0 <= number < 32.0 * (last - first):
            return False
        category = int(number)
        return bool((words[first + category // 32] >> np.uint32(category % 32)) & 1)
    return number <= value


@compiled
def add_leaves(
    features: FloatArray, nodes: Nodes, roots: NDArray[np.int32], sets: Sets, single: bool, sums: FloatArray
) -> None:
    """Add the leaf that each tree has for each row to the row's sums, of which the trees take turns."""
    feature, left, right, flags, value = nodes
    for tree in range(roots.size):
        output = tree % sums.shape[1]
        for row in range(sums.shape[0]):
            node = roots[tree]
            while feature[node] >= 0:
                number = features[row, feature[node]]
                node = left[node] if goes_left(number, flags[node], value[node], sets) else right[node]
            total = sums[row, output] + value[node]
            sums[row, output] = np.float32(total) if single else total


@compiled
def number_leaves(
    nodes: Nodes, roots: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return each node's tree, -1 for none, its first leaf, counted from the left, and how many it has."""
    feature, left, right = nodes[:3]
    trees = np.full(feature.size, -1, np.int64)
    firsts = np.zeros(feature.size, np.int64)
    counts = np.ones(feature.size, np.int64)
    for node in range(feature.size - 1, -1, -1):
        if feature[node] >= 0:
            counts[node] = counts[left[node]] + counts[right[node]]
    for tree in range(roots.size):
        trees[roots[tree]] = tree
    for node in range(feature.size):
        if feature[node] >= 0:
            trees[left[node]] = trees[right[node]] = trees[node]
            firsts[left[node]] = firsts[node]
            firsts[right[node]] = firsts[node] + counts[left[node]]
    return trees, firsts, counts


RESIDUES = 67
"""The powers of two below 2**64 leave different remainders when divided by it."""


@compiled
def reachable_leaves(
    nodes: Nodes,
    sets: Sets,
    leaves: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    numbers: FloatArray,
    starts: NDArray[np.int64],
    first: int,
    last: int,
) -> tuple[NDArray[np.uint64], FloatArray]:
    """Return the leaves that a tree may end in, given one feature's number, as bits, and the leaves' values.

    The numbers of feature k are those from ``starts[k]`` to ``starts[k + 1]``; trees are counted from the
    first to before the last. A split that sends a row right takes out the leaves on its left, so that the
    lowest bit left over by all features is the row's leaf. The bit's remainder is the place of its value.
    """
    feature, _, _, flags, value = nodes
    trees, firsts, counts = leaves
    possible = np.full((numbers.size, last - first), np.uint64(2**64 - 1))
    values = np.zeros((last - first, RESIDUES))
    one = np.uint64(1)
    for node in range(feature.size):
        if not first <= trees[node] < last:
            continue
        tree = trees[node] - first
        lowest = one << np.uint64(firsts[node])
        if feature[node] < 0:
            values[tree, lowest % np.uint64(RESIDUES)] = value[node]
            continue
        on_the_left = ((one << np.uint64(counts[nodes[1][node]])) - one) * lowest
        for place in range(starts[feature[node]], starts[feature[node] + 1]):
            if not goes_left(numbers[place], flags[node], value[node], sets):
                possible[place, tree] &= ~on_the_left
    return possible, values


@compiled
def add_reachable(
    places: NDArray[np.int64],
    possible: NDArray[np.uint64],
    values: FloatArray,
    first: int,
    single: bool,
    sums: FloatArray,
) -> None:
    """Add the leaves of trees from the first on, as `add_leaves` does."""
    left = np.empty(possible.shape[1], np.uint64)
    one = np.uint64(1)
    for row in range(sums.shape[0]):
        left[:] = possible[places[row, 0]]
        for column in range(1, places.shape[1]):
            here = possible[places[row, column]]
            for tree in range(left.size):
                left[tree] &= here[tree]
        for tree in range(left.size):
            lowest = left[tree] & ~(left[tree] - one)
            output = (first + tree) % sums.shape[1]
            total = sums[row, output] + values[tree, lowest % np.uint64(RESIDUES)]
            sums[row, output] = np.float32(total) if single else total
