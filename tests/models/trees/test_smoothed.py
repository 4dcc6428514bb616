"""The binned, convolved distributions against the sum of sigmoids that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localparity.models.trees._kernels import bin_moments, spline_slope, spline_value
from localparity.models.trees._smoothed_gap import Smoother, Spline

scores_of_people = st.lists(
    st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=60
)
temperatures = st.sampled_from([0.3, 5.0, 20.0, 100.0, 1000.0, 4096.0])


def sigmoid(u: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(np.clip(-u, -700.0, 700.0)))


@given(scores=scores_of_people, temperature=temperatures, seed=st.integers(0, 9))
def test_the_spline_is_the_sum_of_sigmoids(scores: list[float], temperature: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2.0, len(scores))
    weights /= weights.sum()
    smoother = Smoother(temperature)
    people = np.asarray(scores), weights, np.zeros(len(scores), dtype=np.int32)
    found = smoother.distributions(bin_moments(*people, 1, smoother.bins, temperature))
    cubics = Spline(found.values[0], found.slopes[0]).cubics()
    for at in (0.0, 1.0, *scores[:3], *rng.random(5)):
        below = sigmoid(temperature * (at - people[0]))
        assert spline_value(cubics, at) == pytest.approx(float(weights @ below), abs=1e-9)
        slope = temperature * float(weights @ (below * (1.0 - below)))
        assert spline_slope(cubics, at) == pytest.approx(slope, abs=2e-6 * temperature)


@given(temperature=temperatures, seed=st.integers(0, 9))
def test_the_bump_of_the_whole_grid_is_that_of_its_thresholds(temperature: float, seed: int) -> None:
    smoother = Smoother(temperature)
    rng = np.random.default_rng(seed)
    shares = np.zeros(smoother.grid.size)
    few = rng.choice(shares.size, 2, replace=False)
    shares[few] = rng.normal(size=2)
    by_transform = smoother.bump(smoother.grid, shares)
    plainly = smoother.bump(smoother.grid[few], shares[few])
    np.testing.assert_allclose(by_transform.values, plainly.values, atol=1e-12 * temperature)
    np.testing.assert_allclose(by_transform.slopes, plainly.slopes, atol=1e-12 * temperature**2)
