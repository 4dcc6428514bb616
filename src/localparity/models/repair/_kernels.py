"""The loops of score repair.

The groups' distinct scores, ascending, lie one group after another in one array, and so do the shares of
people at or below each of them, the levels; ``starts`` says where each group begins, and where the last ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled
from localparity._types import FloatArray

_ROUNDING = 2.0**-50
"""Levels and gaps that differ by less count as equal, and so do scores that differ by less of their size."""

_EPSILON = 2.0**-52


@compiled
def find_barycentre(
    scores: FloatArray, levels: FloatArray, starts: NDArray[np.int64], shares: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the Wasserstein barycentre's scores and levels: means of the groups' quantiles at each level.

    The third is by how much each of its scores may be off, in proportion to the scores that it is a mean of.
    """
    groups = shares.size
    at = starts[:groups].copy()
    places = np.empty(scores.size)
    heights = np.empty(scores.size)
    slack = np.empty(scores.size)
    found = 0
    height = 0.0
    while height < 1.0:
        height = 1.0
        place = 0.0
        size = 0.0
        for group in range(groups):
            height = min(height, levels[at[group]])
            part = shares[group] * scores[at[group]]
            place += part
            size += abs(part)
        places[found] = place if found == 0 else max(place, places[found - 1])
        heights[found] = height
        slack[found] = _ROUNDING * size
        found += 1
        for group in range(groups):
            if levels[at[group]] <= height:
                at[group] += 1
    return places[:found], heights[:found], slack[:found]


