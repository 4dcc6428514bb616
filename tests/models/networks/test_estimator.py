"""The classifier as scikit-learn users meet it."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import localparity as lp
from estimator_checks import Supplied, assert_passes
from localparity._io._files import seal_json
from localparity.models import BoundNotMetWarning, LocalParityClassifier, UnseenValuesWarning
from localparity.models.networks import METHODS, Network, ScoredBatch
from model_folders import data_file

CENSUS = lp.datasets.make_census(1200, random_state=0)
X, Y, SEX = CENSUS.data, CENSUS.target, CENSUS.sensitive_features
QUICK: dict[str, Any] = {"steps": 30, "hidden": (16,), "batch_size": 256, "random_state": 0}


def quick(**options: Any) -> LocalParityClassifier:
    return LocalParityClassifier(**{**QUICK, **options})


class SuppliedClassifier(Supplied, LocalParityClassifier):
    pass


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks() -> None:
    # Batches of all rows, so that weights and repeated rows come to the same.
    options = {
        "hidden": (32,),
        "dropout": 0.0,
        "learning_rate": 0.01,
        "batch_size": 100_000,
        "balanced": False,
    }
    options |= {"balanced": False, "temperature": 20.0, "precision": "float64", "device": "cpu"}
    assert_passes(SuppliedClassifier(steps=60, random_state=0, **options))


def test_text_columns_and_probabilities() -> None:
    model = quick().fit(X, Y, sensitive_features=SEX)
    scores = model.predict_proba(X)
    np.testing.assert_allclose(scores.sum(axis=1), 1.0)
    assert model.groups_ == ("Female", "Male")
    assert set(model.predict(X)) <= {0, 1}
    assert model.strength_ == 0.2
    assert len(model.history_) == 30


@pytest.mark.parametrize("method", list(lp.models.networks.METHODS))
def test_the_same_seed_gives_the_same_bits(method: str) -> None:
    one, other = (quick(method=method).fit(X, Y, sensitive_features=SEX).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    different = quick(method=method, random_state=1).fit(X, Y, sensitive_features=SEX).predict_proba(X)
    assert not np.array_equal(one, different)


def test_three_groups_from_two_columns() -> None:
    age = np.where(X["age"] > 40, "old", "young")
    model = quick(strength=0.5).fit(X, Y, sensitive_features=pd.DataFrame({"sex": SEX, "age": age}))
    assert len(model.groups_) == 4


def test_names_of_classes() -> None:
    model = quick().fit(X, np.where(Y == 1, "yes", "no"), sensitive_features=SEX)
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(X)) <= {"no", "yes"}


def test_grid_search_with_the_scorer_and_routing() -> None:
    numbers = X[["age", "education_years", "hours_per_week"]]
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            make_pipeline(StandardScaler(), quick(steps=100, learning_rate=0.01)),
            {"localparityclassifier__strength": [0.0, 4.0]},
            scoring=lp.mcdp_scorer(),
            cv=2,
        )
        search.fit(numbers, Y, sensitive_features=SEX)
    assert search.best_params_ == {"localparityclassifier__strength": 4.0}


def test_a_pipeline_without_routing() -> None:
    numbers = X[["age", "education_years"]]
    pipeline = make_pipeline(StandardScaler(), quick())
    pipeline.fit(numbers, Y, localparityclassifier__sensitive_features=SEX)
    assert pipeline.predict_proba(numbers).shape == (1200, 2)


def test_a_clone_is_unfitted_and_equal() -> None:
    model = quick(strength=0.7, max_mcdp=None)
    assert clone(model).get_params() == model.get_params()


def test_balanced_batches_memory_windows_and_criteria() -> None:
    for options in (
        {"balanced": True},
        {"memory": 512},
        {"epsilon": 0.05},
        {"criterion": "equalized_odds"},
        {"patience": 1},
    ):
        model = quick(**options).fit(X, Y, sensitive_features=SEX)
        assert np.isfinite(model.predict_proba(X)).all()


def test_a_bound_is_met_by_the_most_accurate_model() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = quick(max_mcdp=0.15, steps=60).fit(X, Y, sensitive_features=SEX)
    met = {strength: trial for strength, trial in model.trials_.items() if trial.mcdp <= 0.15}
    assert model.bound_met_
    assert model.strength_ == max(met, key=lambda strength: met[strength].average_precision)
    assert len(model.trials_) <= 2
    assert model.history_[-1]["step"] == 60  # as long as any other model
    unbounded = quick(strength=0.0, steps=60).fit(X, Y, sensitive_features=SEX)
    fair, free = (
        lp.mcdp(None, fitted.predict_proba(X)[:, 1], sensitive_features=SEX) for fitted in (model, unbounded)
    )
    assert fair < free


def test_a_bound_that_cannot_be_met_is_said_plainly() -> None:
    with pytest.warns(BoundNotMetWarning, match=r"max_mcdp=0 was not met: of 3 strengths up to"):
        model = quick(max_mcdp=0.0, steps=2).fit(X, Y, sensitive_features=SEX)
    assert not model.bound_met_
    assert model.predict_proba(X).shape == (1200, 2)


def test_a_bound_with_confidence_looks_at_the_upper_end() -> None:
    with pytest.warns(BoundNotMetWarning, match=r"max_mcdp=0.05 .*confidence=0.95.* people held out"):
        model = quick(max_mcdp=0.05, confidence=0.95, steps=2).fit(X, Y, sensitive_features=SEX)
    assert all(trial.at_most > trial.mcdp for trial in model.trials_.values())


def test_saving_and_loading(tmp_path: Path) -> None:
    model = quick().fit(X, np.where(Y == 1, "yes", "no"), sensitive_features=SEX)
    model.save(tmp_path / "model")
    again = lp.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.get_params() == {**model.get_params()}
    assert data_file(tmp_path / "model").name == "model.safetensors"
    with pytest.raises(ValueError, match="feature names"):
        again.predict_proba(X.rename(columns={"age": "years"}))


def test_numbers_of_numpy_and_groups_survive_saving(tmp_path: Path) -> None:
    groups = {"sex": SEX, "old": np.where(X["age"] > 40, 1, 0)}
    model = quick(strength=np.float32(0.25), steps=np.int64(3), random_state=np.int64(0))
    model.fit(X, Y, sensitive_features=groups).save(tmp_path)
    again = lp.load(tmp_path)
    assert (again.strength, again.steps, again.random_state) == (0.25, 3, 0)
    assert again.groups_ == model.groups_
    assert again.groups_[0] == ("Female", 0)


def test_a_category_that_cannot_be_saved(tmp_path: Path) -> None:
    table = X.assign(age=pd.cut(X["age"], 3))
    model = quick().fit(table, Y, sensitive_features=SEX)
    with pytest.raises(ValueError, match=r"column 'age' has Interval\(.*, which cannot be written as JSON"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_fit_without_a_bound_forgets_the_search_for_one() -> None:
    model = quick(max_mcdp=0.9).fit(X, Y, sensitive_features=SEX)
    assert model.bound_met_
    model.set_params(max_mcdp=None, strength=0.1).fit(X, Y, sensitive_features=SEX)
    assert not hasattr(model, "bound_met_")
    assert not hasattr(model, "trials_")


def rewrite(description: Path, **changes: Any) -> None:
    described = json.loads(description.read_text()) | changes
    description.write_bytes(
        seal_json({name: value for name, value in described.items() if value is not None})
    )


def relearn(description: Path, **changes: Any) -> None:
    learned = json.loads(description.read_text())["learned"] | changes
    rewrite(description, learned={name: value for name, value in learned.items() if value is not None})


def test_folders_that_are_not_a_whole_model(tmp_path: Path) -> None:
    quick().fit(X, Y, sensitive_features=SEX).save(tmp_path)
    tensors, description = data_file(tmp_path), tmp_path / "model.json"
    whole, described = tensors.read_bytes(), description.read_text()
    for damage, message in (
        (lambda: tensors.write_bytes(whole[:-1]), "is damaged: the sha256 of model.safetensors is"),
        (lambda: tensors.unlink(), "model.safetensors cannot be read"),
        (lambda: description.write_text(described[:40]), "model.json is damaged"),
        (
            lambda: rewrite(description, format=9),
            "format.*9",
        ),
        (lambda: description.unlink(), "there is no model in .*: model.json cannot be read"),
        (lambda: rewrite(description, files=None), "model.json is damaged: 'files' is missing"),
        (lambda: relearn(description, encoder=None), "model.json is damaged: 'encoder' is missing"),
        (lambda: relearn(description, classes=[1]), r"model.json is damaged: classes.*\[1\]"),
        (
            lambda: relearn(description, model={"width": 8, "hidden": [10**12]}),
            r"model.json is damaged: hidden is \[1000000000000\]",
        ),
        (
            lambda: relearn(description, strength="high"),
            "model.json is damaged: strength.*'high'",
        ),
        (
            lambda: description.write_text("[" * 50_000),
            "model.json is damaged: .*nested",
        ),
    ):
        tensors.write_bytes(whole)
        description.write_text(described)
        damage()
        with pytest.raises(ValueError, match=message):
            lp.load(tmp_path)


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    quick(verbose=True, patience=5).fit(X, Y, sensitive_features=SEX)
    shown = capsys.readouterr().err
    assert "fit, strength" in shown
    assert "validation MCDP" in shown


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"device.*cuda"):
        quick(device="cuda").fit(X, Y, sensitive_features=SEX)


class Twice(METHODS["diffdp"]):  # type: ignore[misc]
    """A method of one's own: the difference of mean scores counts twice."""

    def penalty(self, network: Network, batch: ScoredBatch) -> torch.Tensor:
        return 2.0 * super().penalty(network, batch)


