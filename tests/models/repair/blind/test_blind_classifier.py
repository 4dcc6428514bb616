"""Group-blind repair around classifiers, as scikit-learn users meet it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import localparity as lp
from estimator_checks import Supplied, assert_passes
from localparity._validation import InputError, InputWarning
from localparity.models import GroupBlindClassifier
from localparity.models._encoding import SharedTable
from localparity.models.trees._stock import StockModel

CENSUS = lp.datasets.make_census(2000, random_state=0)
TABLE, Y, SEX = CENSUS.data, CENSUS.target, CENSUS.sensitive_features
X = TABLE.select_dtypes("number").assign(trades=(TABLE["occupation"] == "trades").astype(float))
PLAIN = make_pipeline(StandardScaler(), LogisticRegression())
SMALL: Any = {"n_estimators": 10, "random_state": 0}


def blind(**options: Any) -> GroupBlindClassifier:
    given = {"max_mcdp": 0.1, "cv": 3, "random_state": 0, **options}
    return GroupBlindClassifier(PLAIN, PLAIN, **given)


def trees(**options: Any) -> GroupBlindClassifier:
    given = {"max_mcdp": 0.15, "cv": 2, "random_state": 0, **options}
    return GroupBlindClassifier(StockModel(**SMALL), StockModel(**SMALL), **given)


class Blind(Supplied, GroupBlindClassifier):
    """Supplies the sensitive feature from the rows."""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning", "ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_own_checks() -> None:
    estimator = Blind(
        LogisticRegression(), LogisticRegression(), max_mcdp=1.0, min_group_size=1, cv=2, random_state=0
    )
    why = "a row of weight 2 is in one fold, two rows may be in two"
    known = {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    assert_passes(estimator, known)


def test_it_is_blind_and_within_the_bound() -> None:
    model = blind()
    assert is_classifier(model)
    model.fit(X, Y, sensitive_features=SEX)
    assert model.repair_.unrepaired_mcdp_ > 0.2 > 0.1 >= model.mcdp_ == model.repair_.mcdp_
    assert len(model.predictors_.estimators) == 3
    assert "2,000 people fitted on" in model.promise_
    scores = model.predict_proba(X)
    np.testing.assert_allclose(scores.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), scores[:, 1] > 0.5)
    assert lp.mcdp(None, scores[:, 1], sensitive_features=SEX) < 0.14
    np.testing.assert_allclose(model.predict_proba(X[:7]), scores[:7], rtol=1e-12)  # BLAS rounds by shape
    again = clone(model).fit(X, Y, sensitive_features=SEX)
    np.testing.assert_array_equal(again.predict_proba(X), scores)
    assert list(model.feature_names_in_) == list(X.columns)
    assert model.n_features_in_ == 4


@pytest.mark.parametrize("criterion", ["equal_opportunity", "predictive_equality", "equalized_odds"])
def test_criteria_by_label_have_a_group_estimator_each(criterion: Any) -> None:
    words = np.where(Y == 1, "yes", "no")
    model = blind(criterion=criterion).fit(X, words, sensitive_features=SEX)
    assert len(model.predictors_.group_estimators) == (2 if criterion == "equalized_odds" else 1)
    assert model.mcdp_ <= 0.1
    assert set(model.predict(X)) <= {"no", "yes"}
    assert abs(model.predict_proba(X)[:, 1].mean() - Y.mean()) < 0.02


def test_intersections_and_weights() -> None:
    groups = pd.DataFrame({"sex": SEX, "old": TABLE["age"] > 45})
    weights = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    model = GroupBlindClassifier(
        LogisticRegression(max_iter=5000),
        LogisticRegression(max_iter=5000),
        max_mcdp=0.15,
        cv=3,
        random_state=0,
    )
    model.fit(X, Y, sensitive_features=groups, sample_weight=weights)
    assert set(model.groups_) == {(sex, old) for sex in ("Female", "Male") for old in (False, True)}
    assert model.mcdp_ <= 0.15
    with pytest.raises(ValueError, match=r"sample_weight.*Pipeline.fit"):
        blind().fit(X, Y, sensitive_features=SEX, sample_weight=weights)


def test_a_confidence_is_chosen_on_rows_held_out() -> None:
    people = lp.datasets.make_census(6000, random_state=1)
    numbers = people.data.select_dtypes("number").assign(trades=people.data["occupation"] == "trades")
    model = blind(max_mcdp=0.2, confidence=0.9)
    model.fit(numbers, people.target, sensitive_features=people.sensitive_features)
    assert model.mcdp_ < 0.2
    assert "With probability 0.9" in model.promise_
    with pytest.raises(ValueError, match=r"confidence=0.9.*held-out groups of \d+, \d+; .*more rows"):
        blind(max_mcdp=0.04, confidence=0.9).fit(X, Y, sensitive_features=SEX)


def test_groups_are_routed_through_searches_and_pipelines() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            GroupBlindClassifier(LogisticRegression(), LogisticRegression(), cv=2, random_state=0),
            {"max_mcdp": [0.1, 0.2]},
            scoring={"mcdp": lp.mcdp_scorer(), "precision": "average_precision"},
            refit="precision",
            cv=2,
        )
        pipeline = make_pipeline(StandardScaler(), search)
        pipeline.fit(X, Y, sensitive_features=SEX)
        assert pipeline.predict_proba(X).shape == (2000, 2)
    found = search if hasattr(search, "cv_results_") else pipeline[-1]
    strict, loose = found.cv_results_["mean_test_mcdp"]
    assert strict > -0.2
    assert loose < strict


def test_tables_by_default(tmp_path: Path) -> None:
    """Texts and missing values, as people have them."""
    table = TABLE.copy()
    table.loc[::50, "hours_per_week"] = np.nan
    model = GroupBlindClassifier(max_mcdp=0.25, cv=2, random_state=0)
    model.fit(table, Y, sensitive_features=SEX)
    assert model.text_features_ == ["occupation"]
    assert model.mcdp_ <= 0.25
    assert model.repair_.max_mcdp <= 0.25
    scores = model.predict_proba(table)[:, 1]
    assert average_precision_score(Y, scores) > 1.5 * Y.mean()
    model.save(tmp_path)
    again = lp.load(tmp_path)
    np.testing.assert_array_equal(again.predict_proba(table)[:, 1], scores)
    assert again.promise_ == model.promise_


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"criterion": "equalized_odds"},
        {"confidence": 0.5, "max_mcdp": 0.3},
    ],
)
def test_load_brings_back_the_same_bits(options: dict[str, Any], tmp_path: Path) -> None:
    model = trees(**options).fit(TABLE, np.where(Y == 1, "yes", "no"), sensitive_features=SEX)
    model.save(tmp_path)
    again = lp.load(tmp_path)
    assert isinstance(again, GroupBlindClassifier)
    np.testing.assert_array_equal(again.predict_proba(TABLE), model.predict_proba(TABLE))
    np.testing.assert_array_equal(again.predict(TABLE), model.predict(TABLE))
    for name in ("groups_", "left_out_", "mcdp_", "promise_", "text_features_"):
        assert getattr(again, name) == getattr(model, name)
    next(tmp_path.glob("data-*/repair/model.json")).write_text("{}")
    with pytest.raises(ValueError, match=r"model.json is damaged: the sha256 of .*repair/model.json"):
        lp.load(tmp_path)


def test_load_brings_back_pipelines_of_scikit_learn(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    model = blind().fit(X, Y, sensitive_features=SEX)
    model.save(tmp_path)
    np.testing.assert_array_equal(lp.load(tmp_path).predict_proba(X), model.predict_proba(X))


def test_bad_input_is_told() -> None:
    fit: Any = {"sensitive_features": SEX}
    with pytest.raises(ValueError, match=r"estimator.*LinearSVC"):
        GroupBlindClassifier(LinearSVC(), PLAIN).fit(X, Y, **fit)
    with pytest.raises(ValueError, match=r"group_estimator.*LinearSVC"):
        GroupBlindClassifier(PLAIN, LinearSVC()).fit(X, Y, **fit)
    for cv in (1, 0, 2.5, "five"):
        with pytest.raises((ValueError, TypeError), match=r"cv must be"):
            blind(cv=cv).fit(X, Y, **fit)
    with pytest.raises(ValueError, match=r"y must have two classes"):
        blind().fit(X, np.zeros(len(Y)), **fit)
    with pytest.raises(ValueError, match=r"sensitive_features has 5 rows, X has 2000"):
        blind().fit(X, Y, sensitive_features=SEX[:5])
    with pytest.raises(ValueError, match=r"max_mcdp=0 is out of reach.*group-aware"):
        blind(max_mcdp=0.0).fit(X, Y, **fit)
    with pytest.raises(NotFittedError):
        blind().predict(X)


def test_a_group_absent_from_a_fold() -> None:
    lonely = SEX.astype(object).copy()
    lonely[:2] = "Other"
    model = blind(cv=5).fit(X, Y, sensitive_features=lonely)
    assert model.left_out_ == ("Other",)
    assert model.predict_proba(X).shape == (2000, 2)
    few = np.where(Y == 1, SEX, "Female")
    few[np.flatnonzero(Y == 0)[0]] = "Male"
    with pytest.raises(ValueError, match=r"two groups"):
        blind(criterion="predictive_equality", min_group_size=1, cv=2).fit(X, Y, sensitive_features=few)


def test_models_that_learned_the_same_of_a_table_read_it_once() -> None:
    model = trees().fit(TABLE, Y, sensitive_features=SEX)
    table = SharedTable(TABLE)
    of_class, of_group = model.predictors_.estimators[0], model.predictors_.group_estimators[0][0]
    assert table.features_for(of_class) is table.features_for(of_group)
    np.testing.assert_array_equal(of_group.predict_proba(TABLE), of_group.predict_proba(table))
    assert table.of(PLAIN) is TABLE


@pytest.mark.parametrize(
    ("size", "least", "warned"),
    [(16, 30, False), (28, 5, True), (60, 30, False)],
    ids=["no part", "few", "enough"],
)
def test_an_audit_tells_of_no_group_without_part_or_with_few_people(
    size: int, least: int, warned: bool
) -> None:
    groups = np.where(np.arange(2000) < size, "Other", np.asarray(SEX))
    model = blind(max_mcdp=0.5, min_group_size=least)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit_with_audit(X, Y, sensitive_features=groups, n_resamples=20)
    told = [str(warning.message) for warning in caught if issubclass(warning.category, InputWarning)]
    assert any("fewer than 10 people held out" in text and "Other" in text for text in told) == warned
    audited = model.card().held_out
    assert audited is not None
    assert (audited.rows == 500) == (size == 60)


def test_an_audit_of_fewer_than_two_groups_is_refused() -> None:
    groups = np.where(np.arange(2000) < 30, "Other", "most")
    with pytest.raises(InputError, match="two groups need at least 10 people held out"):
        blind(max_mcdp=0.5, min_group_size=5).fit_with_audit(X, Y, sensitive_features=groups)
