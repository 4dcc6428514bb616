"""The census: its truth against quadrature, its people against its truth."""

from __future__ import annotations

from math import erf, exp, log, pi, sqrt

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from sklearn.metrics import average_precision_score

import localparity as lp
from census_frontier import census_frontier, census_probabilities
from localparity.datasets import census_mcdp, make_census
from localparity.datasets._census import census_cdf


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.05, 0.1, 0.2])
def test_the_truth_is_the_maximum_of_the_least_gap(epsilon: float) -> None:
    def gap(y: float) -> float:
        return abs(float(census_cdf("Female", y) - census_cdf("Male", y)))

    # The gap has one hump, so its least value in a window is at one of the window's ends.
    best = minimize_scalar(
        lambda y0: -min(gap(y0 - epsilon), gap(y0 + epsilon)),
        bounds=(epsilon, 1 - epsilon),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert census_mcdp(epsilon) == pytest.approx(-best.fun, abs=1e-5)


def test_the_distribution_is_the_integral_over_the_people() -> None:
    # Education and hours are independent normals: integrate the share below 0.4 over education.
    shares, effects = (0.35, 0.40, 0.20, 0.05), (-0.9, 0.0, 0.9, 0.3)

    def density_below(education: float) -> float:
        below = 0.0
        for share, effect in zip(shares, effects, strict=True):
            hours = 40 + (log(0.4 / 0.6) + 0.9 - effect - 0.25 * (education - 13)) / 0.05
            below += share * 0.5 * (1 + erf((hours - 37) / (8 * sqrt(2))))
        return below * exp(-0.5 * ((education - 13) / 2.5) ** 2) / (2.5 * sqrt(2 * pi))

    expected, _ = quad(density_below, -7, 33)
    assert float(census_cdf("Female", 0.4)) == pytest.approx(expected, abs=1e-8)


def test_people_follow_the_truth() -> None:
    census = make_census(200_000, random_state=0, as_frame=False)
    for group in ("Female", "Male"):
        scores = census.score[census.sensitive_features == group]
        thresholds = np.linspace(0.05, 0.95, 19)
        measured = [(scores <= t).mean() for t in thresholds]
        np.testing.assert_allclose(measured, census_cdf(group, thresholds), atol=0.006)
    interval = lp.mcdp_interval(
        None, census.score, sensitive_features=census.sensitive_features, epsilon=0.05
    )
    assert interval.low < census_mcdp(0.05) < interval.high


def test_probabilities_are_the_shares_of_people_like_that() -> None:
    census = make_census(200_000, random_state=0)
    income, sex = census_probabilities(census.data)
    assert sex.sum(axis=1) == pytest.approx(1.0)
    for chance, happened in (
        (income, census.target),
        (sex[:, 0], census.sensitive_features == "Female"),
    ):
        for low in np.arange(0.0, 0.9, 0.1):
            among = (chance >= low) & (chance < low + 0.1)
            tolerance = 4.0 * sqrt(0.25 / among.sum())
            assert happened[among].mean() == pytest.approx(chance[among].mean(), abs=tolerance)
    as_columns = make_census(10, random_state=1, as_frame=False).data
    as_frame = make_census(10, random_state=1).data
    np.testing.assert_array_equal(census_probabilities(as_columns)[0], census_probabilities(as_frame)[0])


def test_the_frontier_without_a_bound_is_that_of_the_best_scores() -> None:
    census = make_census(200_000, random_state=0)
    income, _ = census_probabilities(census.data)
    labels, weights = np.repeat([1, 0], income.size), np.concatenate([income, 1.0 - income])
    reached = average_precision_score(labels, np.tile(income, 2), sample_weight=weights)
    assert census_frontier() == pytest.approx(reached, abs=0.002)


def test_a_frontier_rises_and_flattens() -> None:
    bounds = (0.0, 0.05, 0.1, 0.2, 0.3)
    best = [census_frontier(bound) for bound in bounds]
    slopes = np.diff(best) / np.diff(bounds)
    assert (slopes >= -1e-9).all()
    assert (np.diff(slopes) <= 1e-9).all()
    assert best[-1] == pytest.approx(census_frontier(), abs=1e-6)


def test_a_seed_seeds_and_a_frame_is_a_frame() -> None:
    one, two, other = (make_census(300, random_state=seed) for seed in (1, 1, 2))
    assert isinstance(one.data, pd.DataFrame)
    pd.testing.assert_frame_equal(one.data, two.data)
    np.testing.assert_array_equal(one.target, two.target)
    assert not one.data.equals(other.data)
    assert set(one.data["occupation"]) == {"care", "office", "technical", "trades"}
    assert set(np.unique(one.target)) == {0, 1}


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"n_samples .* got 0"):
        make_census(0)
    with pytest.raises(ValueError, match=r"group .*'Female', 'Male', got 'Other'"):
        census_cdf("Other", 0.5)
    with pytest.raises(ValueError, match=r"epsilon must be .* got -1"):
        census_mcdp(-1)
