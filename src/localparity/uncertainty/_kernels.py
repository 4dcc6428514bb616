"""The loop over pairs of groups inside a resample, compiled by numba on first use."""

from __future__ import annotations

import numpy as np

from localparity._types import FloatArray, IntArray
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
def mcdp_of_rows(knots: FloatArray, first: FloatArray, second: FloatArray, reach: FloatArray) -> FloatArray:
    """MCDP between two rows at each half-width of `reach`."""
    gap = first - second
    gap[-1] = 0.0
    half_widths, values, _ = profile_runs(knots, gap)
    found = np.zeros(reach.size)
    for i in range(reach.size):
        for run in range(values.size):
            if half_widths[run] > reach[i] or reach[i] == 0.0:
                found[i] = max(found[i], values[run])
    return found


@compiled
def mcdp_of_pairs(
    knots: FloatArray, rows: FloatArray, first: IntArray, second: IntArray, reach: FloatArray
) -> FloatArray:
    """MCDP at each half-width of `reach` (columns) of each pair of rows (rows)."""
    found = np.zeros((first.size, reach.size))
    for pair in range(first.size):
        found[pair] = mcdp_of_rows(knots, rows[first[pair]], rows[second[pair]], reach)
    return found


@compiled
def worst_of_pairs(
    knots: FloatArray,
    rows: FloatArray,
    first: IntArray,
    second: IntArray,
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
        if ((largest > worst) | (scale[pair] * largest > scaled)).any():
            found = mcdp_of_rows(knots, one, other, reach)
            worst = np.maximum(worst, found)
            scaled = np.maximum(scaled, scale[pair] * found)
    return supremum, worst, scaled