def test_a_method_of_ones_own_is_trained_without_a_change_of_the_package(tmp_path: Path) -> None:
    model = clone(quick(method=Twice, strength=0.2)).fit(X, Y, sensitive_features=SEX)
    same = quick(method="diffdp", strength=0.4).fit(X, Y, sensitive_features=SEX)
    np.testing.assert_allclose(model.predict_proba(X), same.predict_proba(X), rtol=1e-5)
    model.save(tmp_path)
    again = lp.load(tmp_path)
    assert (again.method, model.card().parameters["method"]) == ("Twice", "Twice")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match=r"method must be one of .*'Twice'"):
        again.fit(X, Y, sensitive_features=SEX)


def test_a_method_of_ones_own_keeps_to_a_bound() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundNotMetWarning)
        model = quick(method=Twice, max_mcdp=0.1).fit(X, Y, sensitive_features=SEX)
    assert len(model.trials_) > 1


def test_a_method_without_a_strength_of_its_own_needs_one() -> None:
    with pytest.raises(ValueError, match=r"strength.*method 'Twice'"):
        quick(method=Twice).fit(X, Y, sensitive_features=SEX)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method.*'magic'"),
        ({"method": StandardScaler}, "method.*StandardScaler"),
        ({"preset": "best"}, "preset.*'best'"),
        ({"strength": -1.0}, "strength.*-1"),
        ({"strength": 0.1, "max_mcdp": 0.1}, "strength or max_mcdp.*0.1"),
        ({"max_mcdp": 5}, "max_mcdp.*5"),
        ({"steps": 0}, "steps.*0"),
        ({"batch_size": 2.5}, "batch_size.*2.5"),
        ({"method": "erm", "max_mcdp": 0.1}, "max_mcdp.*method='erm'"),
        ({"confidence": 0.9}, "confidence=0.9 needs max_mcdp"),
        (
            {"max_mcdp": 0.1, "confidence": 2},
            "confidence.*2",
        ),
        ({"precision": "float8"}, "precision.*'float8'"),
        ({"schedule": "warm"}, "schedule.*'warm'"),
        ({"patience": 0}, "patience.*0"),
        ({"dropout": 1.0}, "dropout.*1"),
        ({"learning_rate": 1e30}, "diverged"),
        ({"device": "abacus"}, "device.*abacus"),
        ({"validation_fraction": 1.0}, "validation_fraction.*1"),
    ],
)
def test_parameters_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(**options).fit(X, Y, sensitive_features=SEX)


