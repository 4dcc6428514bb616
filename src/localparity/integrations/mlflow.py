"""MLflow: an evaluator that measures local disparity, found by its entry point; needs the extra `mlflow`."""

from __future__ import annotations

import inspect
import json
import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

import numpy as np

from localparity._types import ArrayLike, FloatArray
from localparity._validation import InputError, as_choice, as_epsilon, as_fraction, require, setting
from localparity.auditing import Audit, audit
from localparity.auditing._answer import DecideBy
from localparity.auditing._document import Document
from localparity.auditing._policy import read_policy
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.metrics._within import allowed

require("mlflow", extra="mlflow")

import mlflow  # noqa: E402
from mlflow.entities import Metric, RunTag  # noqa: E402
from mlflow.models.evaluation import EvaluationResult, MetricThreshold, ModelEvaluator  # noqa: E402

__all__ = ["LocalParityEvaluator", "validation_thresholds"]

_COLUMNS = ("y_score", "sensitive_features", "control_features", "sample_weight", "cluster")
_DEFAULTS = {
    "y_score": None,
    "min_group_size": DISCLOSURE_LIMIT,
    "random_state": 0,
    "max_mcdp": None,
    "decide_by": "estimate",
    "required_groups": (),
    "not_assessed": "fail",
    "metric_prefix": "",
}
_BOUND = ("max_mcdp", "decide_by", "required_groups", "not_assessed")
_OPTIONS = {"policy"} | _DEFAULTS.keys() | inspect.signature(audit).parameters.keys() - {"y_true"}


class LocalParityEvaluator(ModelEvaluator):
    """The evaluator "localparity" of `mlflow.models.evaluate`.

    It logs MCDP at each epsilon with its interval, p-value and noise floor (``mcdp_0.05``, ``mcdp_0.05_low``,
    ``mcdp_0.05_high``, ``mcdp_0.05_p_value``, ``mcdp_0.05_noise_floor``), ``abcc`` and ``delta_dp``; the
    headline as a tag; and the page and the JSON as artifacts. An epsilon too wide for the scores has no
    metrics.

    The keys of `evaluator_config` are

    - ``sensitive_features``, required: a column of the evaluation data, a list of columns, or an array. So
      are ``control_features``, ``sample_weight`` and ``cluster``, which are optional;
    - ``y_score``: the scores, a column or an array. By default they are the model's `predict_proba` of label
      1 or, if it has none, its predictions; without a model, the predictions in the data;
    - ``max_mcdp``, ``decide_by``, ``required_groups`` and ``not_assessed``: the bound, as in `Audit.passes`.
      A tag and the page say whether it holds; `validation_thresholds` makes MLflow's validation fail if the
      number is above it;
    - ``policy``: a file that decides the groups, the question and the bound, as for ``localparity audit
      --policy``;
    - ``metric_prefix``: what the names of metrics, tags and files begin with;
    - the other arguments of `localparity.audit`. As in the command, ``min_group_size`` is 10 and
      ``random_state`` is 0 by default.

    Examples
    --------
    >>> import tempfile
    >>> import mlflow
    >>> import localparity as lp
    >>> folder = tempfile.mkdtemp()
    >>> mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    >>> experiment = mlflow.create_experiment("scores", artifact_location=f"file://{folder}/files")
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> people = census.data.assign(
    ...     sex=census.sensitive_features, income=census.target, score=census.score
    ... )
    >>> with mlflow.start_run(experiment_id=experiment):
    ...     result = mlflow.models.evaluate(
    ...         data=people,
    ...         predictions="score",
    ...         targets="income",
    ...         model_type="classifier",
    ...         evaluators="localparity",
    ...         evaluator_config={"sensitive_features": "sex", "epsilons": [0.05]},
    ...     )
    >>> round(result.metrics["mcdp_0.05"], 3)
    0.266
    """

    @classmethod
    def can_evaluate(cls, *, evaluator_config: Mapping[str, Any], **_: Any) -> bool:
        """Return whether the configuration names the groups; MLflow asks every evaluator that it finds.

        Parameters
        ----------
        evaluator_config : mapping
            The options. Others of this evaluator without ``sensitive_features`` are an error.
        **_
            What else MLflow says of the evaluation.

        Returns
        -------
        bool
        """
        if evaluator_config.keys() & {"sensitive_features", "policy"}:
            return True
        others = sorted(evaluator_config.keys() & _OPTIONS - {"metric_prefix"})
        if others:
            raise InputError(
                f"must have {setting('sensitive_features')}, got {', '.join(others)} only", "evaluator_config"
            )
        return False

    def evaluate(
        self,
        *,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any],
        model: Any = None,
        predictions: str | None = None,
        model_id: str | None = None,
        **_: Any,
    ) -> EvaluationResult:
        """Audit the scores and log what is found; `mlflow.models.evaluate` calls this.

        Parameters
        ----------
        dataset : EvaluationDataset
            The features, the labels and, without a model, the scores.
        run_id : str
            The run to log to.
        evaluator_config : mapping
            The options.
        model : PyFuncModel, optional
            The model.
        predictions : str, optional
            The column of the model's output that has the scores.
        model_id : str, optional
            The logged model that the metrics are of.
        **_
            What else MLflow hands to evaluators.

        Returns
        -------
        EvaluationResult
        """
        options = _options(evaluator_config, dataset.features_data)
        prefix, y_score = options.pop("metric_prefix"), options.pop("y_score")
        bound = {name: options.pop(name) for name in _BOUND}
        if y_score is None:
            y_score = _scores(dataset, model, predictions)
        audited = audit(dataset.labels_data, y_score, **options)
        document = Document(audits={"scores": audited}, min_group_size=options["min_group_size"], **bound)
        now = int(1000 * time.time())
        metrics = {f"{prefix}{name}": value for name, value in _metrics(audited).items()}
        about = {"model_id": model_id, "dataset_name": dataset.name, "dataset_digest": dataset.digest}
        mlflow.MlflowClient().log_batch(
            run_id,
            metrics=[Metric(name, value, now, 0, **about) for name, value in metrics.items()],
            tags=[RunTag(f"localparity.{prefix}{name}", text) for name, text in _tags(document).items()],
        )
        artifacts = _log_files(document, run_id, prefix)
        return EvaluationResult(metrics=metrics, artifacts=artifacts, run_id=run_id)


