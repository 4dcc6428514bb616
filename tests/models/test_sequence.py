"""Tests in a fixed sequence: where they stop, and how often they accept what is above the bound."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

import localparity as lp
from localparity.models._sequence import accept_in_order, promise_for_population, upper_bound

BOUND, CONFIDENCE, DRAWS, SETTINGS = 0.2, 0.9, 2000, 20
SIZE = 300


def test_it_ends_at_the_first_refusal_and_makes_nothing_after_it() -> None:
    made: list[int] = []

    def settings() -> Iterator[int]:
        for setting in (1, 2, 5, 1):
            made.append(setting)
            yield setting

    assert accept_in_order(settings(), lambda setting: setting < 3) == ([1, 2], [5])
    assert made == [1, 2, 5]
    assert accept_in_order([1, 2], lambda setting: setting < 3) == ([1, 2], [])
    assert accept_in_order([5, 1], lambda setting: setting < 3) == ([], [5])
    assert accept_in_order([], lambda setting: setting < 3) == ([], [])


@cache
def known_within(difference: int) -> bool:
    """Whether two groups are known to be within the bound where one has so many more of the higher score."""
    scores = np.full((2, SIZE), 0.2)
    scores[0, :difference] = 0.8
    people = lp.Predictions.from_arrays(None, scores.ravel(), sensitive_features=np.repeat([0, 1], SIZE))
    return upper_bound(people, 0.0, "demographic_parity", CONFIDENCE).high <= BOUND


def is_within(gap: float, rng: np.random.Generator) -> bool:
    """Whether a new sample of two scores, whose groups differ by a gap, is known to be within the bound."""
    first, second = rng.binomial(SIZE, [0.5 + gap / 2, 0.5 - gap / 2])
    return known_within(abs(int(first) - int(second)))


@pytest.mark.parametrize("good", [0, 2])
def test_many_settings_just_above_the_bound_are_rarely_accepted(good: int) -> None:
    rng = np.random.default_rng(good)
    gaps = [0.02] * good + [BOUND + 1e-4] * SETTINGS
    accepted = [accept_in_order(gaps, lambda gap: is_within(gap, rng))[0] for _ in range(DRAWS)]
    wrong = np.mean([any(gap > BOUND for gap in found) for found in accepted])
    assert wrong <= 0.1 + 3.0 * np.sqrt(0.1 * 0.9 / DRAWS)
    if good:
        assert np.mean([len(found) >= good for found in accepted]) > 0.9


def test_without_an_order_most_searches_would_accept_one() -> None:
    rng = np.random.default_rng(0)
    found = [any(is_within(BOUND + 1e-4, rng) for _ in range(SETTINGS)) for _ in range(30)]
    assert np.mean(found) > 0.5


def test_the_promise_says_for_whom_and_that_weights_are_approximate() -> None:
    plain = promise_for_population("MCDP(0) is at most 0.2", 0.9, np.ones(1200))
    assert plain.startswith(
        "With probability 0.9, MCDP(0) is at most 0.2 in the population that the 1,200 people"
    )
    assert "of about 0.9," in promise_for_population("MCDP(0) is at most 0.2", 0.9, np.full(1200, 2.0))
