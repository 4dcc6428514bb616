"""LightGBM's trees for any number of classes, on tables as people have them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import clone

import localparity as lp
from localparity.models import UnseenValuesWarning
from localparity.models.trees._stock import StockTrees
from model_folders import reword

CENSUS = lp.datasets.make_census(2000, random_state=0)
ROWS = np.arange(2000)
X = CENSUS.data.assign(
    age=CENSUS.data["age"].astype(float).where(ROWS % 7 > 0),
    occupation=CENSUS.data["occupation"].where(ROWS % 5 > 0),
)
Y, SEX = CENSUS.target, CENSUS.sensitive_features
THREE = np.where(ROWS % 3 == 0, "other", SEX)
QUICK: dict[str, Any] = {"n_estimators": 20, "n_jobs": 1, "random_state": 0}

both = pytest.mark.parametrize(
    ("model", "y"), [(StockTrees(**QUICK), Y), (StockTrees(**QUICK), THREE)], ids=["two", "three"]
)


def test_it_is_lightgbm_itself_on_the_same_categories() -> None:
    table = CENSUS.data.astype({"occupation": "category"})
    stock = LGBMClassifier(n_estimators=20, learning_rate=0.05, num_leaves=15, n_jobs=1, verbose=-1)
    for y in (Y, THREE):
        expected = stock.fit(table, y).predict_proba(table)
        for same in (table, CENSUS.data, pl.from_pandas(CENSUS.data)):
            shares = StockTrees(**QUICK).fit(same, y).predict_proba(same)
            np.testing.assert_allclose(shares, expected, rtol=1e-14)


def test_classes_of_any_kind() -> None:
    model = StockTrees(**QUICK).fit(X, THREE)
    assert model.classes_.tolist() == ["Female", "Male", "other"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert StockTrees(**QUICK).fit(X, Y == 1).classes_.tolist() == [False, True]


@both
def test_saving_and_loading(model: Any, y: Any, tmp_path: Path) -> None:
    clone(model).fit(X, y).save(tmp_path)
    fitted, again = clone(model).fit(X, y), lp.load(tmp_path)
    assert type(again) is type(model)
    assert again.text_features_ == ["occupation"]
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


@both
def test_the_same_seed_gives_the_same_bits(model: Any, y: Any) -> None:
    fitted = [
        clone(model).set_params(random_state=seed, booster_params={"feature_fraction": 0.5}).fit(X, y)
        for seed in (0, 0, 1)
    ]
    one, same, other = (each.predict_proba(X) for each in fitted)
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@both
def test_rows_of_no_weight_are_as_good_as_absent(model: Any, y: Any) -> None:
    weights = np.where(X["occupation"] == "care", 0.0, 1.0 + ROWS % 2)
    kept = weights > 0.0
    weighted = clone(model).fit(X, y, sample_weight=weights)
    absent = clone(model).fit(X[kept], y[kept], sample_weight=weights[kept])
    assert "care" not in weighted.encoder_.categories_[X.columns.get_loc("occupation")]
    np.testing.assert_array_equal(weighted.predict_proba(X[kept]), absent.predict_proba(X[kept]))


@both
def test_what_fit_did_not_see_is_counted_once(model: Any, y: Any) -> None:
    fitted = clone(model).fit(CENSUS.data, y)
    new = CENSUS.data.assign(
        age=X["age"], occupation=CENSUS.data["occupation"].where(ROWS >= 30, "astronaut")
    )
    with pytest.warns(
        UnseenValuesWarning, match=r"286 missing.*'age'.*30 in 1 new.*'occupation'.*'astronaut'"
    ) as caught:
        found = fitted.predict_proba(new)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert len(found) == 2000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict_proba(CENSUS.data)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (StockTrees(**QUICK | {"n_estimators": 0}), "n_estimators.*0"),
        (StockTrees(booster_params={"loss": "l2"}), "booster_params.*'loss'"),
    ],
)
def test_what_is_refused(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)


def test_a_folder_that_does_not_fit_itself(tmp_path: Path) -> None:
    model = StockTrees(**QUICK).fit(X, THREE)
    model.save(tmp_path)
    described = (tmp_path / "model.json").read_text()
    reword(tmp_path, '"other"\n', '"other",\n"more"\n')
    with pytest.raises(ValueError, match=r"the trees are not those of the classes .*'more'"):
        lp.load(tmp_path)
    (tmp_path / "model.json").write_text(described)
    reword(tmp_path, '"n_features": 4', '"n_features": 7')
    with pytest.raises(ValueError, match=r"columns, expected 7"):
        lp.load(tmp_path)


def test_names_that_the_library_refuses() -> None:
    odd = X.rename(columns={"age": 'age [in "years"]'})
    np.testing.assert_array_equal(
        StockTrees(**QUICK).fit(odd, Y).predict_proba(odd),
        StockTrees(**QUICK).fit(X, Y).predict_proba(X),
    )
