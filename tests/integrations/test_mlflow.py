"""MLflow's own `evaluate` and a SQLite store, with the evaluator that it finds by its entry point."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.exceptions import MlflowException
from mlflow.models.evaluation import EvaluationResult, list_evaluators
from mlflow.models.evaluation.validation import ModelValidationFailedException
from sklearn.linear_model import LogisticRegression

import localparity as lp
from localparity.integrations.mlflow import LocalParityEvaluator, validation_thresholds
from typed_commands import run

CENSUS = lp.datasets.make_census(1200, random_state=0)
FEATURES = ["age", "education_years", "hours_per_week"]
X = CENSUS.data[FEATURES].astype(float)
MODEL = LogisticRegression(max_iter=1000).fit(X, CENSUS.target)
SCORES = MODEL.predict_proba(X)[:, 1]
PEOPLE = X.assign(sex=CENSUS.sensitive_features, income=CENSUS.target, score=SCORES)
COLUMNS = PEOPLE.drop(columns="score")
QUICK = {"n_resamples": 99, "epsilons": [0.0, 0.05]}
FILES = ["audit.html", "audit.json"]


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A SQLite store; its tables take MLflow seconds to make."""
    folder, before = tmp_path_factory.mktemp("mlflow"), mlflow.get_tracking_uri()
    address = f"sqlite:///{folder}/mlflow.db"
    mlflow.set_tracking_uri(address)
    mlflow.create_experiment("local disparity", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("local disparity")
    yield address
    mlflow.set_tracking_uri(before)


@pytest.fixture(scope="module")
def logged(store: str) -> str:
    """The address of a logged model that does not take the column of the groups."""
    with mlflow.start_run():
        signature = mlflow.models.infer_signature(X)
        info = mlflow.sklearn.log_model(MODEL, name="model", signature=signature, pip_requirements=[])
    return str(info.model_uri)


def evaluate(model: Any = None, data: Any = PEOPLE, **config: Any) -> EvaluationResult:
    """MLflow's evaluation with ours alone, of a model or of scores."""
    scores = {} if model is not None else {"predictions": "score"}
    given_options = {"sensitive_features": "sex", **QUICK, **config}
    with mlflow.start_run():
        return mlflow.models.evaluate(
            model,
            data,
            targets="income",
            model_type="classifier",
            evaluators="localparity",
            evaluator_config=given_options,
            **scores,
        )


def expected(**options: Any) -> lp.Audit:
    asked = {"sensitive_features": PEOPLE["sex"], "random_state": 0, **QUICK, **options}
    return lp.audit(CENSUS.target, SCORES, **asked)


def test_mlflow_finds_it() -> None:
    assert "localparity" in list_evaluators()


def test_a_logged_model_has_the_numbers_of_an_audit_of_its_scores(logged: str) -> None:
    result, audit = evaluate(logged, COLUMNS, max_mcdp=0.01), expected()
    first, second = audit.findings
    assert first.test is not None
    assert second.test is not None
    assert result.metrics == {
        "abcc": lp.abcc(None, SCORES, sensitive_features=PEOPLE["sex"]),
        "delta_dp": lp.delta_dp(None, SCORES, sensitive_features=PEOPLE["sex"]),
        "mcdp_0": lp.mcdp(None, SCORES, sensitive_features=PEOPLE["sex"]),
        "mcdp_0_low": first.interval.low,
        "mcdp_0_high": first.interval.high,
        "mcdp_0_p_value": first.test.p_value,
        "mcdp_0_noise_floor": first.test.null_mean,
        "mcdp_0.05": lp.mcdp(None, SCORES, sensitive_features=PEOPLE["sex"], epsilon=0.05),
        "mcdp_0.05_low": second.interval.low,
        "mcdp_0.05_high": second.interval.high,
        "mcdp_0.05_p_value": second.test.p_value,
        "mcdp_0.05_noise_floor": second.test.null_mean,
    }
    client, stored = mlflow.MlflowClient(), mlflow.get_run(result.run_id)
    assert stored.data.metrics == result.metrics
    assert stored.data.tags["localparity.headline"] == audit.answer.headline
    assert stored.data.tags["localparity.bound"].startswith("fail: Above the bound of ")
    assert client.get_logged_model(logged.rpartition("/")[2]).metrics
    assert [Path(file.path).name for file in client.list_artifacts(result.run_id, "localparity")] == FILES


def test_the_files_can_be_read_back_and_saved(tmp_path: Path) -> None:
    result = evaluate(max_mcdp=0.01, criterion="equalized_odds", compare="to_overall")
    plain = json.loads(mlflow.artifacts.load_text(result.artifacts["audit_json"].uri))
    (audit,) = plain["audits"]
    assert (audit["criterion"], audit["compare"]) == ("equalized_odds", "to_overall")
    assert audit["findings"][0]["mcdp"] == result.metrics["mcdp_0"]
    page = mlflow.artifacts.load_text(result.artifacts["audit_page"].uri)
    assert page == result.artifacts["audit_page"].content
    result.save(tmp_path)
    again = EvaluationResult.load(tmp_path)
    assert again.metrics == result.metrics
    assert again.artifacts["audit_json"].content == plain


def test_validation_fails_exactly_where_the_audit_and_the_command_do(tmp_path: Path) -> None:
    result, audit = evaluate(), expected()
    for finding in audit.findings:
        ends = {"estimate": finding.mcdp, "upper": finding.interval.high, "lower": finding.interval.low}
        for decide_by, at in ends.items():
            for bound in (0.0, max(at - 1e-12, 0.0), np.nextafter(at, 0.0), at, 0.9):
                asked: dict[str, Any] = {"epsilon": finding.epsilon, "decide_by": decide_by}
                passes = audit.passes(bound, **asked)
                assert validates(validation_thresholds(bound, **asked), result) == passes
    path = tmp_path / "scores.csv"
    PEOPLE[["score", "sex"]].to_csv(path, index=False)
    words = ["audit", path, "--score", "score", "--group", "sex", "--epsilon", "0,0.05", "--resamples", 99]
    high = audit.findings[0].interval.high
    for bound in (high - 1e-12, high):
        found = run(*words, "--max-mcdp", repr(float(bound)), "--decide-by", "upper")
        within = validates(validation_thresholds(bound, decide_by="upper"), result)
        assert found.returncode == (0 if within else 1)


def validates(thresholds: dict[str, Any], result: EvaluationResult) -> bool:
    try:
        mlflow.validate_evaluation_results(thresholds, result)
    except ModelValidationFailedException:
        return False
    return True


@given(epsilon=st.floats(0.0, 0.49), bound=st.floats(0.0, 1.0))
def test_every_epsilon_has_a_name_of_its_own_that_mlflow_takes(epsilon: float, bound: float) -> None:
    from mlflow.utils.validation import validate_param_and_metric_name

    ((name, threshold),) = validation_thresholds(bound, epsilon=epsilon).items()
    assert validate_param_and_metric_name(name)
    assert float(name.removeprefix("mcdp_")) == epsilon
    assert threshold.threshold == pytest.approx(bound, abs=1e-15)


def test_an_epsilon_that_the_scores_have_no_room_for_fails_validation() -> None:
    narrow = PEOPLE.assign(score=0.4 + SCORES / 5)
    result = evaluate(data=narrow, epsilons=[0.0, 0.4], score_range=(0.4, 0.6), max_mcdp=0.9)
    assert "mcdp_0.4" in result.metrics
    result = evaluate(data=narrow, epsilons=[0.0, 0.45], max_mcdp=0.9)
    assert "mcdp_0.45" not in result.metrics
    with pytest.raises(ModelValidationFailedException, match=r"mcdp_0\.45 was missing"):
        mlflow.validate_evaluation_results(validation_thresholds(0.9, epsilon=0.45), result)
    with pytest.raises(ValueError, match=r"MCDP\(0\.45\) is 0 whatever the groups"):
        evaluate(data=narrow, epsilons=[0.45], max_mcdp=0.9)


def test_beside_the_default_evaluator_the_groups_are_an_array(logged: str) -> None:
    ours = {"sensitive_features": PEOPLE["sex"], "metric_prefix": "sex_", **QUICK}
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            logged,
            PEOPLE[[*FEATURES, "income"]],
            targets="income",
            model_type="classifier",
            evaluators=["default", "localparity"],
            evaluator_config={"localparity": ours, "default": {"log_model_explainability": False}},
        )
    assert result.metrics["sex_mcdp_0"] == expected().findings[0].mcdp
    assert {"roc_auc", "sex_mcdp_0.05_high"} <= result.metrics.keys()
    assert "sex_audit_page" in result.artifacts
    assert validates(validation_thresholds(0.9, metric_prefix="sex_"), result)


