"""The classifiers of boosted trees as scikit-learn users meet them."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV

import localparity as lp
from estimator_checks import Supplied, assert_passes
from localparity.models import (
    BoundNotMetWarning,
    LocalParityLGBMClassifier,
    LocalParityXGBClassifier,
    UnseenValuesWarning,
)
from model_folders import data_file, reword

CENSUS = lp.datasets.make_census(3000, random_state=0)
X, Y, SEX = CENSUS.data.astype({"occupation": "category"}), CENSUS.target, CENSUS.sensitive_features
NUMBERS = X[["age", "education_years", "hours_per_week"]]
KINDS = {"xgboost": LocalParityXGBClassifier, "lightgbm": LocalParityLGBMClassifier}
QUICK: dict[str, Any] = {"n_estimators": 30, "n_jobs": 1, "random_state": 0}

both = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def mcdp_of(model: Any, X: Any = X, **options: Any) -> float:
    return lp.mcdp(Y, model.predict_proba(X)[:, 1], sensitive_features=SEX, **options)


class SuppliedXGB(Supplied, LocalParityXGBClassifier):
    pass


class SuppliedLGBM(Supplied, LocalParityLGBMClassifier):
    pass


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(
    ("kind", "params"),
    [
        (SuppliedXGB, {"min_child_weight": 0.1}),
        (
            SuppliedLGBM,
            {"min_data_in_leaf": 0, "lambda_l2": 1.0, "min_data_in_bin": 1, "min_sum_hessian_in_leaf": 0.1},
        ),
    ],
    ids=KINDS,
)
def test_scikit_learns_own_checks(kind: Any, params: dict[str, Any]) -> None:
    estimator = kind(n_estimators=20, n_jobs=1, random_state=0, booster_params=params)
    # LightGBM says the same of its own classifier: weights are not the same as repeated rows to it, and before
    # scikit-learn 1.7 the check has rows of which XGBoost too makes other bins.
    differs = kind is SuppliedLGBM or tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7)
    known = {"check_sample_weight_equivalence_on_dense_data": "other bins"} if differs else {}
    assert_passes(estimator, known)


@both
def test_without_strength_it_is_the_library_itself(kind: Any) -> None:
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    ours = kind(0.0, **QUICK).fit(X, Y, sensitive_features=SEX).predict_proba(X)[:, 1]
    if kind is LocalParityXGBClassifier:
        stock = XGBClassifier(
            n_estimators=30, learning_rate=0.1, n_jobs=1, enable_categorical=True, base_score=Y.mean()
        )
    else:
        stock = LGBMClassifier(n_estimators=30, learning_rate=0.1, n_jobs=1, verbose=-1)
    np.testing.assert_allclose(ours, stock.fit(X, Y).predict_proba(X)[:, 1], atol=2e-5)


@both
def test_strength_lowers_the_disparity(kind: Any) -> None:
    free, fair = (kind(strength, **QUICK).fit(X, Y, sensitive_features=SEX) for strength in (0.0, 0.5))
    assert mcdp_of(free) > 0.25
    assert mcdp_of(fair) < 0.12
    assert average_precision_score(Y, fair.predict_proba(X)[:, 1]) > 0.55
    assert fair.groups_ == ("Female", "Male")
    assert fair.n_estimators_ == 30
    assert set(fair.predict(X)) <= {0, 1}


@both
@pytest.mark.parametrize("criterion", ["equal_opportunity", "predictive_equality", "equalized_odds"])
def test_every_criterion_is_lowered(kind: Any, criterion: str) -> None:
    free, fair = (
        kind(strength, criterion=criterion, **QUICK).fit(X, Y, sensitive_features=SEX)
        for strength in (0.0, 0.5)
    )
    assert mcdp_of(fair, criterion=criterion) < 0.7 * mcdp_of(free, criterion=criterion)


@both
def test_windows_and_several_groups(kind: Any) -> None:
    age = np.where(X["age"] > 45, "old", "young")
    features = pd.DataFrame({"sex": SEX, "age": age})
    free, fair = (
        kind(strength, epsilon=0.05, **QUICK).fit(X, Y, sensitive_features=features)
        for strength in (0.0, 1.0)
    )
    assert len(fair.groups_) == 4
    found = [
        lp.mcdp(None, model.predict_proba(X)[:, 1], sensitive_features=features, epsilon=0.05)
        for model in (free, fair)
    ]
    assert found[1] < 0.7 * found[0]


@both
def test_the_same_seed_gives_the_same_bits(kind: Any) -> None:
    params = {"subsample": 0.5} if kind is LocalParityXGBClassifier else {"feature_fraction": 0.5}
    models = [kind(booster_params=params, **QUICK | {"random_state": seed}) for seed in (0, 0, 1)]
    one, same, other = (model.fit(X, Y, sensitive_features=SEX).predict_proba(X) for model in models)
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@both
def test_missing_numbers_and_names_of_classes(kind: Any) -> None:
    gappy = X.assign(age=X["age"].astype(float).where(X.index % 3 > 0))
    model = kind(**QUICK).fit(gappy, np.where(Y == 1, "yes", "no"), sensitive_features=SEX)
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(gappy)) == {"no", "yes"}
    assert np.isfinite(model.predict_proba(gappy)).all()


@both
def test_a_category_keeps_its_meaning_in_another_frame(kind: Any) -> None:
    model = kind(**QUICK).fit(X, Y, sensitive_features=SEX)
    few = X[X["occupation"] == "technical"].head(20)
    alone = few.assign(occupation=pd.Categorical(["technical"] * 20))
    np.testing.assert_array_equal(model.predict_proba(alone), model.predict_proba(few))


@both
def test_texts_are_the_categories_that_the_library_takes(kind: Any, tmp_path: Path) -> None:
    model = kind(**QUICK).fit(X, Y, sensitive_features=SEX)
    expected = model.predict_proba(X)
    for texts in (CENSUS.data, pl.from_pandas(CENSUS.data)):
        np.testing.assert_array_equal(model.predict_proba(texts), expected)
        of_texts = kind(**QUICK).fit(texts, Y, sensitive_features=SEX)
        assert of_texts.text_features_ == ["occupation"]
        np.testing.assert_array_equal(of_texts.predict_proba(texts), expected)
    of_texts.save(tmp_path)
    np.testing.assert_array_equal(lp.load(tmp_path).predict_proba(CENSUS.data), expected)


@both
def test_names_that_the_library_refuses(kind: Any) -> None:
    odd = X.rename(columns={"age": 'age [in "years"]'})
    found = kind(**QUICK).fit(odd, Y, sensitive_features=SEX).predict_proba(odd)
    np.testing.assert_array_equal(found, kind(**QUICK).fit(X, Y, sensitive_features=SEX).predict_proba(X))


@both
def test_a_missing_text_is_a_category_and_a_new_one_is_none(kind: Any) -> None:
    gappy = CENSUS.data.assign(occupation=CENSUS.data["occupation"].where(Y == 0))
    model = kind(0.0, **QUICK).fit(gappy, Y, sensitive_features=SEX)
    assert average_precision_score(Y, model.predict_proba(gappy)[:, 1]) > 0.99
    with pytest.warns(UnseenValuesWarning, match=r"3,000 in 1 new.*'occupation'.*'astronaut'") as caught:
        scores = model.predict_proba(X.assign(occupation="astronaut"))
    assert len(caught) == 1
    assert np.isfinite(scores).all()


@both
def test_rows_of_no_weight_are_as_good_as_absent(kind: Any) -> None:
    weights = (np.arange(3000) % 2).astype(float)
    kept = weights > 0
    weighted = kind(**QUICK).fit(X, Y, sensitive_features=SEX, sample_weight=weights)
    absent = kind(**QUICK).fit(X[kept], Y[kept], sensitive_features=SEX[kept])
    np.testing.assert_array_equal(weighted.predict_proba(X), absent.predict_proba(X))


@both
def test_early_stopping_drops_the_trees_after_the_best(kind: Any) -> None:
    options = QUICK | {"n_estimators": 400, "learning_rate": 0.5}
    model = kind(0.1, patience=5, **options).fit(X, Y, sensitive_features=SEX)
    assert 1 <= model.n_estimators_ < 100


@both
def test_a_bound_is_met_by_the_most_accurate_model(kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = kind(max_mcdp=0.15, **QUICK).fit(X, Y, sensitive_features=SEX)
    met = {strength: trial for strength, trial in model.trials_.items() if trial.mcdp <= 0.15}
    assert model.bound_met_
    assert model.strength_ == max(met, key=lambda strength: met[strength].average_precision)
    assert len(model.trials_) <= 2
    assert mcdp_of(model) < 0.2


@both
@pytest.mark.parametrize(("max_mcdp", "most"), [(0.0, 4), (0.15, 3)])
def test_a_search_costs_less_than_three_fits_or_four(kind: Any, max_mcdp: float, most: int) -> None:
    trees = 0

    class Counted(kind):  # type: ignore[misc]
        def _train(self, backend: Any, strength: float, title: str, *, short: bool = False) -> Any:
            nonlocal trees
            model = super()._train(backend, strength, title, short=short)
            trees += model.forest.n_trees
            return model

    options = QUICK | {"n_estimators": 40}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundNotMetWarning)
        Counted(max_mcdp=max_mcdp, **options).fit(X, Y, sensitive_features=SEX)
    assert 40 < trees < most * 40


@both
def test_progress_tells_the_fit_its_tree_and_the_mcdp_and_changes_nothing(
    kind: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = kind(max_mcdp=0.15, **QUICK).fit(X, Y, sensitive_features=SEX)
    assert capsys.readouterr().err == ""
    loud = kind(max_mcdp=0.15, verbose=True, **QUICK).fit(X, Y, sensitive_features=SEX)
    shown = capsys.readouterr().err
    for part in ("short fit 1 of at most 7, strength 0", "fit 1 of at most 3, strength", "validation MCDP"):
        assert part in shown
    np.testing.assert_array_equal(quiet.predict_proba(X), loud.predict_proba(X))


@both
def test_a_bound_that_cannot_be_met_is_said_plainly(kind: Any) -> None:
    options = QUICK | {"n_estimators": 3}
    with pytest.warns(BoundNotMetWarning, match=r"max_mcdp=0 was not met: of 3 strengths") as caught:
        model = kind(max_mcdp=0.0, **options).fit(X, Y, sensitive_features=SEX)
    assert caught[0].filename == __file__
    assert not model.bound_met_
    with pytest.warns(
        BoundNotMetWarning, match=r"confidence=0.95.* within 0\.\d+ from [\d,]+ people held out"
    ):
        kind(max_mcdp=0.01, confidence=0.95, **options).fit(X, Y, sensitive_features=SEX)


def test_grid_search_with_the_scorer_and_routing() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            LocalParityLGBMClassifier(**QUICK), {"strength": [0.0, 0.5]}, scoring=lp.mcdp_scorer(), cv=2
        )
        search.fit(NUMBERS, Y, sensitive_features=SEX)
    assert search.best_params_ == {"strength": 0.5}


@both
def test_a_clone_is_unfitted_and_equal(kind: Any) -> None:
    model = kind(strength=0.7, booster_params={"max_depth": 3})
    assert clone(model).get_params() == model.get_params()


@both
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strength": -1.0}, "strength.*-1"),
        ({"strength": 0.1, "max_mcdp": 0.1}, "strength or max_mcdp.*0.1"),
        ({"confidence": 0.9}, "confidence=0.9 needs max_mcdp"),
        (
            {"max_mcdp": 0.1, "validation_fraction": 1.0},
            "validation_fraction.*1",
        ),
        ({"n_estimators": 0}, "n_estimators.*0"),
        ({"patience": 0}, "patience.*0"),
        (
            {"booster_params": {"objective": "rank"}},
            "booster_params.*'objective'",
        ),
    ],
)
def test_parameters_that_are_refused(kind: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**QUICK | options).fit(X, Y, sensitive_features=SEX)


@both
def test_columns_that_are_refused(kind: Any) -> None:
    infinite = X.assign(age=X["age"].astype(float).where(X.index != 3, np.inf))
    with pytest.raises(ValueError, match=r"column 'age' of X.*inf at row 3"):
        kind(**QUICK).fit(infinite, Y, sensitive_features=SEX)
    model = kind(**QUICK).fit(X, Y, sensitive_features=SEX)
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(NUMBERS)
    with pytest.raises(ValueError, match=r"sensitive_features.*None"):
        kind(**QUICK).fit(X, Y)


@both
def test_a_group_without_the_label_that_is_compared(kind: Any) -> None:
    groups = np.where(Y == 1, SEX, np.where(np.arange(3000) % 2, SEX, "Other"))
    with pytest.raises(ValueError, match="group 'Other' has no rows with y_true = 1"):
        kind(criterion="equal_opportunity", **QUICK).fit(X, Y, sensitive_features=groups)


@both
def test_saving_and_loading(kind: Any, tmp_path: Path) -> None:
    model = kind(**QUICK).fit(X, np.where(Y == 1, "yes", "no"), sensitive_features=SEX)
    model.save(tmp_path / "model")
    again = lp.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.get_params() == model.get_params()
    assert again.n_estimators_ == 30
    assert data_file(tmp_path / "model").name == "model.trees"
    with pytest.raises(ValueError, match="feature names"):
        again.predict_proba(X.rename(columns={"age": "years"}))


def test_folders_that_are_not_a_whole_model(tmp_path: Path) -> None:
    LocalParityXGBClassifier(**QUICK).fit(X, Y, sensitive_features=SEX).save(tmp_path)
    trees, description = data_file(tmp_path), tmp_path / "model.json"
    whole, described = trees.read_bytes(), description.read_text()
    for damage, message in (
        (lambda: trees.write_bytes(whole[:-1]), "is damaged: the sha256 of model.trees is"),
        (lambda: trees.unlink(), "model.trees cannot be read"),
        (lambda: description.write_text(described[:40]), "model.json is damaged"),
        (lambda: description.unlink(), "there is no model in .*: model.json cannot be read"),
        (
            lambda: reword(tmp_path, '"n_features"', '"length"'),
            "model.json is damaged: 'n_features' is missing",
        ),
    ):
        trees.write_bytes(whole)
        description.write_text(described)
        damage()
        with pytest.raises(ValueError, match=message):
            lp.load(tmp_path)


def test_numbers_of_numpy_are_saved_as_pythons(tmp_path: Path) -> None:
    options = QUICK | {"n_estimators": np.int64(5), "random_state": np.int64(3)}
    model = LocalParityXGBClassifier(booster_params={"max_depth": np.int64(3)}, **options)
    model.fit(X, Y, sensitive_features=SEX).save(tmp_path)
    loaded = lp.load(tmp_path)
    assert (loaded.n_estimators, loaded.random_state, loaded.booster_params) == (5, 3, {"max_depth": 3})


def test_parameters_that_json_does_not_know(tmp_path: Path) -> None:
    model = LocalParityXGBClassifier(booster_params={"max_depth": 3}, **QUICK)
    model.fit(X, Y, sensitive_features=SEX).set_params(booster_params={"callback": print})
    with pytest.raises(ValueError, match=r"booster_params has .*, which cannot be written as JSON"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_boosting_does_not_need_torch() -> None:
    code = (
        "import sys, localparity as lp; c = lp.datasets.make_census(500, random_state=0, as_frame=False);"
        "import numpy as np; X = np.column_stack([c.data['age'], c.data['hours_per_week']]);"
        "lp.models.LocalParityLGBMClassifier(n_estimators=2)"
        ".fit(X, c.target, sensitive_features=c.sensitive_features); print('torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
