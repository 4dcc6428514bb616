"""Predictions: frozen, from arrays or from files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import localparity as lp


def test_arrays_are_frozen_without_touching_the_callers() -> None:
    scores = np.array([0.1, 0.9])
    found = lp.Predictions.from_arrays(
        [0, 1], scores, sensitive_features=["f", "m"], sample_weight=np.array([1.0, 2.0])
    )
    for array in (found.scores, found.codes, found.labels, found.weights):
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
    for name in ("scores", "codes", "labels", "weights"):
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