def test_others_evaluations_are_left_alone() -> None:
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            data=X.assign(income=CENSUS.target, label=(SCORES > 0.5).astype(int)),
            predictions="label",
            targets="income",
            model_type="classifier",
        )
    assert "accuracy_score" in result.metrics
    assert not [name for name in result.metrics if name.startswith("mcdp")]


def test_groups_may_be_of_several_columns_and_rows_weighted() -> None:
    people = PEOPLE.assign(age_group=np.where(X["age"] < 40, "young", "old"), weight=X["age"])
    result = evaluate(data=people, sensitive_features=["sex", "age_group"], sample_weight="weight")
    options = {"sensitive_features": people[["sex", "age_group"]], "sample_weight": people["weight"]}
    assert result.metrics["mcdp_0"] == lp.mcdp(None, SCORES, **options)


def proba(data: Any) -> Any:
    return MODEL.predict_proba(data[FEATURES])


def score_frame(data: Any) -> Any:
    import pandas as pd

    return pd.DataFrame({"label": MODEL.predict(data[FEATURES]), "score": proba(data)[:, 1]})


@pytest.mark.parametrize(
    ("model", "options"), [(proba, {}), (score_frame, {"predictions": "score"}), (None, {})]
)
def test_scores_come_from_functions_and_arrays_too(
    model: Callable[..., Any] | None, options: dict[str, Any]
) -> None:
    config = {"sensitive_features": "sex", **QUICK} | ({} if model else {"y_score": SCORES})
    scored = {"predictions": "income"} if model is None else options
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            model,
            COLUMNS if model else PEOPLE.assign(label=0),
            targets="income" if model else "label",
            model_type="classifier",
            evaluators="localparity",
            evaluator_config=config,
            **scored,
        )
    assert result.metrics["mcdp_0"] == expected().findings[0].mcdp


