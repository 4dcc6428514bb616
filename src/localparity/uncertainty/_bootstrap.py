"""MCDP of samples drawn anew, with replacement, inside each group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._validation import FloatArray
from localparity.uncertainty._resampling import MOST_ROWS_ONE_BY_ONE, Pool


def draw_with_replacement(pool: Pool, rng: np.random.Generator) -> NDArray[Any]:
    """As many rows of each group as it has, drawn from its own; a row keeps the mean weight of its score."""
    drawn = np.empty_like(pool.rows)
    for group, (size, rows) in enumerate(zip(pool.sizes, pool.rows, strict=True)):
        if size <= MOST_ROWS_ONE_BY_ONE:
            knots = pool.knots_of_rows[group][rng.integers(0, size, size)]
            drawn[group] = np.bincount(knots, minlength=rows.size)
        else:
            drawn[group] = rng.multinomial(size, rows / size)
    if pool.weights is None:
        return drawn
    return drawn * (pool.weights / np.maximum(pool.rows, 1))


def bootstrap_bounds(
    estimates: FloatArray, resampled: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """The basic bootstrap interval at each epsilon, cut to [0, 1].

    The maximum over thresholds makes a resample's MCDP larger than the sample's on average, as it makes the
    sample's larger than the truth: the interval reflects the resampled deviations about the estimate, which
    takes that bias out instead of counting it twice.
    """
    tail = (1.0 - level) / 2.0
    lower, upper = np.quantile(resampled, [tail, 1.0 - tail], axis=0)
    return np.clip(2.0 * estimates - upper, 0.0, 1.0), np.clip(2.0 * estimates - lower, 0.0, 1.0)
