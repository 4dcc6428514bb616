"""The rows that classifiers are fitted on, and the one hold-out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from localparity.models._rows import as_seed, check_training_rows


def rows_of(labels: Any, groups: Any, weights: Any = None) -> Any:
    return check_training_rows(None, np.arange(len(labels))[:, None], labels, groups, weights)


def test_the_hold_out_is_stratified_by_group_and_class() -> None:
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 2, 400), rng.integers(0, 3, 400)
    rows = rows_of(labels, groups)
    training, held_out = rows.split(0.25, seed=1)
    assert sorted([*training, *held_out]) == list(range(400))
    expected = train_test_split(np.arange(400), test_size=0.25, stratify=2 * groups + labels, random_state=1)
    np.testing.assert_array_equal(training, expected[0])
    np.testing.assert_array_equal(held_out, expected[1])
    part = rows.take(held_out)
    np.testing.assert_array_equal(part.features[:, 0], held_out)
    np.testing.assert_array_equal(part.groups, groups[held_out])


def test_a_class_with_one_row_in_a_group_is_trained_on() -> None:
    labels, groups = [0, 1] * 10 + [1], ["a"] * 10 + ["b"] * 10 + ["b"]
    labels[1::2] = [0] * 5 + [1] * 5
    labels[1] = 1
    training, held_out = rows_of(labels, groups).split(0.3, seed=0)
    assert 1 in training
    assert len(training) + len(held_out) == 21


@pytest.mark.parametrize(
    ("labels", "groups", "message"),
    [
        ([0, 1, 0, 1], ["a", "a", "b", "b"], "4 rows"),
        ([0, 1, 0, 1, 0, 1, 0, 1, 1], ["a"] * 8 + ["b"], "group 'b'"),
    ],
)
def test_too_few_rows_to_hold_out(labels: Any, groups: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows_of(labels, groups).split(0.5, seed=0)


def test_a_missing_class() -> None:
    with pytest.raises(ValueError, match="y has no value at row 2"):
        rows_of(["no", "yes", None, "yes"], [0, 0, 1, 1])


def test_rows_without_weight_count_as_absent() -> None:
    rows = rows_of(["no", "yes", "no", "yes"], [0, 0, 1, 1], [1, 1, 1, 0])
    assert rows.with_weight().features.tolist() == [[0], [1], [2]]
    assert rows.labels.tolist() == [0, 1, 0, 1]
    with pytest.raises(ValueError, match=r"two classes.*\['no'\]"):
        rows_of(["no", "yes", "no", "yes"], [0, 0, 1, 1], [1, 0, 1, 0])
    with pytest.raises(ValueError, match="group 1 has no row of weight above 0"):
        rows_of(["no", "yes", "no", "yes"], [0, 0, 1, 1], [1, 1, 0, 0])


def test_indexes_that_differ_are_refused() -> None:
    table = pd.DataFrame({"x": [1.0, 2.0]}, index=[5, 6])
    with pytest.raises(ValueError, match="different indexes"):
        check_training_rows(None, table, pd.Series([0, 1]), ["a", "b"])


def test_seeds() -> None:
    assert as_seed(7) == as_seed(np.int64(7)) == 7
    assert as_seed(np.random.default_rng(1)) == as_seed(np.random.default_rng(1))
    with pytest.raises(ValueError, match=r"random_state.*-1"):
        as_seed(-1)
