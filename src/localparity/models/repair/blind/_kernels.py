"""The loops of group-blind repair, compiled by numba on first use; imported where they are called.

At a selection rate the rows with ``score - multipliers . features > threshold`` are selected. A row counts
for one constraint, its ``place`` (-1: for none), with the share that it has of it.
"""

from __future__ import annotations

import numpy as np

from localparity._types import FloatArray, IntArray
from localparity.counts._kernels import compiled

_CELLS = 1024
_PASSES = 3
_STEPS = 20
_SHORTEST_STEP = 1.0 / 16.0
_FARTHEST = 0.25
_SWEEPS = 200
_STILL = 1e-12
_RIDGE = 1e-9


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
    estimated from the rates within `band` of the rate.
    """
    size = multipliers.size
    values = margins(scores, features, multipliers)
    total = weights.sum()
    threshold = find_threshold(values, weights, rate * total)
    high = find_threshold(values, weights, max(rate - band, 0.0) * total)
    low = find_threshold(values, weights, min(rate + band, 1.0) * total)
    selected = np.zeros(size)
    for row in range(scores.size):
        if values[row] > threshold:
            if places[row] >= 0:
                selected[places[row]] += 0.5 * shares[row]
            for column in range(size):
                selected[column] += 0.5 * weights[row] * features[row, column] / total
    bend = covariance(values, features, weights, low, high)
    return selected, bend / (total * (high - low)) if high > low else bend


@compiled
def take_step(
    multipliers: FloatArray, selected: FloatArray, bend: FloatArray, bound: float, strata: IntArray
) -> FloatArray:
    """Return the multipliers that solve the dual's quadratic model, those of each stratum summing to 0.

    The model is minimised over two multipliers of a stratum at a time, whose sum stays: a parabola plus the
    bound times the positive part of either, so with kinks where one of them is 0.
    """
    found = multipliers.copy()
    slope = -selected
    for _ in range(_SWEEPS):
        largest = 0.0
        for one in range(found.size):
            for other in range(one + 1, found.size):
                if strata[one] != strata[other]:
                    continue
                curvature = bend[one, one] + bend[other, other] - 2.0 * bend[one, other] + _RIDGE
                tilt = slope[one] - slope[other]
                first = min(-found[one], found[other])
                last = max(-found[one], found[other])
                move = (bound - tilt) / curvature
                if move > first:
                    move = max(-tilt / curvature, first)
                    if move > last:
                        move = max(-(tilt + bound) / curvature, last)
                found[one] += move
                found[other] -= move
                for place in range(found.size):
                    slope[place] += move * (bend[place, one] - bend[place, other])
                largest = max(largest, abs(move))
        if largest < _STILL:
            break
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
    """Return the multipliers at a rate, by damped Newton steps from `start`.

    Where the people at the threshold hardly differ, the quadratic model is all but flat and holds nearby
    alone: no step is longer than `_FARTHEST`. What is left to do is how far a step would go if the dual bent
    alike in all directions, which does not depend on how well its bend is estimated.
    """
    current = start
    alike = np.eye(start.size)
    selected, bend = select(scores, features, places, shares, weights, current, rate, band)
    aim = take_step(current, selected, bend, bound, strata)
    left = np.abs(take_step(current, selected, alike, bound, strata) - current).max()
    length = 1.0
    for _ in range(_STEPS):
        if left <= tolerance or length < _SHORTEST_STEP:
            break
        step = aim - current
        tried = current + min(length, _FARTHEST / max(np.abs(step).max(), _FARTHEST)) * step
        selected, bend = select(scores, features, places, shares, weights, tried, rate, band)
        next_aim = take_step(tried, selected, bend, bound, strata)
        next_left = np.abs(take_step(tried, selected, alike, bound, strata) - tried).max()
        if next_left < left:
            current, aim, left = tried, next_aim, next_left
            length = min(1.0, 2.0 * length)
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
        ranks[row] = min(rank, 1.0)
    return ranks
