"""The loop over pairs of groups inside a resample, compiled by numba on first use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray
from localparity.counts._kernels import compiled, compiled_fast
from localparity.metrics._kernels import profile_runs


@compiled_fast
def largest_difference(first: FloatArray, second: FloatArray) -> float:
    """The largest absolute difference between two rows."""
    largest = 0.0
    for knot in range(first.size):
        largest = max(largest, abs(first[knot] - second[knot]))
    return largest


@compiled
def mcdp_of_pairs(
    knots: FloatArray,
    rows: FloatArray,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    reach: FloatArray,
) -> FloatArray:
    """MCDP at each half-width of `reach` (columns) of each pair of rows (rows)."""
    found = np.zeros((first.size, reach.size))
    for pair in range(first.size):
        gap = rows[first[pair]] - rows[second[pair]]
        gap[-1] = 0.0
        half_widths, values, _ = profile_runs(knots, gap)
        for i in range(reach.size):
            for run in range(values.size):
                if half_widths[run] > reach[i] or reach[i] == 0.0:
                    found[pair, i] = max(found[pair, i], values[run])
    return found


@compiled
def worst_of_pairs(
    knots: FloatArray,
    rows: FloatArray,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    scale: FloatArray,
    reach: FloatArray,
) -> tuple[float, FloatArray, FloatArray]:
    """The largest scaled difference of all pairs, and at each half-width the largest MCDP, plain and scaled.

    MCDP is at most the largest difference, so a pair's runs are looked at only where that could matter.
    """
    supremum = 0.0
    worst = np.zeros(reach.size)
    scaled = np.zeros(reach.size)
    for pair in range(first.size):
        one, other = rows[first[pair]], rows[second[pair]]
        largest = largest_difference(one, other)
        supremum = max(supremum, scale[pair] * largest)
        if not ((largest > worst) | (scale[pair] * largest > scaled)).any():
            continue
        gap = one - other
        gap[-1] = 0.0
        half_widths, values, _ = profile_runs(knots, gap)
        for i in range(reach.size):
            value = 0.0
            for run in range(values.size):
                if half_widths[run] > reach[i] or reach[i] == 0.0:
                    value = max(value, values[run])
            worst[i] = max(worst[i], value)
            scaled[i] = max(scaled[i], scale[pair] * value)
    return supremum, worst, scaled
