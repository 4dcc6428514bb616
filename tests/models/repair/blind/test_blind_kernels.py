"""The loops of group-blind repair against sorting, generic optimisers and dense grids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from localparity.models.repair import _kernels

GRID = st.integers(0, 2048).map(lambda place: place / 1024.0)
VALUES = st.lists(GRID | st.floats(-1e3, 1e3), min_size=1, max_size=60)


@given(VALUES, st.floats(0.0, 1.0), st.booleans(), st.integers(0, 2**32 - 1))
@example([0.3], 0.5, False, 0)
@example([0.3] * 9, 0.0, True, 0)
@example([0.0, 1 / 2048, 1 / 1024, 1 / 1024, 1.0], 0.7, False, 0)
def test_find_threshold_is_a_weighted_quantile(
    values: list[float], share: float, weighted: bool, seed: int
) -> None:
    array = np.array(values)
    weights = np.random.default_rng(seed).integers(1, 5, array.size) if weighted else np.ones(array.size)
    weights = weights.astype(float)
    above = share * weights.sum()
    found = _kernels.find_threshold(array, weights, above)
    slack = 4e-9 * np.ptp(array) + 1e-15 * np.abs(array).max()
    assert weights[array > found + slack].sum() <= above * (1.0 + 1e-12)
    assert weights[array >= found - slack].sum() >= above * (1.0 - 1e-12)
    assert array.min() - slack <= found <= array.max() + slack


def solve_generically(
    multipliers: np.ndarray, selected: np.ndarray, bend: np.ndarray, bound: float, strata: np.ndarray
) -> float:
    """The least of the dual's quadratic model, by a solver that takes positive and negative parts apart."""
    size = multipliers.size

    def value(parts: np.ndarray) -> float:
        step = parts[:size] - parts[size:] - multipliers
        return float(0.5 * step @ bend @ step - selected @ step + bound * parts[:size].sum())

    sums = [
        {"type": "eq", "fun": lambda parts, one=one: (parts[:size] - parts[size:])[strata == one].sum()}
        for one in np.unique(strata)
    ]
    start = np.concatenate([np.maximum(multipliers, 0.0), np.maximum(-multipliers, 0.0)])
    options = {"ftol": 1e-14, "maxiter": 2000}
    found = minimize(
        value, start, bounds=[(0.0, 1.0)] * (2 * size), constraints=sums, method="SLSQP", options=options
    )
    return float(found.fun)


@pytest.mark.parametrize("sizes", [(2,), (3,), (5,), (12,), (2, 2), (4, 4)])
@pytest.mark.parametrize("bound", [0.0, 0.03, 0.3])
def test_take_step_solves_the_quadratic_model(sizes: tuple[int, ...], bound: float) -> None:
    strata = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(0)
    for _ in range(15):
        roots = rng.normal(size=(strata.size, strata.size + 2))
        bend = roots @ roots.T / strata.size
        start = rng.uniform(-0.5, 0.5, strata.size) * (rng.random(strata.size) < 0.7)
        for one in np.unique(strata):
            start[strata == one] -= start[strata == one].mean()
        selected = rng.random(strata.size)
        found = _kernels.take_step(start, selected, bend, bound, strata)
        for one in np.unique(strata):
            assert abs(found[strata == one].sum()) < 1e-9
        assert np.abs(found).max() <= 1.0 + 1e-12  # no price is above that of all positives
        step = found - start
        value = 0.5 * step @ bend @ step - selected @ step + bound * np.maximum(found, 0.0).sum()
        assert value <= solve_generically(start, selected, bend, bound, strata) + 1e-7


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_rank_rows_integrates_the_selections(columns: int) -> None:
    rng = np.random.default_rng(columns)
    rates = np.concatenate([[0.0], np.sort(rng.random(12)), [1.0]])
    multipliers = rng.normal(size=(rates.size, columns))
    thresholds = np.sort(rng.normal(size=rates.size))[::-1].copy()
    scores, features = rng.random(200), rng.random((200, columns))
    places = (np.arange(20_000) + 0.5) / 20_000
    selected = np.zeros((200, places.size))
    for row in range(200):
        margins = scores[row] - thresholds - multipliers @ features[row]
        selected[row] = np.interp(places, rates, margins) > 0.0
    found = _kernels.rank_rows(
        scores, features, rates, multipliers, thresholds, np.array([0, rates.size - 1])
    )
    np.testing.assert_allclose(found, selected.mean(axis=1), atol=1e-3)


def test_the_covariance_of_rows_between_two_values() -> None:
    rng = np.random.default_rng(0)
    values, features, weights = rng.random(300), rng.normal(size=(300, 3)), rng.random(300)
    inside = (values >= 0.2) & (values <= 0.6)
    found = _kernels.covariance(values, features, weights, 0.2, 0.6)
    expected = np.cov(features[inside], rowvar=False, aweights=weights[inside], ddof=0)
    np.testing.assert_allclose(found, expected * weights[inside].sum(), atol=1e-10)
    assert not _kernels.covariance(values, features, weights, 2.0, 3.0).any()


def test_ranks_are_numbers_whatever_the_multipliers() -> None:
    """A file may hold any; a rank that is no number would be looked up outside the scale."""
    rates, thresholds = np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.0, -1.0])
    multipliers = np.array([[1e308, -1e308], [-1e308, 1e308], [0.0, 0.0]])
    found = _kernels.rank_rows(
        np.array([0.2]),
        np.array([[40.0, 90.0]]),
        rates,
        multipliers,
        thresholds,
        np.array([0, rates.size - 1]),
    )
    assert 0.0 <= found[0] <= 1.0
