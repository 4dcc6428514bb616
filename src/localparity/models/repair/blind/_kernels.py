"""The loops of group-blind repair.

At a selection rate the rows with ``score - multipliers . features > threshold`` are selected. A row counts
for one constraint, its ``place`` (-1: for none), with the share that it has of it.
"""

from __future__ import annotations

import numpy as np

from localparity._compiled import compiled
from localparity._types import FloatArray, IntArray

_CELLS = 1024
_PASSES = 3
_STEPS = 40
_SHORTEST_STEP = 1e-6
_OVERSHOOT = 0.25
_SWEEPS = 200
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
    found = scores.copy()
    for row in range(scores.size):
        for column in range(multipliers.size):
            found[row] -= multipliers[column] * features[row, column]
    return found


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
def select(
    scores: FloatArray,
    features: FloatArray,
    places: IntArray,
    shares: FloatArray,
    weights: FloatArray,
    multipliers: FloatArray,
    rate: float,
    band: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the share of each constraint's people that is selected at a rate, and how it bends.

    The share is the mean of what is counted and what the features predict. The second is the matrix of second
    derivatives of the dual: the density of people at the threshold times the covariance of their features,
    estimated from the rates within `band` of the rate, or farther where all rows within it are tied. A ridge
    keeps steps short where the features of these rows say little.
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
    while high - low <= tied and band < 2.0:
        high = find_threshold(values, weights, max(rate - band, 0.0) * total)
        low = find_threshold(values, weights, min(rate + band, 1.0) * total)
        band *= 2.0
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
    bound times the positive part of either, so with kinks where one of them is 0. A multiplier is a price of
    parity in positives: none is above that of all positives, where no price might bring parity.
    """
    found = multipliers.copy()
    slope = -selected
    for _ in range(_SWEEPS):
        largest = 0.0
        for one in range(found.size):
            for other in range(one + 1, found.size):
                if strata[one] != strata[other]:
                    continue
                curvature = bend[one, one] + bend[other, other] - 2.0 * bend[one, other]
                tilt = slope[one] - slope[other]
                first = min(-found[one], found[other])
                last = max(-found[one], found[other])
                move = (bound - tilt) / curvature
                if move > first:
                    move = max(-tilt / curvature, first)
                    if move > last:
                        move = max(-(tilt + bound) / curvature, last)
                lowest = max(-found[one], found[other]) - _DEAREST
                move = min(max(move, lowest), _DEAREST - max(found[one], -found[other]))
                found[one] += move
                found[other] -= move
                for place in range(found.size):
                    slope[place] += move * (bend[place, one] - bend[place, other])
                largest = max(largest, abs(move))
        if largest < _STILL:
            break
    return found


@compiled
def rise(multipliers: FloatArray, move: FloatArray, selected: FloatArray, bound: float) -> float:
    """Return how fast the dual rises along a move that ends at some multipliers."""
    found = 0.0
    for place in range(move.size):
        found -= selected[place] * move[place]
        if multipliers[place] > 0.0 or (multipliers[place] == 0.0 and move[place] < 0.0):
            found += bound * move[place]
    return found


@compiled
def steepest(bend: FloatArray, move: FloatArray) -> float:
    """Return by how much a move changes the slope at most."""
    found = 0.0
    for place in range(move.size):
        change = 0.0
        for column in range(move.size):
            change += bend[place, column] * move[column]
        found = max(found, abs(change))
    return found


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
    band: float,
    bound: float,
    tolerance: float,
) -> FloatArray:
    """Return the multipliers at a rate, by Newton steps from `start`.

    A step is halved until the dual does not rise where it ends by more than a part of how it falls where it
    begins. None is longer than the range of scores.
    """
    current = start
    selected, bend = select(scores, features, places, shares, weights, current, rate, band)
    move = take_step(current, selected, bend, bound, strata) - current
    length = 1.0
    for _ in range(_STEPS):
        longest = np.abs(move).max()
        if steepest(bend, move) <= tolerance or length * longest < _SHORTEST_STEP:
            break
        length = min(length, 1.0 / longest)
        tried = current + length * move
        next_selected, next_bend = select(scores, features, places, shares, weights, tried, rate, band)
        fall = rise(current, move, selected, bound)
        if rise(tried, move, next_selected, bound) <= _OVERSHOOT * abs(fall):
            current, selected, bend = tried, next_selected, next_bend
            move = take_step(current, selected, bend, bound, strata) - current
            length = 1.0
        else:
            length *= 0.5
    return current


@compiled
def rank_rows(
    scores: FloatArray,
    features: FloatArray,
    rates: FloatArray,
    multipliers: FloatArray,
    thresholds: FloatArray,
) -> FloatArray:
    """Return the share of rates at which each row is selected, if margins change linearly between rates."""
    ranks = np.empty(scores.size)
    for row in range(scores.size):
        rank = 0.0
        before = 0.0
        for place in range(rates.size):
            margin = scores[row] - thresholds[place]
            for column in range(multipliers.shape[1]):
                margin -= multipliers[place, column] * features[row, column]
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
