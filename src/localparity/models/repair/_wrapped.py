"""Classifiers that a repair wraps: checked, and fitted on some rows."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from localparity.models._folder import Files, FolderMixin, parse_files
from localparity.models._rows import TrainingRows


def check_wrapped(**estimators: Any) -> None:
    """Raise a ValueError for an estimator, by the name of its parameter, without probabilities."""
    for name, estimator in estimators.items():
        if estimator is not None and not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"{name} must have predict_proba, got a {type(estimator).__name__}; "
                "wrap it in sklearn.calibration.CalibratedClassifierCV"
            )


def fit_wrapped(estimator: Any, rows: TrainingRows, targets: NDArray[Any], *, weighted: bool) -> Any:
    """Return a fitted copy of an estimator; it gets the groups if its `fit` takes them."""
    options: dict[str, Any] = {}
    if has_fit_parameter(estimator, "sensitive_features"):
        options["sensitive_features"] = rows.named_groups
    if weighted:
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(f"sample_weight must be None: {type(estimator).__name__}.fit does not take it")
        options["sample_weight"] = rows.weights
    return clone(estimator).fit(rows.features, targets, **options)


def dump_parts(**parts: Any) -> Files:
    """Return the files of fitted estimators, each in a folder that has the name of its parameter.

    Several of a kind are numbered. One that is not of this library cannot be saved.
    """
    files: Files = {}
    for name, given in parts.items():
        several = isinstance(given, list)
        for place, part in enumerate(given if several else [given]):
            if not isinstance(part, FolderMixin):
                raise ValueError(
                    f"{name} is a {type(part).__name__}, which only pickle could save; save it by other "
                    "means, and repair_ alone"
                )
            folder = f"{name}/{place}" if several else name
            files |= {f"{folder}/{path}": content for path, content in part._dump_files().items()}
    return files


def parse_part(files: Files, folder: str) -> Any:
    """Return the estimator whose files `dump_parts` put into a folder."""
    start = f"{folder}/"
    return parse_files({path.removeprefix(start): files[path] for path in files if path.startswith(start)})