def validation_thresholds(
    max_mcdp: float, *, epsilon: float = 0.0, decide_by: DecideBy = "estimate", metric_prefix: str = ""
) -> dict[str, MetricThreshold]:
    """A bound in the form that `mlflow.validate_evaluation_results` takes.

    Validation fails where `Audit.passes` returns False, where no windows of this epsilon fit into the scores,
    and where the epsilon was not evaluated.

    Parameters
    ----------
    max_mcdp : float
        The most that MCDP may be, a fraction in [0, 1].
    epsilon : float
        One of the epsilons that were evaluated.
    decide_by : str
        What is compared with the bound: "estimate", "upper" or "lower", as in `Audit.passes`.
    metric_prefix : str
        The ``metric_prefix`` of the evaluation.

    Returns
    -------
    dict
        The threshold by the name of its metric.

    Examples
    --------
    >>> thresholds = validation_thresholds(0.1, epsilon=0.05, decide_by="upper")
    >>> [(name, round(each.threshold, 12)) for name, each in thresholds.items()]
    [('mcdp_0.05_high', 0.1)]
    """
    ends = {"estimate": "", "upper": "_high", "lower": "_low"}
    end = ends[as_choice(decide_by, "decide_by", get_args(DecideBy))]
    threshold = MetricThreshold(threshold=allowed(as_fraction(max_mcdp, "max_mcdp")), greater_is_better=False)
    return {f"{metric_prefix}{_metric_name(as_epsilon(epsilon))}{end}": threshold}