@pytest.mark.parametrize(
    ("y", "given", "message"),
    [
        (Y, {}, "sensitive_features.*None"),
        (Y, {"sensitive_features": SEX[:5]}, "sensitive_features has 5 rows, X has 1200"),
        (Y[:5], {"sensitive_features": SEX}, "y has 5 rows, X has 1200"),
        (Y, {"sensitive_features": ["a"] * 1200}, "sensitive_features.*'a'"),
        (Y * 0, {"sensitive_features": SEX}, r"y must have two classes.*\[0\]"),
        (
            Y + SEX.astype("U1").view("u4"),
            {"sensitive_features": SEX},
            "Only binary classification is supported",
        ),
        (
            Y,
            {"sensitive_features": SEX, "sample_weight": (SEX == "Male").astype(float)},
            "group 'Female' has no row of weight above 0",
        ),
        (None, {"sensitive_features": SEX}, "requires y to be passed"),
    ],
)
def test_rows_that_are_refused(y: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick().fit(X, y, **given)


def test_groups_too_small_for_a_validation_part() -> None:
    groups = SEX.astype(object)
    groups[np.flatnonzero(Y == 1)[0]] = "Other"
    with pytest.raises(ValueError, match="group 'Other' has too few rows"):
        quick(max_mcdp=0.1).fit(X, Y, sensitive_features=groups)
    groups[np.flatnonzero(Y == 1)[1]] = "Other"
    with pytest.raises(ValueError, match="group 'Other' has too few rows"):
        quick(max_mcdp=0.1, random_state=1).fit(X, Y, sensitive_features=groups)


def test_what_fit_did_not_see_is_scored_and_counted() -> None:
    model = quick().fit(X, Y, sensitive_features=SEX)
    new = X.assign(occupation="astronaut", age=X["age"].where(X.index > 4))
    with pytest.warns(UnseenValuesWarning, match=r"5 missing.*'age'.*1,200 in 1 new.*'astronaut'") as caught:
        scores = model.predict_proba(new)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert np.isfinite(scores).all()


def test_missing_values_at_fit_are_learned(tmp_path: Path) -> None:
    gappy = X.assign(occupation=X["occupation"].where(Y == 0), age=X["age"].where(X.index % 3 > 0))
    model = LocalParityClassifier("erm", steps=150, random_state=0).fit(gappy, Y, sensitive_features=SEX)
    assert average_precision_score(Y, model.predict_proba(gappy)[:, 1]) > 0.95
    model.save(tmp_path)
    np.testing.assert_array_equal(lp.load(tmp_path).predict_proba(gappy), model.predict_proba(gappy))


def test_other_columns_at_prediction() -> None:
    model = quick().fit(X, Y, sensitive_features=SEX)
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(X[["age", "occupation"]])
