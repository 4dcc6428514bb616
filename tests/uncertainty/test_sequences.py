"""Bands that hold at every look, whatever the days are like."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from localparity.uncertainty._looks import average_radius, evidence_factors, look_share


def test_the_shares_of_all_looks_sum_to_one() -> None:
    looks = np.arange(1, 100_001)
    summed = sum(map(look_share, looks.tolist()))
    # The rest lies between two integrals of the shares.
    rest = [(look_share(1) * 10.0) / at**0.1 for at in (100_001, 100_000)]
    assert summed + rest[0] <= 1.0 + 1e-9
    assert summed + rest[1] >= 1.0 - 1e-9


@pytest.mark.parametrize("error", [0.5, 0.05, 1e-4, 1e-9])
@pytest.mark.parametrize("size", [5, 200, 6400, 10**6])
def test_the_number_of_blocks_is_close_to_the_best(size: int, error: float) -> None:
    blocks = np.unique(np.geomspace(1, 1e6, 4000).astype(int))
    best = (np.sqrt(np.log(2 * blocks / error) / size) + 2 / blocks).min()
    assert best - 1e-12 <= average_radius(2 / size, error) <= 1.04 * best


def test_the_band_holds_for_days_that_differ_and_weights_that_are_not_equal() -> None:
    """Large days with much weight and small ones with little, of other scores, some of them of one score only."""
    rng = np.random.default_rng(0)
    sizes = np.array([[3, 5], [40, 8], [1, 30], [100, 120]])
    weights = np.array([0.1, 0.3, 0.1, 0.5])
    thresholds = np.linspace(0.0, 1.0, 201)
    exponents = np.array([[1.0, 2.0], [0.2, 5.0], [1.0, 1.0], [3.0, 0.5]])
    variance = float(np.sum(weights[:, None] ** 2 / sizes))
    # The two groups of the third day have the score 0.5.
    draws, misses = 2000, {0.5: 0, 0.1: 0}
    for _ in range(draws):
        off = np.zeros(thresholds.size)
        for day, weight in enumerate(weights):
            for sign, size, exponent in zip((1.0, -1.0), sizes[day], exponents[day], strict=True):
                scores = np.full(size, 0.5) if day == 2 else rng.random(size) ** (1.0 / exponent)
                true = thresholds >= 0.5 if day == 2 else thresholds**exponent
                below = (scores[:, None] <= thresholds).mean(axis=0)
                off += sign * weight * (below - true)
        for error in misses:
            misses[error] += np.abs(off).max() > average_radius(variance, error)
    for error, missed in misses.items():
        assert missed / draws <= error


@pytest.mark.parametrize("looks", [1, 10, 365, 3650, 100_000])
def test_the_band_at_every_look_is_shorter_than_that_of_howard_and_ramdas(looks: int) -> None:
    rows = 200 * looks
    each = 0.85 * math.sqrt((math.log(math.log(math.e * rows)) + 0.8 * math.log(1612 / 0.025)) / rows)
    assert average_radius(2 / rows, 0.05 * look_share(looks)) < 2 * each


@pytest.mark.parametrize("bound", [0.0, 0.1])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 7), (12, 5)])
def test_no_e_value_expects_more_than_one_within_the_bound(n: int, m: int, bound: float) -> None:
    """Summed over all outcomes, for shares all over the null hypothesis and any centre."""
    first, second = np.arange(n + 1)[:, None], np.arange(m + 1)[None, :]
    x, y = (np.broadcast_to(some, (n + 1, m + 1)) for some in (first, second))
    for centre, q in product((0.001, 0.2, 0.5, 0.97), (0.0, 0.05, 0.4, 0.9)):
        factors = evidence_factors((x, y), (n, m), np.full(x.shape, centre), bound)
        for p in {max(q - 0.3, 0.0), q, min(q + bound, 1.0)}:
            chances = binom.pmf(first, n, p) * binom.pmf(second, m, q)
            assert (np.tensordot(chances, factors, axes=2) <= 1.0 + 1e-12).all()
