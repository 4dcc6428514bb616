"""Fits keep one copy of rows that are repeated, say so, and promise for the people that there are."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

import localparity as lp
from localparity.models._rows import check_training_rows, distinct_rows


def census(rows: int = 400, copies: int = 1) -> tuple[pd.DataFrame, Any, Any]:
    found = lp.datasets.make_census(rows, random_state=0)
    repeated = np.repeat(np.arange(rows), copies)
    return found.data.iloc[repeated], found.target[repeated], found.sensitive_features[repeated]


def test_one_copy_is_kept_with_a_warning() -> None:
    plain = check_training_rows(None, *census())
    with pytest.warns(UserWarning, match="every row occurs 5 times.*400 of 2,000 rows"):
        found = check_training_rows(None, *census(copies=5))
    pd.testing.assert_frame_equal(found.features, plain.features)
    assert (found.labels == plain.labels).all()
    assert (found.groups == plain.groups).all()


@pytest.mark.parametrize("change", ["text", "number", "weight", "group"])
def test_rows_that_differ_in_anything_are_no_copies(change: str) -> None:
    frame, y, sex = census(copies=2)
    frame, sex, weights = frame.reset_index(drop=True), sex.copy(), np.ones(800)
    others = np.arange(1, 800, 2)
    if change == "text":
        frame["note"] = np.where(np.arange(800) % 2, "b", "a")
    elif change == "number":
        frame.loc[others, "age"] += 1
    elif change == "weight":
        weights[others] = 2.0
    else:
        sex[others] = np.where(sex[others] == "Male", "Female", "Male")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_training_rows(None, frame, y, sex, weights).labels.size == 800


@pytest.mark.parametrize(
    "make",
    [
        lambda table: table,
        lambda table: table.tolist(),
        lambda table: pd.DataFrame(table),
        lambda table: pd.DataFrame(table).assign(text=pd.Categorical(table[:, 0].astype(str))),
        csr_matrix,
    ],
)
def test_any_kind_of_table(make: Any) -> None:
    rng = np.random.default_rng(0)
    table = np.where(rng.random((300, 4)) < 0.3, 0.0, rng.random((300, 4)).round(1))
    table[0, 0] = np.nan
    once = distinct_rows(make(table), np.arange(300))
    assert (once[0], once[1].tolist()) == (1, list(range(300)))
    order = rng.permutation(900) % 300
    copies, places = distinct_rows(make(table[order]), order)
    assert copies == 3
    assert sorted(order[places]) == list(range(300))


def test_a_promise_counts_the_people_that_there_are() -> None:
    arrays: dict[str, Any] = {"random_state": 0, "max_mcdp": 0.35, "confidence": 0.9}
    frame, y, sex = census(1500, copies=4)
    numbers = frame[["age", "education_years", "hours_per_week"]]
    with pytest.warns(UserWarning, match="every row occurs 4 times"):
        model = lp.models.RepairedClassifier(LogisticRegression(max_iter=500), **arrays).fit(
            numbers, y, sensitive_features=sex
        )
    once = lp.models.RepairedClassifier(LogisticRegression(max_iter=500), **arrays)
    once.fit(numbers.iloc[::4], y[::4], sensitive_features=sex[::4])
    assert model.repair_.promise_ == once.repair_.promise_
    assert model.repair_.margin_ == once.repair_.margin_
    assert model.card().fitted_on.rows == 1500


def test_so_does_a_repair_of_scores() -> None:
    found = lp.datasets.make_census(2000, random_state=0)
    once = lp.models.ScoreRepair(max_mcdp=0.2, confidence=0.9)
    once.fit(found.score, sensitive_features=found.sensitive_features)
    scores, sex = np.tile(found.score, 3), np.tile(found.sensitive_features, 3)
    with pytest.warns(UserWarning, match="every row occurs 3 times"):
        repair = lp.models.ScoreRepair(max_mcdp=0.2, confidence=0.9).fit(scores, sensitive_features=sex)
    assert repair.promise_ == once.promise_
    assert "2,000 people" in repair.promise_
    assert repair.margin_ == once.margin_


def test_real_people_who_are_alike_are_no_copies(data_folder: Path) -> None:
    compas = pd.read_csv(data_folder / "compas" / "compas_features.csv")
    few = compas[["age", "priors_count", "sex", "race"]]
    assert few.duplicated().mean() > 0.3
    adult = pd.read_csv(data_folder / "adult" / "adult.data", header=None)
    assert adult.duplicated().any()
    for frame in (few, compas, adult, adult[[0, 3, 9]]):
        assert distinct_rows(frame, np.zeros(len(frame)))[0] == 1
