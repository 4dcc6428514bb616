"""The loops of score repair.

The groups' distinct scores, ascending, lie one group after another in one array, and so do the shares of
people at or below each of them, the levels; ``starts`` says where each group begins, and where the last ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled
from localparity._types import FloatArray, IntArray

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
    count = 0
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
        places[count] = place if count == 0 else max(place, places[count - 1])
        heights[count] = height
        slack[count] = _ROUNDING * size
        count += 1
        for group in range(groups):
            if levels[at[group]] <= height:
                at[group] += 1
    return places[:count], heights[:count], slack[:count]


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
    count = 0
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
        grid[count] = here
        lowest[count] = low
        highest[count] = high
        centre[count] = min(max(height, low), high)
        count += 1
    return grid[:count], lowest[:count], centre[:count], highest[:count]


@compiled
def draw_together(
    units: FloatArray,
    factor: float,
    origin: float,
    lowest: FloatArray,
    centre: FloatArray,
    highest: FloatArray,
    bound: float,
    wider_than: float,
) -> None:
    """Draw the lowest and the highest level together, in place, to at most `bound` around the barycentre.

    Only stretches of thresholds with a wider gap that carry a window, whose half-width exceeds `wider_than`
    by more than rounding, are touched. `units` are the thresholds as fractions of the score range, and
    `factor` and `origin` the terms of their rounding.
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
        if half_width > wider_than:
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
    people share the score than fit into the corridor: they go where the barycentre has their middle.
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
    moved: FloatArray, grid: FloatArray, earliest: NDArray[np.int64], latest: NDArray[np.int64]
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
    mapped = np.empty(scores.size)
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
            mapped[row] = at_left
        elif left == at_left and right == at_right:
            mapped[row] = score
        else:
            along = at_left + (score - left) / (right - left) * (at_right - at_left)
            mapped[row] = min(max(along, at_left), at_right)
    return mapped


# The loops of group-blind repair.
#
# At a selection rate the rows with ``score - multipliers . features > threshold`` are selected. A row counts
# for one constraint, its ``place`` (-1: for none), with the share that it has of it.


_CELLS = 1024
_PASSES = 3
_STEPS = 40
_SHORTEST_STEP = 1e-6
_OVERSHOOT = 0.25
_MOVES = 2000
_STILL = 1e-12
_DEAREST = 1.0
_TIED = 1e-8
_RIDGE = 1e-3
_LEAST_RIDGE = 1e-6


@compiled
def find_threshold(values: FloatArray, weights: FloatArray, above: float) -> float:
    """Return the value that rows of weight `above` exceed, by counting into ever smaller cells."""
    low = values.min()
    high = values.max()
    end = np.inf
    counted = np.empty(_CELLS)
    threshold = low
    for _ in range(_PASSES):
        width = (high - low) / _CELLS
        if not width > 0.0:
            break
        beyond = 0.0
        counted[:] = 0.0
        for row in range(values.size):
            if values[row] >= end:
                beyond += weights[row]
            elif values[row] >= low:
                counted[min(int((values[row] - low) / width), _CELLS - 1)] += weights[row]
        cell = _CELLS - 1
        while cell > 0 and beyond + counted[cell] < above:
            beyond += counted[cell]
            cell -= 1
        part = (above - beyond) / counted[cell] if counted[cell] > 0.0 else 0.0
        high = end = low + width * (cell + 1)
        low = low + width * cell
        threshold = high - min(max(part, 0.0), 1.0) * (high - low)
    return float(threshold)


@compiled
def share_of_tied(
    values: FloatArray, weights: FloatArray, above: float, threshold: float, tied: float
) -> float:
    """Return the share of the rows tied at a threshold that, with those beyond it, weighs `above`."""
    beyond = 0.0
    at = 0.0
    for row in range(values.size):
        if values[row] > threshold + tied:
            beyond += weights[row]
        elif values[row] >= threshold - tied:
            at += weights[row]
    return min(max((above - beyond) / at, 0.0), 1.0) if at > 0.0 else 0.0


@compiled
def margins(scores: FloatArray, features: FloatArray, multipliers: FloatArray) -> FloatArray:
    """Return each score less the multipliers times the features."""
    values = scores.copy()
    for row in range(scores.size):
        for column in range(multipliers.size):
            values[row] -= multipliers[column] * features[row, column]
    return values


