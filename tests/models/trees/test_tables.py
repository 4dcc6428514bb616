"""LightGBM's trees for any number of classes, on tables as people have them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import localparity as lp
from localparity.models import UnseenValuesWarning
from localparity.models.trees._stock import StockModel, _Terms
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
    ("model", "y"), [(StockModel(**QUICK), Y), (StockModel(**QUICK), THREE)], ids=["two", "three"]
)


def log_loss_of(shares: Any, codes: Any) -> float:
    return float(-np.log(shares[np.arange(len(codes)), codes]).mean())


def test_terms_bend_at_knots_and_name_codes() -> None:
    values = np.array([0.0, 1.0, 2.0, 3.0, np.nan])
    term = _Terms.learn(values, is_text=False)
    assert term.levels.tolist() == [0.0, 1.0, 2.0, 3.0]
    expected = [
        [(value - 1.5) / term.scale, *(max(value - knot, 0.0) / term.scale for knot in term.knots), 0.0]
        + [float(value == level) for level in term.levels]
        for value in values[:4]
    ]
    missing = [0.0] * (1 + term.knots.size) + [1.0] + [0.0] * 4
    np.testing.assert_allclose(term(values), [*expected, missing], rtol=1e-6)
    assert term(values).shape[1] == term.width
    texts = _Terms.learn(np.array([2.0, 2.0, 0.0, np.nan]), is_text=True)
    np.testing.assert_array_equal(texts(np.array([0.0, 1.0, 2.0])), [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize("rule", ["additive", "crossed", "none"])
def test_it_learns_what_there_is(rule: str) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(6000, 3)), columns=["a", "b", "c"])
    index = {"additive": table["a"] + np.abs(table["b"]), "crossed": 3.0 * np.sign(table["a"] * table["b"])}
    chance = 1.0 / (1.0 + np.exp(-index.get(rule, 0.0 * table["a"]).to_numpy()))
    codes = (rng.random(6000) < chance).astype(int)
    model = StockModel(random_state=0, n_jobs=1)
    unseen = model.cross_fit(table[:4000], codes[:4000], np.arange(4000) % 5)
    best = log_loss_of(np.column_stack([1.0 - chance, chance])[4000:], codes[4000:])
    loss = log_loss_of(model.predict_proba(table[4000:]), codes[4000:])
    assert loss - best < {"additive": 0.005, "crossed": 0.03, "none": 0.002}[rule]
    assert log_loss_of(unseen, codes[:4000]) > best - 0.02  # 4,000 and 2,000 labels: a deviation of 0.009
    if rule == "none":
        assert log_loss_of(unseen, codes[:4000]) > np.log(2.0) - 0.001


def test_rows_are_predicted_by_parts_that_did_not_see_them() -> None:
    folds = np.arange(2000) % 4
    model = StockModel(n_estimators=3, random_state=0, n_jobs=1)
    before = model.cross_fit(X, Y, folds)
    assert model.forest_ is None or model.forest_.n_trees % 4 == 0
    turned = np.where(ROWS == 1000, 1 - Y, Y)
    after = clone(model).cross_fit(X, turned, folds)
    # The row's own label only matters through the blend, of 2,000 rows.
    assert np.abs(after - before)[1000].max() < 0.01


def test_a_class_that_a_fold_alone_has() -> None:
    codes = np.where(ROWS == 0, 2, Y)
    model = StockModel(n_estimators=3, random_state=0, n_jobs=1)
    unseen = model.cross_fit(X, codes, ROWS % 2)
    assert unseen.shape == (2000, 3)
    np.testing.assert_allclose(unseen.sum(axis=1), 1.0)
    assert unseen[0, 2] < 0.01


def test_classes_of_any_kind() -> None:
    model = StockModel(**QUICK).fit(X, THREE)
    assert model.classes_.tolist() == ["Female", "Male", "other"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert StockModel(**QUICK).fit(X, Y == 1).classes_.tolist() == [False, True]


@both
def test_saving_and_loading(model: Any, y: Any, tmp_path: Path) -> None:
    clone(model).fit(X, y).save(tmp_path)
    fitted, again = clone(model).fit(X, y), lp.load(tmp_path)
    assert type(again) is type(model)
    assert again.text_features_ == ["occupation"]
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


@both
def test_the_same_seed_gives_the_same_bits(model: Any, y: Any) -> None:
    fitted = [clone(model).set_params(random_state=seed).fit(X, y) for seed in (0, 0, 1)]
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
        (StockModel(**QUICK | {"n_estimators": 0}), "n_estimators.*0"),
    ],
)
def test_what_is_refused(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)


def test_a_folder_that_does_not_fit_itself(tmp_path: Path) -> None:
    model = StockModel(**QUICK).fit(X, THREE)
    model.save(tmp_path)
    described = (tmp_path / "model.json").read_text()
    reword(tmp_path, '"other"\n', '"other",\n"more"\n')
    with pytest.raises(ValueError, match=r"coefficients must have shape"):
        lp.load(tmp_path)
    (tmp_path / "model.json").write_text(described)
    reword(tmp_path, '"n_features": 4', '"n_features": 7')
    with pytest.raises(ValueError, match=r"columns, expected 7"):
        lp.load(tmp_path)


def test_names_that_the_library_refuses() -> None:
    odd = X.rename(columns={"age": 'age [in "years"]'})
    np.testing.assert_array_equal(
        StockModel(**QUICK).fit(odd, Y).predict_proba(odd),
        StockModel(**QUICK).fit(X, Y).predict_proba(X),
    )