@compiled
def sweep(
    scores: FloatArray,
    levels: FloatArray,
    starts: NDArray[np.int64],
    places: FloatArray,
    heights: FloatArray,
    slack: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return every score of a group or the barycentre, with the lowest, the centre's and the highest level.

    A score of the barycentre that is within its `slack` of a group's counts as that one.
    """
    groups = starts.size - 1
    at = starts[:groups].copy()
    level = np.zeros(groups)
    grid = np.empty(scores.size + places.size)
    lowest = np.empty(grid.size)
    centre = np.empty(grid.size)
    highest = np.empty(grid.size)
    found = 0
    place = 0
    height = 0.0
    last = scores.max()
    here = -np.inf
    while here < last:
        here = last
        for group in range(groups):
            if at[group] < starts[group + 1]:
                here = min(here, scores[at[group]])
        if place < places.size and places[place] < here - slack[place]:
            here = places[place]
        while place < places.size and places[place] <= here + slack[place]:
            height = heights[place]
            place += 1
        low = 1.0
        high = 0.0
        for group in range(groups):
            if at[group] < starts[group + 1] and scores[at[group]] == here:
                level[group] = levels[at[group]]
                at[group] += 1
            low = min(low, level[group])
            high = max(high, level[group])
        grid[found] = here
        lowest[found] = low
        highest[found] = high
        centre[found] = min(max(height, low), high)
        found += 1
    return grid[:found], lowest[:found], centre[:found], highest[:found]


@compiled
def narrow(
    units: FloatArray,
    factor: float,
    origin: float,
    lowest: FloatArray,
    centre: FloatArray,
    highest: FloatArray,
    bound: float,
    reach: float,
) -> None:
    """Draw the lowest and the highest level together, in place, to at most `bound` around the barycentre.

    Only stretches of thresholds with a wider gap that carry a window, whose half-width exceeds `reach` by
    more than rounding, are touched. `units` are the thresholds as fractions of the score range, and `factor`
    and `origin` the terms of their rounding.
    """
    start = 0
    while start < units.size:
        if highest[start] - lowest[start] <= bound + _ROUNDING:
            start += 1
            continue
        end = start
        while highest[end] - lowest[end] > bound + _ROUNDING:
            end += 1
        rounding = factor * (abs(units[start] + origin) + abs(units[end] + origin))
        rounding += _EPSILON * (units[start] + units[end])
        length = units[end] - units[start] - rounding
        half_width = 0.5 * length if units[start] > 0.0 else length
        if half_width > reach:
            for i in range(start, end):
                share = bound / (highest[i] - lowest[i])
                lowest[i] = centre[i] - (centre[i] - lowest[i]) * share
                highest[i] = centre[i] + (highest[i] - centre[i]) * share
        start = end


@compiled
def move(
    scores: FloatArray,
    levels: FloatArray,
    grid: FloatArray,
    lowest: FloatArray,
    centre: FloatArray,
    highest: FloatArray,
) -> FloatArray:
    """Return the nearest scores of one group at which its levels stay between the lowest and the highest.

    The people of a score, from level `before` up to `level`, may come no earlier than where the highest
    reaches `level`, and no later than where the lowest passes `before`. Where that leaves no place, more
    people share the score than fit into the band: they go where the barycentre has their middle.
    """
    moved = np.empty(scores.size)
    earliest = np.empty(scores.size, np.int64)
    latest = np.empty(scores.size, np.int64)
    first = 0
    last = 0
    middle = 0
    before = 0.0
    for i in range(scores.size):
        level = levels[i]
        while highest[first] < level - _ROUNDING:
            first += 1
        while last < grid.size - 1 and lowest[last] <= before + _ROUNDING:
            last += 1
        if first <= last:
            moved[i] = min(max(scores[i], grid[first]), grid[last])
        else:
            while centre[middle] < 0.5 * (before + level) - _ROUNDING:
                middle += 1
            moved[i] = grid[min(max(middle, last), first)]
        earliest[i] = first
        latest[i] = last
        before = level
    _part_ties(moved, grid, earliest, latest)
    return moved


@compiled
def _part_ties(
    moved: FloatArray,
    grid: FloatArray,
    earliest: NDArray[np.int64],
    latest: NDArray[np.int64],
) -> None:
    """Part scores that have come together, by less than half the way to the next score on either side.

    Those that could have come earlier go before the others, those that could come later behind them; only
    what can do neither stays tied.
    """
    start = 0
    while start < moved.size:
        end = start + 1
        while end < moved.size and moved[end] == moved[start]:
            end += 1
        if end - start > 1:
            here = np.searchsorted(grid, moved[start])
            stay = start
            while stay < end - 1 and earliest[stay] < here:
                stay += 1
            behind = end
            while behind > stay + 1 and latest[behind - 1] > here:
                behind -= 1
            room = 0.5 * (grid[here] - grid[max(here - 1, 0)])
            for i in range(start, stay):
                moved[i] -= room * (stay - i) / (stay - start + 1)
            room = 0.5 * (grid[min(here + 1, grid.size - 1)] - grid[here])
            for i in range(behind, end):
                moved[i] += room * (i - behind + 1) / (end - behind + 1)
        start = end


@compiled
def guide(knots: FloatArray, low: float, high: float) -> NDArray[np.int64]:
    """Return how many knots lie before each of as many equal cells of the range as there are knots."""
    cells = knots.size
    before = np.zeros(cells + 1, np.int64)
    for knot in knots:
        before[_cell(knot, low, high, cells) + 1] += 1
    for cell in range(cells):
        before[cell + 1] += before[cell]
    return before


@compiled
def _cell(score: float, low: float, high: float, cells: int) -> int:
    return min(int((score - low) / (high - low) * cells), cells - 1)


@compiled
def follow(
    scores: FloatArray,
    knots: FloatArray,
    values: FloatArray,
    before: NDArray[np.int64],
    low: float,
    high: float,
) -> FloatArray:
    """Return a map's value at each score, on straight lines from knot to knot and to the ends."""
    found = np.empty(scores.size)
    for row in range(scores.size):
        score = scores[row]
        cell = _cell(score, low, high, knots.size)
        first = before[cell]
        last = before[cell + 1]
        while first < last:
            half = (first + last) >> 1
            if knots[half] <= score:
                first = half + 1
            else:
                last = half
        left, at_left = (knots[first - 1], values[first - 1]) if first > 0 else (low, low)
        right, at_right = (knots[first], values[first]) if first < knots.size else (high, high)
        if left == score:
            found[row] = at_left
        elif left == at_left and right == at_right:
            found[row] = score
        else:
            along = at_left + (score - left) / (right - left) * (at_right - at_left)
            found[row] = min(max(along, at_left), at_right)
    return found
