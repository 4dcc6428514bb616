"""The sentences."""

from __future__ import annotations

import pytest

from localparity import Window


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (
            Window(0.21, 0.29, 0.18, "men", "women", ("men", "women")),
            "With a threshold anywhere between 0.21 and 0.29, people in women are at least 18.0 points more "
            "likely to be at or below it than people in men.",
        ),
        (
            Window(0.30001, 0.30002, 0.5, "everyone", ("f", "old"), (("f", "old"), "everyone"), 1),
            "Among people with label 1, with a threshold anywhere between 0.30001 and 0.30002, people in f × old "
            "are at least 50.0 points more likely to be at or below it than people overall.",
        ),
        (
            Window(0.0, 1.0, 0.0, None, None, ("a", "b")),
            "No window of this width has a gap between a and b.",
        ),
        (
            Window(300.0, 320.0, 0.25, None, None, ("a", "b")),
            "With a threshold anywhere between 300 and 320, a and b differ by at least 25.0 points, in a "
            "direction that changes inside.",
        ),
    ],
)
def test_a_window_in_words(window: Window, sentence: str) -> None:
    assert window.sentence == sentence


def test_a_sentence_claims_no_more_than_holds() -> None:
    sentence = Window(0.123449, 0.876551, 0.17977, "m", "f", ("m", "f")).sentence
    assert "between 0.1235 and 0.8765" in sentence
    assert "at least 17.9 points" in sentence
    # A pair of groups, one of which is really named so.
    assert "people in everyone" in Window(0.1, 0.2, 0.5, "b", "everyone", ("everyone", "b")).sentence
    # Scores next to each other.
    assert "between 0.5 and 0.5000000000000001" in Window(0.5, 0.5 + 2**-53, 0.5, 1, 0, (0, 1)).sentence
    assert "between 0.9999999999999999 and 1.0" in Window(1 - 2**-53, 1.0, 0.5, 1, 0, (0, 1)).sentence