def test_decisions_are_warned_of() -> None:
    # Not `pytest.warns`, which would raise what MLflow warns of.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate(lambda data: MODEL.predict(data[FEATURES]), COLUMNS)
    assert any("predicts only 0 and 1" in str(warning.message) for warning in caught)


def test_three_classes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one column or two, got an array of shape \(1200, 3\)"):
        evaluate(lambda data: np.zeros((len(data), 3)), COLUMNS)


def test_a_policy_decides_the_groups_the_question_and_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "localparity.toml"
    path.write_text('group = "sex"\nepsilons = [0, 0.05]\nn_resamples = 99\nmax_mcdp = 0.1\n')
    config = {"policy": str(path)}
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(
            data=PEOPLE,
            predictions="score",
            targets="income",
            model_type="classifier",
            evaluators="localparity",
            evaluator_config=config,
        )
    found = expected(min_group_size=10).findings[0]
    assert result.metrics["mcdp_0"] == found.mcdp
    assert mlflow.get_run(run.info.run_id).data.tags["localparity.bound"].startswith("fail: Above the bound")
    assert evaluate(**config).metrics["mcdp_0"] == found.mcdp  # which says the same
    with pytest.raises(ValueError, match=r"max_mcdp contradicts .*localparity.toml, which says 0.1, got 0.5"):
        evaluate(**config, max_mcdp=0.5)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"epsilon": [0.1]}, "no option 'epsilon'"),
        ({"sensitive_features": "gender"}, "column of the data, got 'gender'; its columns are age,"),
        ({"epsilons": [-1.0]}, "epsilons must be .* got -1"),
        ({"decide_by": "mean", "max_mcdp": 0.1}, "decide_by must be .* got 'mean'"),
    ],
)
def test_a_wrong_option_is_named(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(**config)


def test_a_bound_without_groups_is_an_error_and_not_ignored() -> None:
    with pytest.raises(ValueError, match="must have sensitive_features, got max_mcdp only"):
        LocalParityEvaluator.can_evaluate(model_type="classifier", evaluator_config={"max_mcdp": 0.1})
    with pytest.raises(MlflowException, match="could not be evaluated by any"), mlflow.start_run():
        mlflow.models.evaluate(
            data=PEOPLE,
            predictions="score",
            targets="income",
            model_type="classifier",
            evaluators="localparity",
        )


def test_groups_of_few_people_are_left_out_as_by_the_command() -> None:
    few = PEOPLE.assign(sex=["x"] * 9 + PEOPLE["sex"].tolist()[9:])
    result = evaluate(data=few)
    page = result.artifacts["audit_page"].content
    assert "x (fewer than 10)" in page
    assert result.metrics["mcdp_0"] == lp.mcdp(
        None, SCORES[9:], sensitive_features=PEOPLE["sex"].tolist()[9:]
    )