def _options(config: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """Every option, with the columns that are named taken from the data."""
    unknown = sorted(config.keys() - _OPTIONS)
    if unknown:
        raise InputError(
            f"has no option {unknown[0]!r}; where there are several evaluators, give the "
            "options of each under its name: {'localparity': {...}, 'default': {...}}",
            "evaluator_config",
        )
    options = {**_DEFAULTS, **_under_policy(config)}
    return options | {name: _columns(options[name], data, name) for name in _COLUMNS if name in options}


def _under_policy(config: Mapping[str, Any]) -> dict[str, Any]:
    """The options with those of a policy, which they may not contradict."""
    values = dict(config)
    path = values.pop("policy", None)
    if path is None:
        return values
    policy = read_policy(path).policy
    decided = {**asdict(policy.options()), **policy.bound}
    named = {
        "sensitive_features": list(policy.group),
        "control_features": list(policy.control),
        "sample_weight": policy.weight,
        "cluster": policy.cluster,
    }
    decided = {name: value for name, value in decided.items() if name in _OPTIONS - {"n_jobs"}}
    for name, value in values.items():
        same = tuple(value) if isinstance(value, list) else value
        if name in decided and same != decided[name]:
            raise InputError(f"contradicts {path}, which says {decided[name]!r}, got {value!r}", name)
    return {name: value for name, value in named.items() if value} | values | decided


def _columns(value: Any, data: Any, option: str) -> Any:
    """The column or columns of the data that are named, or else the value itself: an array."""
    names = list(map(str, getattr(data, "columns", ())))
    if isinstance(value, str) and value not in names:
        known = f"; its columns are {', '.join(names)}" if names else ", which has no names"
        raise InputError(f"must be a column of the data, got {value!r}{known}", option)
    if isinstance(value, str):
        return data[value]
    several = isinstance(value, list | tuple) and value and all(name in names for name in value)
    return data[list(value)] if several else value


def _scores(dataset: Any, model: Any, predictions: str | None) -> ArrayLike:
    """The scores: of the model, or those in the data where there is no model."""
    if model is None:
        if dataset.predictions_data is None:
            raise InputError(
                "must be the column of the scores where there is no model, got None", "predictions"
            )
        return dataset.predictions_data
    try:
        raw = model.get_raw_model()
    except (AttributeError, NotImplementedError):
        raw = None
    if hasattr(raw, "predict_proba"):
        return _one_column(raw.predict_proba(_inputs(dataset.features_data, model, raw)))
    output = model.predict(dataset.features_data)
    scores = _one_column(output if predictions is None else output[predictions])
    if np.isin(scores, (0, 1)).all():
        warnings.warn(
            "the model predicts only 0 and 1, so decisions are compared; to compare scores, log a model with "
            "predict_proba",
            stacklevel=2,
        )
    return scores


def _inputs(data: Any, model: Any, raw: Any) -> Any:
    """The columns that the model was fitted on, of data that may have others."""
    schema = model.metadata.get_input_schema()
    if schema is not None and schema.has_input_names():
        return data[schema.input_names()]
    names = getattr(raw, "feature_names_in_", None)
    return data if names is None or not hasattr(data, "columns") else data[list(names)]


def _one_column(output: Any) -> FloatArray:
    """The column of label 1 in what a model returns."""
    scores = np.asarray(output)
    if scores.ndim == 1:
        return scores
    if scores.ndim > 2 or scores.shape[1] > 2:
        raise ValueError(f"predictions must have one column or two, got an array of shape {scores.shape}")
    return scores[:, -1]


def _metric_name(epsilon: float) -> str:
    return f"mcdp_{epsilon!r}".removesuffix(".0")


def _metrics(audited: Audit) -> dict[str, float]:
    """The numbers of an audit by the names of their metrics."""
    metrics = {name: max(getattr(pair, name) for pair in audited.pairs) for name in ("abcc", "delta_dp")}
    for finding in audited.findings:
        if finding.too_wide:
            continue
        name, interval = _metric_name(finding.epsilon), finding.interval
        metrics |= {name: finding.mcdp, f"{name}_low": interval.low, f"{name}_high": interval.high}
        if finding.test is not None:
            metrics[f"{name}_p_value"] = finding.test.p_value
            metrics[f"{name}_noise_floor"] = finding.test.null_mean
    return metrics


def _tags(document: Document) -> dict[str, str]:
    """What was found, and whether the bound holds."""
    answer = document.answer("scores")
    if answer.bound is None:
        return {"headline": answer.headline}
    word = "pass" if answer.bound.passes else "fail"
    return {"headline": answer.headline, "bound": f"{word}: {answer.verdict}"}


def _log_files(document: Document, run_id: str, prefix: str) -> dict[str, Any]:
    """Log the page and the JSON, and return them as artifacts by their names."""
    from mlflow.models.evaluation import artifacts

    from localparity.report.page._page import render_page

    client, page, plain = mlflow.MlflowClient(), render_page(document), document.to_json()
    page_path, json_path = (f"localparity/{prefix}audit.{ending}" for ending in ("html", "json"))
    client.log_text(run_id, page, page_path)
    client.log_text(run_id, plain, json_path)
    as_page = artifacts.TextEvaluationArtifact(mlflow.get_artifact_uri(page_path), page)
    as_json = artifacts.JsonEvaluationArtifact(mlflow.get_artifact_uri(json_path), json.loads(plain))
    return {f"{prefix}audit_page": as_page, f"{prefix}audit_json": as_json}
