"""Repair around a classifier, as scikit-learn users meet it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import _num_samples

import localparity as lp
from localparity.models import RepairedClassifier

CENSUS = lp.datasets.make_census(3000, random_state=0)
X, Y, SEX = CENSUS.data[["age", "education_years"]], CENSUS.target, CENSUS.sensitive_features
MALE = (SEX == "Male").astype(float)
WITH_SEX = X.assign(noisy_sex=MALE + np.random.default_rng(0).normal(0.0, 0.2, len(MALE)))


def groups_of(X: Any) -> Any:
    """A group for rows that scikit-learn's checks make up."""
    try:
        groups = (np.abs(np.asarray(X, dtype=float)[:, 0]) * 1000).astype(int) % 2
    except (TypeError, ValueError, IndexError):
        return np.arange(_num_samples(X)) % 2
    return groups


class Wrapped(RepairedClassifier):
    """Supplies the sensitive feature, which scikit-learn's checks know nothing of, from the rows themselves."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Wrapped:
        groups = groups_of(X)
        if len(set(groups)) < 2:
            groups = np.arange(len(groups)) % 2
        return super().fit(X, y, sensitive_features=groups, sample_weight=sample_weight)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Any:
        return super().predict_proba(X, sensitive_features=groups_of(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning", "ignore::RuntimeWarning")
def test_scikit_learns_own_checks() -> None:
    estimator = Wrapped(LogisticRegression(), max_mcdp=0.6, validation_fraction=0.3, random_state=0)
    why = "a row of weight 2 is held back as one, two rows as two"
    expected = {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    found = check_estimator(estimator, on_fail=None, on_skip=None, expected_failed_checks=expected)
    assert [(check["check_name"], check["exception"]) for check in found if check["status"] == "failed"] == []
    assert len(found) > 40


def test_it_fits_and_repairs_a_classifier_on_rows_held_out_of_its_training() -> None:
    model = RepairedClassifier(LogisticRegression(), max_mcdp=0.05, random_state=0)
    assert is_classifier(model)
    model.fit(WITH_SEX, Y, sensitive_features=SEX)
    assert model.repair_.unrepaired_mcdp_ > 0.05 >= model.repair_.mcdp_
    scores = model.predict_proba(WITH_SEX, sensitive_features=SEX)
    np.testing.assert_allclose(scores.sum(axis=1), 1.0)
    assert not hasattr(model, "transform")
    np.testing.assert_array_equal(model.predict(WITH_SEX, sensitive_features=SEX), scores[:, 1] > 0.5)
    raw = model.estimator_.predict_proba(WITH_SEX)[:, 1]
    assert lp.mcdp(None, scores[:, 1], sensitive_features=SEX) < 0.5 * lp.mcdp(
        None, raw, sensitive_features=SEX
    )
    again = (
        clone(model).fit(WITH_SEX, Y, sensitive_features=SEX).predict_proba(WITH_SEX, sensitive_features=SEX)
    )
    np.testing.assert_array_equal(scores, again)


def test_a_fitted_classifier_stays_as_it_is() -> None:
    base = LogisticRegression().fit(X, Y)
    model = RepairedClassifier(base, prefit=True, max_mcdp=0.02).fit(X, sensitive_features=SEX)
    assert model.estimator_ is base
    scores = model.predict_proba(X, sensitive_features=SEX)[:, 1]
    assert lp.mcdp(None, scores, sensitive_features=SEX) == model.repair_.mcdp_ <= 0.02
    frozen = RepairedClassifier(FrozenEstimator(base), max_mcdp=0.02, random_state=0)
    frozen.fit(X, Y, sensitive_features=SEX)
    np.testing.assert_array_equal(frozen.estimator_.predict_proba(X), base.predict_proba(X))


def test_names_of_classes_criteria_and_intersections() -> None:
    features = pd.DataFrame({"sex": SEX, "old": X["age"] > 45})
    words = np.where(Y == 1, "yes", "no")
    model = RepairedClassifier(
        LogisticRegression(), criterion="equal_opportunity", max_mcdp=0.2, random_state=0
    )
    model.fit(X, words, sensitive_features=features)
    assert set(model.predict(X, sensitive_features=features)) <= {"no", "yes"}
    assert set(model.repair_.maps_) == {(sex, old) for sex in ("Female", "Male") for old in (False, True)}
    assert model.repair_.mcdp_ <= 0.2
    assert list(model.feature_names_in_) == ["age", "education_years"]


def test_weights_reach_the_classifier_and_the_repair() -> None:
    weights = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    coefficients = []
    for given in (weights, np.ones(len(Y))):
        model = RepairedClassifier(LogisticRegression(), random_state=0)
        model.fit(X, Y, sensitive_features=SEX, sample_weight=given)
        coefficients.append(model.estimator_.coef_)
    assert not np.array_equal(*coefficients)
    base = LogisticRegression().fit(X, Y, sample_weight=weights)
    model = RepairedClassifier(base, prefit=True)
    model.fit(X, sensitive_features=SEX, sample_weight=weights)
    scores = model.predict_proba(X, sensitive_features=SEX)[:, 1]
    assert lp.mcdp(None, scores, sensitive_features=SEX, sample_weight=weights) <= 0.05
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.raises(ValueError, match=r"sample_weight.*Pipeline.fit"):
        RepairedClassifier(pipeline).fit(X, Y, sensitive_features=SEX, sample_weight=weights)


def test_groups_are_routed_through_a_pipeline() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), RepairedClassifier(LogisticRegression(), random_state=0))
        model.fit(WITH_SEX, Y, sensitive_features=SEX)
        scores = model.predict_proba(WITH_SEX, sensitive_features=SEX)[:, 1]
    assert lp.mcdp(None, scores, sensitive_features=SEX) < 0.1


def test_bad_input_is_told() -> None:
    fit = {"sensitive_features": SEX}
    with pytest.raises(ValueError, match=r"estimator.*LinearSVC"):
        RepairedClassifier(LinearSVC()).fit(X, Y, **fit)
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        RepairedClassifier(LogisticRegression()).fit(X, **fit)
    with pytest.raises(ValueError, match=r"y must have two classes.*\[0.0\]"):
        RepairedClassifier(LogisticRegression()).fit(X, np.zeros(len(Y)), **fit)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        RepairedClassifier(LogisticRegression()).fit(X, np.arange(len(Y)) % 3, **fit)
    with pytest.raises(ValueError, match="y has 5 rows, X has 3000"):
        RepairedClassifier(LogisticRegression()).fit(X, Y[:5], **fit)
    with pytest.raises(ValueError, match="sensitive_features has 5 rows, X has 3000"):
        RepairedClassifier(LogisticRegression()).fit(X, Y, sensitive_features=SEX[:5])
    with pytest.raises(NotFittedError, match="LogisticRegression instance is not fitted yet"):
        RepairedClassifier(LogisticRegression(), prefit=True).fit(X, **fit)
    three = LogisticRegression().fit(X, np.arange(len(Y)) % 3)
    with pytest.raises(ValueError, match=r"estimator must have two classes, got \[.*\]"):
        RepairedClassifier(three, prefit=True).fit(X, **fit)
    lonely = SEX.astype(object).copy()
    lonely[0] = "Other"
    with pytest.raises(ValueError, match="group 'Other' has too few rows"):
        RepairedClassifier(LogisticRegression()).fit(X, Y, sensitive_features=lonely)
    with pytest.raises(NotFittedError):
        RepairedClassifier(LogisticRegression()).predict(X, **fit)


def promised(estimator: Any, rows: Any, y: Any, sex: Any) -> RepairedClassifier:
    return RepairedClassifier(estimator, max_mcdp=0.3, confidence=0.9, prefit=True).fit(
        rows, y, sensitive_features=sex
    )


FEATURES = X.assign(noise=np.random.default_rng(1).normal(size=len(Y)))
FIRST, LAST = slice(0, 1400), slice(1400, None)


def test_a_promise_on_rows_that_look_like_the_training_rows_warns() -> None:
    estimator = ExtraTreesClassifier(20, random_state=0).fit(FEATURES[FIRST], Y[FIRST])
    with pytest.warns(UserWarning, match="confidence=0.9 .* separates the two classes almost perfectly"):
        promised(estimator, FEATURES[FIRST], Y[FIRST], SEX[FIRST])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        promised(estimator, FEATURES[LAST], Y[LAST], SEX[LAST])
        # Nothing is promised without a confidence, and nothing to be told of.
        RepairedClassifier(estimator, max_mcdp=0.3, prefit=True).fit(
            FEATURES[FIRST], Y[FIRST], sensitive_features=SEX[FIRST]
        )


def test_rows_without_labels_or_of_one_class_show_nothing() -> None:
    estimator = ExtraTreesClassifier(20, random_state=0).fit(FEATURES[FIRST], Y[FIRST])
    ones = np.flatnonzero(Y == 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        promised(estimator, FEATURES, None, SEX)
        promised(estimator, FEATURES.iloc[ones], Y[ones], SEX[ones])


def aware(**options: Any) -> RepairedClassifier:
    trees = lp.models.LocalParityLGBMClassifier(0.0, n_estimators=10, n_jobs=1, random_state=0)
    return RepairedClassifier(trees, max_mcdp=0.2, random_state=0, **options)


def test_rows_are_checked_encoded_and_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from localparity.models import _rows

    calls: list[str] = []
    for name in ("as_classes", "as_groups", "describe_rows", "distinct_rows"):
        original = getattr(_rows, name)

        def counted(*arguments: Any, name: str = name, original: Any = original, **options: Any) -> Any:
            calls.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(_rows, name, counted)
    census = lp.datasets.make_census(1000, random_state=0)
    aware().fit_with_audit(census.data, census.target, sensitive_features=census.sensitive_features)
    assert sorted(calls) == ["as_classes", "as_groups", "describe_rows", "distinct_rows"]


def test_a_fit_with_an_audit_holds_people_out_of_everything_else(tmp_path: Path) -> None:
    census = lp.datasets.make_census(2000, random_state=0)
    X, y, sex = census.data, census.target, np.asarray(census.sensitive_features)
    model = aware(confidence=None).fit_with_audit(X, y, sensitive_features=sex, n_resamples=99)
    card = model.card()
    assert card.held_out is not None
    assert card.fitted_on is not None
    assert (card.fitted_on.rows, card.held_out.rows) == (1500, 500)
    training, held_out = train_test_split(
        np.arange(2000), test_size=500, stratify=2 * (sex == "Male") + y, random_state=0
    )
    again = aware().fit(X.iloc[training], y[training], sensitive_features=sex[training])
    scores = again.predict_proba(X.iloc[held_out], sensitive_features=sex[held_out])[:, 1]
    assert card.held_out.mcdp == lp.mcdp(None, scores, sensitive_features=sex[held_out])
    assert card.held_out.average_precision == average_precision_score(y[held_out], scores)
    model.save(tmp_path)
    assert lp.results.ModelCard.read(tmp_path).held_out == card.held_out
    assert again.card().held_out is None
    assert model.fit(X, y, sensitive_features=sex).card().held_out is None