@compiled
def covariance(
    values: FloatArray, features: FloatArray, weights: FloatArray, low: float, high: float
) -> FloatArray:
    """Return the covariance of the features of rows with a value from `low` to `high`, times their mass."""
    size = features.shape[1]
    mean = np.zeros(size)
    moments = np.zeros((size, size))
    mass = 0.0
    for row in range(values.size):
        if low <= values[row] <= high:
            mass += weights[row]
            for column in range(size):
                weighted = weights[row] * features[row, column]
                mean[column] += weighted
                for other in range(size):
                    moments[column, other] += weighted * features[row, other]
    if mass > 0.0:
        for column in range(size):
            for other in range(size):
                moments[column, other] -= mean[column] * mean[other] / mass
    return moments


@compiled
def select_rows(
    scores: FloatArray,
    features: FloatArray,
    places: IntArray,
    shares: FloatArray,
    weights: FloatArray,
    multipliers: FloatArray,
    rate: float,
    bandwidth: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the share of each constraint's people that is selected at a rate, and how it bends.

    The share is the mean of what is counted and what the features predict. The second is the matrix of second
    derivatives of the dual: the density of people at the threshold times the covariance of their features,
    estimated from the rates within `bandwidth` of the rate, or farther where all rows within it are tied. A
    ridge keeps steps short where the features of these rows say little.
    """
    size = multipliers.size
    values = margins(scores, features, multipliers)
    total = 0.0
    for weight in weights:
        total += weight
    tied = _TIED * (values.max() - values.min())
    threshold = find_threshold(values, weights, rate * total)
    part = share_of_tied(values, weights, rate * total, threshold, tied)
    selected = np.zeros(size)
    for row in range(scores.size):
        if values[row] >= threshold - tied:
            chosen = 0.5 if values[row] > threshold + tied else 0.5 * part
            if places[row] >= 0:
                selected[places[row]] += chosen * shares[row]
            for column in range(size):
                selected[column] += chosen * weights[row] * features[row, column] / total
    low = high = threshold
    while high - low <= tied and bandwidth < 2.0:
        high = find_threshold(values, weights, max(rate - bandwidth, 0.0) * total)
        low = find_threshold(values, weights, min(rate + bandwidth, 1.0) * total)
        bandwidth *= 2.0
    bend = covariance(values, features, weights, low - tied, high + tied)
    if high > low:
        bend /= total * (high - low)
    trace = 0.0
    for column in range(size):
        trace += bend[column, column]
    ridge = _RIDGE * trace / size + _LEAST_RIDGE
    for column in range(size):
        bend[column, column] += ridge
    return selected, bend


@compiled
def take_step(
    multipliers: FloatArray, selected: FloatArray, bend: FloatArray, bound: float, strata: IntArray
) -> FloatArray:
    """Return the multipliers that solve the dual's quadratic model, those of each stratum summing to 0.

    The model is minimised over two multipliers of a stratum at a time, whose sum stays: a parabola plus the
    bound times the positive part of either, so with kinks where one of them is 0. It is the pair that gains
    most at first by a move. A multiplier is a price of parity in positives: none is above that of all
    positives, where no price might bring parity.
    """
    solution = multipliers.copy()
    slope = -selected
    one, other, gain = steepest_pair(solution, slope, bound, strata)
    moves = 0
    while gain > _STILL and moves < _MOVES * solution.size:
        moves += 1
        curvature = bend[one, one] + bend[other, other] - 2.0 * bend[one, other]
        tilt = slope[one] - slope[other]
        first = min(-solution[one], solution[other])
        last = max(-solution[one], solution[other])
        move = (bound - tilt) / curvature
        if move > first:
            move = max(-tilt / curvature, first)
            if move > last:
                move = max(-(tilt + bound) / curvature, last)
        lowest = max(-solution[one], solution[other]) - _DEAREST
        move = min(max(move, lowest), _DEAREST - max(solution[one], -solution[other]))
        solution[one] += move
        solution[other] -= move
        for place in range(solution.size):
            slope[place] += move * (bend[place, one] - bend[place, other])
        one, other, gain = steepest_pair(solution, slope, bound, strata)
    return solution


@compiled
def steepest_pair(
    multipliers: FloatArray, slope: FloatArray, bound: float, strata: IntArray
) -> tuple[int, int, float]:
    """Return which multiplier to raise, which of its stratum to lower, and how fast the dual then falls."""
    gain = 0.0
    raised = lowered = 0
    for stratum in range(strata[-1] + 1):
        one = other = 0
        least = np.inf
        most = -np.inf
        for place in range(slope.size):
            if strata[place] == stratum:
                up = slope[place] + (bound if multipliers[place] >= 0.0 else 0.0)
                down = slope[place] + (bound if multipliers[place] > 0.0 else 0.0)
                if up < least and multipliers[place] < _DEAREST - _STILL:
                    one, least = place, up
                if down > most and multipliers[place] > _STILL - _DEAREST:
                    other, most = place, down
        if most - least > gain:
            raised, lowered, gain = one, other, most - least
    return raised, lowered, gain


@compiled
def rise(multipliers: FloatArray, move: FloatArray, selected: FloatArray, bound: float) -> float:
    """Return how fast the dual rises along a move that ends at some multipliers."""
    slope = 0.0
    for place in range(move.size):
        slope -= selected[place] * move[place]
        if multipliers[place] > 0.0 or (multipliers[place] == 0.0 and move[place] < 0.0):
            slope += bound * move[place]
    return slope


@compiled
def steepest(bend: FloatArray, move: FloatArray) -> float:
    """Return by how much a move changes the slope at most."""
    largest = 0.0
    for place in range(move.size):
        change = 0.0
        for column in range(move.size):
            change += bend[place, column] * move[column]
        largest = max(largest, abs(change))
    return largest


@compiled
def solve_rate(
    scores: FloatArray,
    features: FloatArray,
    places: IntArray,
    shares: FloatArray,
    weights: FloatArray,
    strata: IntArray,
    start: FloatArray,
    rate: float,
    bandwidth: float,
    bound: float,
    tolerance: float,
) -> FloatArray:
    """Return the multipliers at a rate, by Newton steps from `start`.

    A step is halved until the dual does not rise where it ends by more than a part of how it falls where it
    begins. None is longer than the range of scores.
    """
    current = start
    selected, bend = select_rows(scores, features, places, shares, weights, current, rate, bandwidth)
    move = take_step(current, selected, bend, bound, strata) - current
    length = 1.0
    for _ in range(_STEPS):
        longest = np.abs(move).max()
        if steepest(bend, move) <= tolerance or length * longest < _SHORTEST_STEP:
            break
        length = min(length, 1.0 / longest)
        tried = current + length * move
        next_selected, next_bend = select_rows(
            scores, features, places, shares, weights, tried, rate, bandwidth
        )
        fall = rise(current, move, selected, bound)
        if rise(tried, move, next_selected, bound) <= _OVERSHOOT * abs(fall):
            current, selected, bend = tried, next_selected, next_bend
            move = take_step(current, selected, bend, bound, strata) - current
            length = 1.0
        else:
            length *= 0.5
    return current


@compiled
def margin_at(
    place: int, score: float, features: FloatArray, multipliers: FloatArray, thresholds: FloatArray
) -> float:
    """Return by how much a row is above the threshold of a rate."""
    margin = score - thresholds[place]
    for column in range(multipliers.shape[1]):
        margin -= multipliers[place, column] * features[column]
    return float(margin)


@compiled
def rank_rows(
    scores: FloatArray,
    features: FloatArray,
    rates: FloatArray,
    multipliers: FloatArray,
    thresholds: FloatArray,
    ends: IntArray,
) -> FloatArray:
    """Return the share of rates at which each row is selected, if margins change linearly between rates.

    Before the first of the ends a row is selected only if it is there, and behind the last if it is there.
    """
    ranks = np.empty(scores.size)
    for row in range(scores.size):
        rank = 0.0
        before = 0.0
        first = margin_at(ends[0], scores[row], features[row], multipliers, thresholds)
        last = margin_at(ends[1], scores[row], features[row], multipliers, thresholds)
        for place in range(rates.size):
            margin = margin_at(place, scores[row], features[row], multipliers, thresholds)
            if place < ends[0]:
                margin = min(margin, first)
            elif place > ends[1]:
                margin = max(margin, last)
            if place > 0:
                width = rates[place] - rates[place - 1]
                if before > 0.0 and margin > 0.0:
                    rank += width
                elif before > 0.0:
                    rank += width * before / (before - margin)
                elif margin > 0.0:
                    rank += width * margin / (margin - before)
            before = margin
        ranks[row] = min(rank, 1.0) if rank > 0.0 else 0.0  # NaN, as numbers too large for floats make, is 0
    return ranks
