"""The steps of a profile: which runs make one, and what counts as longer."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
from localparity._scale import rounding_of
from localparity.metrics._profile import Runs, carried_half_widths, leading_runs
from strategies import People, people

EPS = float(np.finfo(np.float64).eps)

runs = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=12)


@given(runs)
def test_a_run_makes_a_step_where_no_other_is_as_long_and_as_high(drawn: list[tuple[int, int]]) -> None:
    half_widths, values = np.array(drawn, dtype=float).reshape(-1, 2).T / 16
    expected = sorted(
        run
        for run in set(drawn)
        if not any(other != run and other[0] >= run[0] and other[1] >= run[1] for other in drawn)
    )
    places = leading_runs(half_widths, values)
    assert (16 * np.stack([half_widths, values], axis=1))[places].tolist() == [
        list(map(float, run)) for run in expected
    ]


def test_a_run_that_is_longer_by_a_rounding_error_makes_no_step() -> None:
    def steps(longer_by: float) -> list[float]:
        knots, gap = np.array([0.25, 0.5, 0.5625, 0.8125 + longer_by]), np.array([1.0, 0.0, 0.5, 0.0])
        return lp.results.GapCurve(knots, gap, ("a", "b"), (1, 1)).profile().values.tolist()

    # Half-widths that differ by less than two machine epsilons, half the resolution, are one.
    assert steps(2 * EPS) == [1.0, 0.0]
    assert steps(6 * EPS) == [1.0, 0.5, 0.0]


def test_a_half_width_is_off_by_what_its_ends_are() -> None:
    """Of a run from the bottom of the range, the half-width is all of its length; of others, half of it."""
    runs = Runs(np.array([0.25, 0.125]), np.ones(2), np.array([0.0, 0.5]))
    bottom, *off = rounding_of(np.array([0.0, 0.25, 0.5, 0.75]), 0.25, (1.0, 2.0))
    assert runs.rounding(0.25, (1.0, 2.0)).tolist() == [bottom + off[0], 0.5 * (off[1] + off[2])]


@pytest.mark.parametrize(("shorter_by", "steps"), [(0.0625 + EPS / 2, [0]), (0.0625 + EPS, [0, 1])])
def test_what_is_longer_by_its_rounding_makes_no_step_and_by_more_does(
    shorter_by: float, steps: list[int]
) -> None:
    runs = Runs(np.array([0.5 - shorter_by, 0.5]), np.array([1.0, 0.5]), np.zeros(2))
    assert runs.steps(0.25, (0.0, 1.0)).tolist() == steps


def test_a_short_run_at_the_bottom_is_not_taken_for_rounding() -> None:
    """Its ends are small, so that they are off by far less than scores near 1."""
    curve = lp.results.GapCurve(np.array([0.0, 3e-17, 1.0]), np.array([1.0, 0.0, 0.0]), ("a", "b"), (1, 1))
    assert curve.mcdp_at(np.array([1e-17, 4e-17])).tolist() == [1.0, 0.0]


def test_a_run_carries_a_window_that_is_shorter_by_more_than_half_the_resolution() -> None:
    found = carried_half_widths(np.array([0.0, 0.25, 1.5]), 0.125)
    assert found.tolist() == [0.0, 0.3125, 1.5625]


@given(people(n_groups=3, max_size=5))
def test_a_profile_of_several_curves_is_the_worst_of_them(drawn: People) -> None:
    profile = lp.mcdp_profile(None, drawn.scores, sensitive_features=drawn.groups)
    at = np.linspace(0.0, 0.49, 23)
    apart = []
    for pair in combinations((0, 1, 2), 2):
        among = np.isin(drawn.groups, pair)
        apart.append(lp.mcdp_profile(None, drawn.scores[among], sensitive_features=drawn.groups[among])(at))
    np.testing.assert_array_equal(profile(at), np.max(apart, axis=0))
    # A few epsilons are looked up in another way than many.
    for few in (at[:8], at[:9], at[3]):
        np.testing.assert_array_equal(profile(few), np.max(apart, axis=0)[np.searchsorted(at, few)])
    assert (np.diff(profile.epsilons) > 1e-9).all()
    assert profile.worst_window() == profile.worst_window(0.0)
    assert profile.worst_window().gap == profile.values[0]


def test_the_steps_are_those_of_the_finest_curve_and_the_coarsest_counts_as_equal() -> None:
    knots = np.array([0.75, 1.0])
    fine = lp.results.GapCurve(knots, np.array([0.5, 0.0]), ("a", "b"), (1, 1))
    coarse = lp.results.GapCurve(knots, np.array([0.25, 0.0]), ("a", "c"), (1, 1), resolution=0.01)
    profile = lp.results.McdpProfile([fine, coarse])
    assert profile.curves == (fine, coarse)
    assert [profile(epsilon) for epsilon in (0.0, 0.119, 0.121)] == [0.5, 0.5, 0.0]
    assert lp.results.McdpProfile([coarse, fine]).values.tolist() == profile.values.tolist() == [0.5, 0.0]


def test_a_profile_says_its_values_in_a_line() -> None:
    profile = lp.mcdp_profile(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"])
    assert repr(profile) == "McdpProfile(MCDP(0) 100.0, MCDP(0.05) 100.0, MCDP(0.1) 50.0 points)"


def test_a_profile_draws_at_the_usual_level() -> None:
    pytest.importorskip("matplotlib")
    profile = lp.mcdp_profile(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"])
    assert profile.plot().confidence == pytest.approx(0.95)
