"""Classifiers that a repair wraps: checked, and fitted on some rows."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from localparity._validation import require
from localparity.models._folder import Files, FolderMixin, parse_files
from localparity.models._rows import TrainingRows

_SKOPS = "estimator.skops"
_SKLEARN_TYPES = {
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.metrics._dist_metrics.ManhattanDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
}
"""What fitted estimators of scikit-learn hold beside estimators, which skops trusts by itself."""


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

    Several of a kind are numbered. Those of scikit-learn are saved by skops.
    """
    files: Files = {}
    for name, given in parts.items():
        several = isinstance(given, list)
        for place, part in enumerate(given if several else [given]):
            found = part._dump_files() if isinstance(part, FolderMixin) else {_SKOPS: _dump(part, name)}
            folder = f"{name}/{place}" if several else name
            files |= {f"{folder}/{path}": content for path, content in found.items()}
    return files


def parse_part(files: Files, folder: str) -> Any:
    """Return the estimator whose files `dump_parts` put into a folder."""
    start = f"{folder}/"
    found = {path.removeprefix(start): files[path] for path in files if path.startswith(start)}
    return _parse(found[_SKOPS], f"{start}{_SKOPS}") if _SKOPS in found else parse_files(found)


def _dump(estimator: Any, name: str) -> bytes:
    """Return an estimator of scikit-learn in the format of skops, which holds no code."""
    skops = require("skops.io", extra="skops")
    try:
        content: bytes = skops.dumps(estimator)
        unknown = _unknown_types(content)
    except TypeError as error:
        unknown = [str(error)]
    if unknown:
        raise ValueError(
            f"{name} is a {type(estimator).__name__} with {', '.join(unknown)}, which only pickle could "
            "save; save it by other means, and repair_ alone"
        )
    return content


def _parse(content: bytes, name: str) -> Any:
    """Return the estimator that `_dump` wrote; types that it does not write are refused, and not made."""
    skops = require("skops.io", extra="skops")
    try:
        unknown = _unknown_types(content)
        if not unknown:
            return skops.loads(content, trusted=sorted(_SKLEARN_TYPES))
    except Exception as error:  # whatever skops or scikit-learn says of content that was made to harm
        raise ValueError(f"{name} cannot be read: {error}") from error
    raise ValueError(f"{name} must have types of scikit-learn alone, got {', '.join(unknown)}")


def _unknown_types(content: bytes) -> list[str]:
    skops = require("skops.io", extra="skops")
    return sorted(set(skops.get_untrusted_types(data=content)) - _SKLEARN_TYPES)
