"""Predictions: frozen, from arrays or from files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import localparity as lp

SCORES, GROUPS = [0.2, 0.9, 0.4], ["f", "m", "f"]


def test_arrays_are_frozen_without_touching_the_callers() -> None:
    scores = np.array([0.1, 0.9])
    found = lp.Predictions.from_arrays(
        [0, 1], scores, sensitive_features=["f", "m"], sample_weight=np.array([1.0, 2.0])
    )
    for array in (found.scores, found.group_codes, found.labels, found.weights):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    scores[0] = 7.0
    assert found.scores.tolist() == [0.1, 0.9]
    assert len(found) == 2
    assert repr(found) == "Predictions(2 rows, 2 groups)"


def test_a_file_gives_what_its_arrays_give(tmp_path: Path) -> None:
    census = lp.datasets.make_census(500, random_state=1, as_frame=False)
    columns = census.data | {"p": census.score, "sex": census.sensitive_features, "y": census.target}
    with (tmp_path / "census.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([list(columns), *zip(*columns.values(), strict=True)])
    read = lp.Predictions.read(
        tmp_path / "census.csv", score="p", group=["sex", "occupation"], label="y", weight="age"
    )
    made = lp.Predictions.from_arrays(
        census.target,
        census.score,
        sensitive_features={name: columns[name] for name in ("sex", "occupation")},
        sample_weight=columns["age"],
    )
    assert read.groups == made.groups
    for name in ("scores", "group_codes", "labels", "weights"):
        np.testing.assert_array_equal(getattr(read, name), getattr(made, name))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("p,sex\n0.1,f\n1.5,m\n", {}, "column 'p' .*got 1.5 at data row 2"),
        ("p,sex\n0.1,f\n0.5,\n", {}, "column 'sex' has no value at data row 2"),
        ("p,sex\n0.1,f\n0.5,f\n", {}, "column 'sex' .*got 'f' only"),
        ("p,sex,y\n0.1,f,2\n0.5,m,1\n", {"label": "y"}, "column 'y' .*got 2 at data row 1"),
        ("p,sex,w\n0.1,f,-1\n0.5,m,1\n", {"weight": "w"}, "column 'w' .*got -1 at data row 1"),
        ("p,sex\n0.1,f\n0.5,m\n", {"group": []}, "group must name .*got none"),
        ("p,sex\n0.1,f\n0.5,m\n", {"group": ["sex", "age"]}, "there is no column in .* named 'age'"),
        ("p,sex\n0.1,f\n0.5,m\n", {"group": ["sex", "p"]}, "column 'p'.*score and a group"),
    ],
)
def test_a_file_with_wrong_values_names_the_column(
    tmp_path: Path, text: str, options: dict[str, str], message: str
) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        lp.Predictions.read(tmp_path / "a.csv", **{"score": "p", "group": "sex", **options})


def test_what_needs_no_conversion_is_copied() -> None:
    groups, labels, weights = np.array([0, 1], np.uint8), np.array([0, 1], np.uint8), np.array([1.0, 2.0])
    found = lp.Predictions.from_arrays(labels, [0.1, 0.9], sensitive_features=groups, sample_weight=weights)
    for array in (groups, labels, weights):
        array[:] = 7
    assert found.group_codes.tolist() == [0, 1]
    assert found.labels is not None
    assert found.labels.tolist() == [0, 1]
    assert found.weights is not None
    assert found.weights.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("n_groups", [200, 256, 300])
def test_many_groups_by_label_are_those_counted_one_by_one(n_groups: int) -> None:
    rng = np.random.default_rng(0)
    groups = np.concatenate([np.arange(n_groups), rng.integers(n_groups, size=6 * n_groups)])
    scores, labels = rng.integers(0, 1000, groups.size) / 1000, rng.integers(2, size=groups.size)
    rows = lp.Predictions.from_arrays(labels, scores, sensitive_features=groups + 7)
    assert rows.group_codes.dtype == (np.uint8 if n_groups <= 256 else np.uint16)
    counted: dict[tuple[int, int], list[float]] = {}
    for group, label, score in zip(groups.tolist(), labels.tolist(), scores.tolist(), strict=True):
        counted.setdefault((group + 7, label), []).append(score)
    counts = lp.ScoreCounts.from_predictions(rows)
    found = {key: atoms.scores.tolist() for key, atoms in counts.atoms.items() if atoms.scores.size}
    assert found == {key: sorted(set(kept)) for key, kept in counted.items()}
    largest = max(
        (abs(np.searchsorted(a, t, "right") / a.size - np.searchsorted(b, t, "right") / b.size))
        for one, a in _samples(groups, scores)
        for other, b in _samples(groups, scores)
        if one < other < 20
        for t in (*a, *b)
    )
    few = groups < 20
    assert lp.mcdp(None, scores[few], sensitive_features=groups[few]) == pytest.approx(largest, abs=1e-12)


def _samples(groups: np.ndarray, scores: np.ndarray) -> list[tuple[int, np.ndarray]]:
    return [(group, np.sort(scores[groups == group])) for group in range(20)]


@pytest.mark.parametrize(
    "labels", [["no", "yes", "yes"], [1, 2, 2], [-1, 1, 1], [False, True, True], [2.0, 3.0, 3.0]]
)
def test_pos_label_is_the_label_that_counts_as_one(labels: list[Any]) -> None:
    for y_true in (labels, np.array(labels), pandas.Series(labels)):
        found = lp.Predictions.from_arrays(y_true, SCORES, sensitive_features=GROUPS, pos_label=labels[1])
        np.testing.assert_array_equal(found.labels, [0, 1, 1])
        other = lp.Predictions.from_arrays(y_true, SCORES, sensitive_features=GROUPS, pos_label=labels[0])
        np.testing.assert_array_equal(other.labels, [1, 0, 0])


def test_pos_label_must_be_one_of_two_labels() -> None:
    for labels, pos_label, message in (
        (["a", "b", "b"], "c", "^pos_label must be one of 'a', 'b', got 'c'"),
        (["a", "b", "c"], "a", "^y_true must have two labels with pos_label='a', got 'a', 'b', 'c'"),
        (["a", None, "b"], "a", "^y_true has no value at row 1"),
        (["a", "b"], "a", "^y_true has 2 rows, y_score has 3"),
    ):
        with pytest.raises(ValueError, match=message):
            lp.Predictions.from_arrays(labels, SCORES, sensitive_features=GROUPS, pos_label=pos_label)
    with pytest.raises(ValueError, match=r"^y_true must be 0 or 1, got 2 at row 1; pass pos_label"):
        lp.Predictions.from_arrays([1, 2, 2], SCORES, sensitive_features=GROUPS)
    # as in scikit-learn, people of one class need not have the positive label
    found = lp.Predictions.from_arrays(["b"] * 3, SCORES, sensitive_features=GROUPS, pos_label="a")
    np.testing.assert_array_equal(found.labels, [0, 0, 0])


def test_pos_label_of_a_file_may_be_a_text_or_a_number(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("p,sex,won,n\n0.2,f,no,1\n0.9,m,yes,2\n0.4,f,yes,2\n")
    for label, pos_label in (("won", "yes"), ("n", 2), ("n", "2")):
        found = lp.Predictions.read(path, score="p", group="sex", label=label, pos_label=pos_label)
        np.testing.assert_array_equal(found.labels, [0, 1, 1])


@pytest.mark.parametrize(
    "measure",
    [
        lp.mcdp,
        lp.mcdp_profile,
        lp.abcc,
        lp.delta_dp,
        lp.spdd,
        lp.p_rule,
        lp.mcdp_interval,
        lp.permutation_test,
    ],
)
def test_every_metric_takes_pos_label(measure: Any) -> None:
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    scores = (rng.integers(0, 50, 60) + 49 * labels) / 100
    rows: dict[str, Any] = {"sensitive_features": groups, "criterion": "equal_opportunity"}
    rows |= {"random_state": 0} if measure in (lp.mcdp_interval, lp.permutation_test) else {}
    found, expected = (
        measure(y_true, scores, **rows, pos_label=pos_label)
        for y_true, pos_label in ((np.array(["lost", "won"])[labels], "won"), (labels, None))
    )
    assert (
        found([0.0, 0.1]).tolist() == expected([0.0, 0.1]).tolist() if callable(found) else found == expected
    )
    predictions = lp.Predictions.from_arrays(labels, scores, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"^pos_label must be None with Predictions"):
        measure(predictions, pos_label="won")
