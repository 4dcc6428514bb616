"""Many rows are checked in one pass, and come out as a few do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from localparity._compiled import MANY
from localparity._validation import LEAST_WEIGHT, as_scores, as_weights, encode
from localparity._validation._rows import all_inside, low_bytes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_taken_as_they_are(dtype: Any) -> None:
    scores = np.linspace(0.0, 1.0, MANY, dtype=dtype)
    assert as_scores(scores, (0.0, 1.0)).values is scores
    assert scores.flags.writeable


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -0.5, 1.5])
def test_a_score_that_is_wrong_is_named(wrong: float) -> None:
    scores = np.full(MANY, 0.5)
    scores[7] = wrong
    with pytest.raises(ValueError, match=rf"y_score must be .* got {wrong} at row 7"):
        as_scores(scores, (0.0, 1.0))


@pytest.mark.parametrize(
    ("wrong", "got"), [(-1.0, "-1"), (0.5 * LEAST_WEIGHT, "1.77636e-15"), (np.nan, "nan")]
)
def test_a_weight_that_is_wrong_is_named(wrong: float, got: str) -> None:
    weights = np.full(MANY, 2.0)
    assert as_weights(weights, MANY) is weights
    weights[:7] = 0.0
    assert as_weights(weights, MANY) is weights
    weights[7] = wrong
    with pytest.raises(ValueError, match=rf"sample_weight must be .* got {got}.* at row 7"):
        as_weights(weights, MANY)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-3, 2), (200, 300), (-(2**62), 1 - 2**62), (0, 256), (5, 70_000)]
)
def test_whole_numbers_are_encoded_as_few_of_them(low: int, high: int) -> None:
    few = np.array([low, high, high - 1, low + 1])
    codes, values = encode(np.resize(few, MANY))
    expected, names = encode(few)
    assert codes.dtype == expected.dtype
    assert values[codes[:4]].tolist() == names[expected].tolist() == few.tolist()
    assert (codes[4:] == codes[:-4]).all()


def test_nothing_is_outside_of_an_empty_array() -> None:
    assert all_inside(np.empty(0), 0.0, 1.0)
    found = np.empty(3, dtype=np.uint8)
    assert low_bytes(np.array([-1, 256, 7]), found) == (-1, 256)
    assert found.tolist() == [255, 0, 7]
