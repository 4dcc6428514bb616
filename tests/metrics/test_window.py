"""The sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import localparity as lp
from localparity._text import number_text, round_inward
from localparity.results import Window


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (
            Window(0.21, 0.29, 0.18, "men", "women", ("men", "women")),
            "At every cutoff from 0.21 to 0.289, men are at least 18 points more likely than "
            "women to score above it.",
        ),
        (
            Window(0.30001, 0.30002, 0.5, "everyone", ("f", "old"), (("f", "old"), "everyone"), 1),
            "Among people with label 1, at a cutoff of 0.30001, people overall are at least 50 points more likely "
            "than f × old people to score above it.",
        ),
        (
            Window(0.0, 1.0, 0.0, None, None, ("a", "b")),
            "No window of this width has a gap between a and b.",
        ),
        (
            Window(300.0, 320.0, 0.25, None, None, ("a", "b"), whole=True),
            "At every cutoff from 300 to 319, a and b differ by at least 25 points, in a direction that changes "
            "inside.",
        ),
        (
            Window(2.0, 3.0, 0.0004, "a", "b", ("a", "b"), whole=True),
            "At a cutoff of 2, people of group a are at least 0.04 points more likely than people of group b to "
            "score above it.",
        ),
    ],
)
def test_a_window_in_words(window: Window, sentence: str) -> None:
    assert window.sentence == sentence


def test_a_sentence_claims_no_more_than_holds() -> None:
    sentence = Window(0.123449, 0.876551, 0.17977, "m", "f", ("m", "f")).sentence
    assert "every cutoff from 0.13 to 0.87," in sentence
    assert "at least 17 points" in sentence
    # A pair of groups, one of which is really named so.
    assert "everyone people" in Window(0.1, 0.2, 0.5, "b", "everyone", ("everyone", "b")).sentence
    # Scores next to each other.
    assert "a cutoff of 0.5," in _between(0.5, 0.5 + 2**-53)
    assert "a cutoff of 0.9999999999999999," in _between(1 - 2**-53, 1.0)


def _between(low: float, high: float) -> str:
    return Window(low, high, 0.5, 1, 0, (0, 1)).sentence


@pytest.mark.parametrize(
    ("gap", "points"),
    [
        (1.0, "at least 100 points"),
        (0.001, "at least 0.1 points"),
        (0.00099, "at least 0.09 points"),
        (0.0004, "at least 0.04 points"),
        (1e-8, "at least 0.000001 points"),
        (9e-9, "more than 0 points"),
    ],
)
def test_a_gap_is_never_told_as_no_points(gap: float, points: str) -> None:
    assert f" are {points} more likely" in Window(0.1, 0.2, gap, "a", "b", ("a", "b")).sentence


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (11490.0, "11,490"),
        (1234567.5, "1,234,567.5"),
        (-2500.0, "-2,500"),
        (0.00012, "0.00012"),
        (0.000001, "0.000001"),
        (9.5e-7, "9.5e-7"),
        (2e15, "2e+15"),
        (0.0, "0"),
    ],
)
def test_numbers_are_written_as_people_write_them(number: float, text: str) -> None:
    assert number_text(number) == text


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2, unique=True).map(sorted))
@example([0.0, 5e-324])
def test_the_ends_told_lie_inside_the_run(ends: list[float]) -> None:
    low, high = ends
    told = [float(text.replace(",", "")) for text in round_inward(low, high)]
    slack = 1e-12 * max(abs(low), abs(high))
    assert low - slack <= told[0] < told[1] <= high + slack


def test_deciles_are_told_as_whole_numbers_at_which_the_gap_holds() -> None:
    deciles, groups = [1, 2, 2, 6, 6, 9, 10], ["a", "a", "a", "b", "b", "b", "a"]
    curve = lp.gap_curve(
        lp.Predictions.from_arrays(None, deciles, sensitive_features=groups, score_range=(1, 10))
    )
    window = curve.worst_window()
    assert (window.low, window.high, window.whole) == (2.0, 6.0, True)
    assert "At every cutoff from 2 to 5," in window.sentence
    assert abs(curve(5)) >= window.gap > abs(curve(6))


@pytest.mark.parametrize(
    ("scores", "score_range", "whole"),
    [
        ([1, 2, 3, 4], (1, 10), True),
        ([1, 2, 3, 4.5], (1, 10), False),
        ([0, 0, 1, 1], (0, 1), False),
        ([-3, -2, 0, 1], (-5, 5), True),
    ],
)
def test_whole_scores_are_known_by_the_knots(scores: Any, score_range: Any, whole: bool) -> None:
    curve = lp.gap_curve(
        lp.Predictions.from_arrays(
            None, scores, sensitive_features=["a", "b", "a", "b"], score_range=score_range
        )
    )
    assert curve.whole is whole
    late = np.append(np.arange(200.0), 0.5)
    late_groups = np.arange(201) % 2
    assert not lp.gap_curve(
        lp.Predictions.from_arrays(None, late, sensitive_features=late_groups, score_range=(0, 200))
    ).whole


def test_scores_in_cells_are_not_known_to_be_whole() -> None:
    predictions = lp.Predictions.from_arrays(
        None, np.arange(1024) / 8, sensitive_features=np.arange(1024) % 2, score_range=(0, 128)
    )
    counts = lp.ScoreCounts.from_predictions(predictions)
    curve = lp.gap_curve(lp.counts.bounded(counts, max_scores=10, level=7))
    assert not np.any(curve.knots % 1.0)
    assert not curve.whole


def test_who_has_the_better_outcome_depends_on_what_a_high_score_means() -> None:
    window = Window(0.23, 0.33, 0.2731, "Male", "Female", ("Female", "Male"))
    where = "At every cutoff from 0.23 to 0.329, "
    assert window.sentence == window.sentence_for(None) == window.sentence_for()
    assert window.sentence_for("better") == (
        where + "Females are at least 27 points less likely than Males to score above it, "
        "which is the better outcome."
    )
    assert window.sentence_for("worse") == (
        where + "Males are at least 27 points more likely than Females to score above it, "
        "which is the worse outcome."
    )
    turning = Window(0.1, 0.2, 0.5, None, None, ("a", "b"))
    assert turning.sentence_for("better") == turning.sentence
    with pytest.raises(ValueError, match=r"higher_is .* 'good'"):
        window.sentence_for("good")  # type: ignore[arg-type]
