"""MCDP of many gap curves on the same knots, against the definition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from localparity.counts import Comparison
from localparity.metrics._profile import carried_half_widths
from localparity.uncertainty._resampling import (
    Ranges,
    mcdp_of_pairs,
    studentised_pairs,
    window_ends,
    worst_of_pairs,
)
from strategies import People, people


@given(people(n_groups=3, max_size=5), st.integers(0, 4))
def test_pairs_measure_what_the_definition_says(drawn: People, steps: int) -> None:
    epsilons = (Fraction(0), Fraction(steps, 10))
    reach = carried_half_widths(np.array([0.0, steps / 10]), 8.9e-16)
    knots, place = np.unique(drawn.scores, return_inverse=True)
    rows = np.array([np.bincount(place[drawn.groups == group], minlength=knots.size) for group in range(3)])
    shares = (
        np.cumsum(np.vstack([rows, rows.sum(axis=0)]), axis=1)
        / np.append(rows.sum(axis=1), place.size)[:, None]
    )
    ranges = Ranges(np.arange(knots.size), window_ends(knots, knots, reach))
    for compare, worst in (("between_groups", oracles.worst_pair), ("to_overall", oracles.worst_to_overall)):
        sizes = rows.sum(axis=1)
        pairs = studentised_pairs(Comparison(compare=compare), 1.0 / sizes, sizes)
        each = mcdp_of_pairs(shares, pairs, ranges)
        plain, scaled = worst_of_pairs(shares[:, None], pairs, ranges).reshape(2, 2)
        for column, at in enumerate(epsilons):
            expected = float(worst(drawn.samples(), lambda a, b, at=at: oracles.mcdp(a, b, at)))
            assert each[:, column].max() == pytest.approx(expected, abs=1e-12)
            assert plain[column] == pytest.approx(expected, abs=1e-12)
            assert scaled[column] == pytest.approx((each[:, column] * pairs.scale).max(), abs=1e-12)


@given(
    st.lists(st.floats(0, 1, width=16), min_size=1, max_size=30, unique=True),
    st.sampled_from([0.0, 1e-3, 0.05, 0.25, 0.5]),
)
def test_a_window_holds_the_knots_at_which_a_run_would_be_too_short(drawn: list[float], reach: float) -> None:
    knots = np.sort(np.abs(drawn))
    (found,) = window_ends(knots, knots, np.array([reach]))
    for start, end in zip(knots, found, strict=True):
        lengths = 0.5 * (knots - start) if start > 0.0 else knots
        held = (lengths <= reach) & (reach > 0.0)
        assert end == np.count_nonzero(held | (knots <= start))


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_the_largest_of_the_least_values(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    begins = np.sort(rng.integers(0, size, 5))
    ends = np.minimum(begins + rng.integers(0, size + 1, (2, 5)), size)
    values = rng.random((3, size))
    expected = [
        [max((row[a:b].min() for a, b in zip(begins, at, strict=True) if b > a), default=0.0) for at in ends]
        for row in values
    ]
    np.testing.assert_array_equal(Ranges(begins, ends).largest_minimum(values), expected)


def test_rounding_decides_of_no_knot_whether_a_window_holds_it() -> None:
    knots = np.array([0.1, 0.1 + 0.2])
    (found,) = window_ends(knots, knots, np.array([0.1]))
    assert found.tolist() == [1, 2]
    knots = np.array([0.104, 0.232])
    assert 0.104 + 0.064 / 0.5 < 0.232
    (found,) = window_ends(knots, knots, np.array([0.064]))
    assert found.tolist() == [2, 2]


@pytest.mark.parametrize("ratio", [1.0, 1e6, 3e7, 1e8, 1e9, 4e9])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_group_that_outweighs_the_others_is_studentised_as_any(ratio: float, place: int) -> None:
    totals, variances = np.array([200.0, 300.0, 100.0]), np.array([0.01, 0.02, 0.05])
    totals[place] *= ratio
    weights = [Fraction(total) / sum(map(Fraction, totals)) for total in totals]
    expected = [
        sum(
            ((1 - weight) ** 2 if group == other else weight_of_other**2) * Fraction(variance)
            for other, (weight_of_other, variance) in enumerate(zip(weights, variances, strict=True))
        )
        for group, weight in enumerate(weights)
    ]
    scale = studentised_pairs(Comparison(compare="to_overall"), variances, totals).scale
    np.testing.assert_allclose(scale, [float(variance) ** -0.5 for variance in expected], rtol=1e-12)


def test_gaps_that_are_rounding_only_are_not_blown_up() -> None:
    scale = studentised_pairs(
        Comparison(compare="to_overall"), np.array([0.01, 0.01]), np.array([1.0, 1e24])
    ).scale
    assert scale.tolist() == [pytest.approx(50**0.5), 1e12]
