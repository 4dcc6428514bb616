"""The paper's Algorithm 2: as written, never below the exact value, falling as k doubles, and converging."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
import oracles
from localparity.metrics._mcdp import mcdp_on_grid
from strategies import epsilons, people


@given(st.data())
def test_equals_the_listing_in_rational_arithmetic(data: st.DataObject) -> None:
    drawn = data.draw(people(max_size=6))
    epsilon = Fraction(data.draw(st.integers(1, 12)), 10)
    k = data.draw(st.integers(1, 5))
    expected = float(oracles.mcdp_algorithm_2(*drawn.samples(), epsilon, k))
    curve = lp.gap_curve(lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups))
    assert mcdp_on_grid(curve, float(epsilon), k) == expected
    options = {"sensitive_features": drawn.groups, "epsilon": float(epsilon), "k": k}
    assert lp.mcdp_approximate(None, drawn.scores, **options) == expected


@given(st.data())
def test_never_under_estimates_and_falls_as_k_doubles(data: st.DataObject) -> None:
    drawn = data.draw(people())
    epsilon = float(data.draw(epsilons(drawn.grid)))
    # Below a thousandth the grid has more points than a property test should look at.
    epsilon = epsilon if epsilon == 0.0 else max(epsilon, 0.001)
    exact = lp.mcdp(None, drawn.scores, sensitive_features=drawn.groups, epsilon=epsilon)
    values = [
        lp.mcdp_approximate(None, drawn.scores, sensitive_features=drawn.groups, epsilon=epsilon, k=2**p)
        for p in range(7)
    ]
    assert values == sorted(values, reverse=True)
    assert values[-1] >= exact


@pytest.mark.compiled
@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.1])
def test_converges_at_the_rate_of_its_step(epsilon: float) -> None:
    # Between two points the gap of a smooth distribution moves by at most L x step, so the error is of that order.
    census = lp.datasets.make_census(20_000, random_state=3, as_frame=False)
    options = {"sensitive_features": census.sensitive_features, "epsilon": epsilon}
    exact = lp.mcdp(None, census.score, **options)
    errors = np.array([lp.mcdp_approximate(None, census.score, k=2**p, **options) - exact for p in range(8)])
    steps = epsilon / 2.0 ** np.arange(8)
    noise = 3.0 / np.sqrt(20_000)
    assert (errors <= 2.0 * steps + noise * np.sqrt(steps)).all()
    assert errors[-1] <= errors[0]


def test_equals_the_listing_on_many_seeded_cases() -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        steps, groups = rng.integers(0, 9, 6), np.array([0, 0, 0, 1, 1, 1])
        epsilon, k = Fraction(int(rng.integers(1, 9)), 8 * int(rng.integers(1, 3))), int(rng.integers(1, 4))
        a, b = ([(Fraction(int(step), 8), Fraction(1)) for step in steps[groups == g]] for g in (0, 1))
        expected = float(oracles.mcdp_algorithm_2(a, b, epsilon, k))
        curve = lp.gap_curve(lp.Predictions.from_arrays(None, steps / 8, sensitive_features=groups))
        assert mcdp_on_grid(curve, float(epsilon), k) == expected


def test_zero_and_large_epsilons() -> None:
    curve = lp.gap_curve(
        lp.Predictions.from_arrays(None, [0.1, 0.2, 0.8, 0.9], sensitive_features=[0, 0, 1, 1])
    )
    assert [mcdp_on_grid(curve, epsilon, 32) for epsilon in (0.0, 0.6, 1.0)] == [1.0, 0.0, 0.0]
    whole_range = lp.gap_curve(lp.Predictions.from_arrays(None, [0.0, 1.0], sensitive_features=[0, 1]))
    assert mcdp_on_grid(whole_range, 0.9, 32) == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.1, "k": 0}, "k .*got 0"),
        ({"epsilon": 0.1, "k": 1.5}, "k .*got 1.5"),
        ({"epsilon": -1.0}, r"epsilon must be .* got -1"),
        (
            {"epsilon": 1e-9},
            "epsilon .*100,000,000, got 32,000,000,000",
        ),
    ],
)
def test_wrong_arguments(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lp.mcdp_approximate(None, [0.1, 0.2], sensitive_features=[0, 1], **options)  # type: ignore[arg-type]
