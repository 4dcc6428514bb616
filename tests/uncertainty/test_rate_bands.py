"""Bands of selection rates that hold at all cutoffs together."""

from __future__ import annotations

from itertools import product
from math import factorial

import numpy as np
import pytest
from scipy.stats import beta

from localparity.uncertainty._impact import _ranks, hold_probability, rate_band, shared_error


def hold_by_steck(low: list[float], high: list[float]) -> float:
    """n! times Steck's determinant (1971), of (high_i - low_j)_+^(j - i + 1) / (j - i + 1)!."""
    n = len(low)
    matrix = np.zeros((n, n))
    for i, j in product(range(n), repeat=2):
        if j >= i - 1:
            matrix[i, j] = max(high[i] - low[j], 0.0) ** (j - i + 1) / factorial(j - i + 1)
    return factorial(n) * float(np.linalg.det(matrix))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("level", [0.01, 0.1, 0.4])
def test_the_probability_is_that_of_stecks_determinant(n: int, level: float) -> None:
    ranks = np.arange(1, n + 1)
    ends = beta.ppf(0.5 * level, ranks, n + 1 - ranks)
    expected = hold_by_steck(ends.tolist(), (1.0 - ends[::-1]).tolist())
    assert hold_probability(n, ranks, ends) == pytest.approx(expected, abs=1e-9)


def test_ends_that_meet_cannot_hold() -> None:
    assert hold_probability(1, np.array([1]), np.array([0.5])) == 0.0


@pytest.mark.parametrize("n", [1, 7, 60, 1600])
def test_the_band_is_clopper_and_pearsons_at_one_level(n: int) -> None:
    low, high = rate_band(n, 0.05)
    ranks = _ranks(n)
    assert low[0] == 0.0
    assert high[-1] == 1.0
    np.testing.assert_allclose(high, 1.0 - low[::-1])
    levels = 2.0 * beta.cdf(low[ranks], ranks, n + 1 - ranks)
    np.testing.assert_allclose(levels, levels[0], rtol=1e-6)
    held = hold_probability(n, ranks, low[ranks])
    assert 0.95 <= held <= 0.9511
    assert (np.diff(low) >= 0.0).all()
    assert (low <= np.arange(n + 1) / n).all()


def test_a_rank_between_two_has_the_end_of_its_neighbour() -> None:
    low, _ = rate_band(5000, 0.05)
    ranks = _ranks(5000)
    skipped = np.setdiff1d(np.arange(1, 5000), ranks)
    assert skipped.size > 1000
    before = ranks[np.searchsorted(ranks, skipped) - 1]
    np.testing.assert_array_equal(low[skipped], low[before])


def test_large_groups_go_through_the_transform() -> None:
    low, high = rate_band(400_000, 0.05)
    # At the median, some 3.5 standard errors; where 100 of 400,000 are selected, far less than a DKW band.
    assert high[200_000] - 0.5 < 5.0 * 0.5 / np.sqrt(400_000)
    assert high[100] < 1.65 * 100 / 400_000
    assert low[100] > 0.6 * 100 / 400_000


def test_an_error_too_small_for_floats_is_shared_by_the_ranks() -> None:
    low, _ = rate_band(3, 1e-12)
    assert low[1] == pytest.approx(float(beta.ppf(0.5e-12 / 3, 1, 3)), rel=1e-6)


def test_the_error_is_shared_by_independent_groups() -> None:
    assert (1.0 - shared_error(0.95, 7)) ** 7 == pytest.approx(0.95)


def test_it_holds_as_often_as_computed() -> None:
    rng = np.random.default_rng(0)
    n, draws = 40, 4000
    low, high = rate_band(n, 0.1)
    ordered = np.sort(rng.random((draws, n)), axis=1)
    held = ((ordered >= low[1:]) & (ordered <= high[:-1])).all(axis=1).mean()
    assert held == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / draws))
