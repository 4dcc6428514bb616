"""MCDP of samples drawn anew, with replacement, inside each group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._validation import FloatArray
from localparity.uncertainty._resampling import IntArray, Pool, Resampled


def draw_rows(
    rows: IntArray, size: int, rng: np.random.Generator, knots_of_rows: IntArray | None
) -> IntArray:
    """How many of `size` rows fall on each knot, drawn with replacement from `rows` at the knots."""
    if knots_of_rows is not None:
        drawn = knots_of_rows[rng.integers(0, knots_of_rows.size, size)]
        return np.bincount(drawn, minlength=rows.size)
    return np.asarray(rng.multinomial(size, rows / rows.sum()), dtype=np.int64)


def draw_with_replacement(pool: Pool, rng: np.random.Generator) -> NDArray[Any]:
    """As many people of each group as it has, drawn from its own."""
    if pool.weighted:
        return pool.draw(pool.weights / pool.weights.sum(axis=1, keepdims=True), rng)
    parts = zip(pool.weights, pool.sizes, pool.knots_of_rows, strict=True)
    return np.stack([draw_rows(rows, int(size), rng, knots) for rows, size, knots in parts])


def bootstrap_bounds(
    estimates: FloatArray, resampled: Resampled, level: float
) -> tuple[FloatArray, FloatArray]:
    """The basic bootstrap interval at each epsilon, cut to [0, 1] and never without the estimate.

    The maximum over thresholds makes a resample's MCDP larger than the sample's on average, as it makes the
    sample's larger than the truth: the interval reflects the resampled deviations about the estimate, which
    takes that bias out instead of counting it twice. Near parity that can carry it below the estimate
    altogether; the upper end then stays at the estimate, so that deciding by it is never the laxer way.
    """
    tail = (1.0 - level) / 2.0
    lower, upper = np.quantile(resampled.values, [tail, 1.0 - tail], axis=0) - resampled.seen
    low = np.clip(estimates - upper, 0.0, estimates)
    return low, np.clip(estimates - lower, estimates, 1.0)
