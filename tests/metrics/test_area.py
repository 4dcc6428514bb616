"""ABCC against the integral, scipy and the paper's bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

import localparity as lp
import oracles
from strategies import People, people


@given(people())
def test_equals_the_integral(drawn: People) -> None:
    expected = float(oracles.abcc(*drawn.samples()))
    assert lp.abcc(None, drawn.scores, sensitive_features=drawn.groups) == pytest.approx(expected, abs=1e-12)


@given(people(n_groups=3, max_size=5))
def test_of_several_weighted_groups_it_is_the_worst(drawn: People) -> None:
    samples = drawn.samples(weighted=True)
    options = {"sensitive_features": drawn.groups, "sample_weight": drawn.weights}
    expected = float(oracles.worst_pair(samples, oracles.abcc))
    assert lp.abcc(None, drawn.scores, **options) == pytest.approx(expected, abs=1e-12)
    expected = float(oracles.worst_to_overall(samples, oracles.abcc))
    assert lp.abcc(None, drawn.scores, compare="to_overall", **options) == pytest.approx(expected, abs=1e-12)


@given(people())
def test_is_the_wasserstein_distance(drawn: People) -> None:
    a, b = (drawn.groups == group for group in (0, 1))
    expected = wasserstein_distance(drawn.scores[a], drawn.scores[b], drawn.weights[a], drawn.weights[b])
    measured = lp.abcc(None, drawn.scores, sensitive_features=drawn.groups, sample_weight=drawn.weights)
    assert measured == pytest.approx(expected, abs=1e-12)


# The paper's Theorem 1, property 5, on distribution functions that are lines between points of a grid.


@st.composite
def piecewise_linear_gap(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    cells = draw(st.integers(1, 12))
    masses = st.lists(st.integers(0, 9), min_size=cells, max_size=cells).filter(any)
    first, second = (np.array(draw(masses), dtype=float) for _ in range(2))
    points = np.linspace(0.0, 1.0, cells + 1)
    gap = np.concatenate([[0.0], np.cumsum(first) / first.sum() - np.cumsum(second) / second.sum()])
    return points, gap


@given(piecewise_linear_gap(), st.floats(0.001, 0.499))
def test_abcc_is_bounded_by_mcdp_and_a_lipschitz_constant(
    drawn: tuple[np.ndarray, np.ndarray], epsilon: float
) -> None:
    points, gap = drawn
    lipschitz = float(np.max(np.abs(np.diff(gap) / np.diff(points))))
    fine = np.linspace(0.0, 1.0, 20_001)
    absolute = np.abs(np.interp(fine, points, gap))
    area = float(np.trapezoid(absolute, fine))
    curve = lp.results.GapCurve(fine, np.interp(fine, points, gap), ("a", "b"), (1, 1))
    # On a grid of step h a window's least gap is off by at most L h.
    slack = lipschitz / 20_000 * 3
    assert area <= lp.abcc_bound(min(curve.mcdp(epsilon), 1.0), epsilon, lipschitz) + slack


def test_both_branches_of_the_bound_meet_at_two() -> None:
    assert lp.abcc_bound(0.1, 0.2, 2.0) == pytest.approx(0.1 + 0.2)
    assert lp.abcc_bound(0.1, 0.2, 2.0 + 1e-12) == pytest.approx(0.1 + 0.2)
    assert lp.abcc_bound(0.1, 0.2, 0.0) == 0.1
    assert lp.abcc_bound(1.0, 0.2, 2.5) == pytest.approx(1.0 + 0.4 * (1 - 1 / 2.5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.2, 0.1, 1.0), r"mcdp .*got 1.2"),
        ((-0.5, 0.1, 1.0), r"mcdp .*got -0.5"),
        ((0.2, 0.1, -1.0), "lipschitz .*got -1"),
        ((0.2, -0.1, 1.0), r"epsilon must be .* got -0\.1"),
    ],
)
def test_wrong_arguments_of_the_bound(arguments: tuple[float, float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lp.abcc_bound(*arguments)
