"""What repairs share: how scores are given, how classifiers are wrapped and saved, and the audit of a fit."""

from __future__ import annotations

import io
import warnings
import zipfile
from abc import abstractmethod
from dataclasses import replace
from inspect import signature
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import TransformerTags, indexable
from sklearn.utils.validation import has_fit_parameter

from localparity._io._sealed import Files
from localparity._text import group_text
from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, ScoreRange, Seed
from localparity._validation import InputError, InputWarning, as_count, as_probability, as_scores, require
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.models._bound import Bound, Measured
from localparity.models._card import ModelCard
from localparity.models._folder import FolderMixin, parse_files
from localparity.models._rows import RowsClassifier, TrainingRows, as_seed
from localparity.models.repair._dual import least_sizes
from localparity.predictions import Names

NAMES = Names("y", "scores", "sensitive_features", "sample_weight")
"""What a repair's messages call its arguments."""

_CONFIDENCE = 0.95
_SKOPS = "estimator.skops"
_SKLEARN_TYPES = {
    "numpy.dtype",
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
"""What fitted estimators of scikit-learn hold next to estimators, which skops trusts by itself.

A dtype is kept as an empty array.
"""


class RepairTransformer(FolderMixin, BaseEstimator):  # type: ignore[misc]
    """A repair of scores that are given."""

    max_mcdp: float
    epsilon: float
    confidence: float | None
    criterion: Criterion
    groups_: tuple[Group, ...]
    unrepaired_mcdp_: float
    mcdp_: float
    promise_: str

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "promise_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags


AnyRepair = TypeVar("AnyRepair", bound=RepairTransformer)


def clipped_scores(scores: ArrayLike, score_range: ScoreRange) -> FloatArray:
    """Return scores as float64, those that are beyond the range by rounding at its ends."""
    values = as_scores(scores, score_range, "scores").values
    return np.clip(values.astype(np.float64, copy=False), *score_range)


class RepairingClassifier(FolderMixin, RowsClassifier, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes whose scores a repair brings within a bound."""

    max_mcdp: float
    epsilon: float
    confidence: float | None
    criterion: Criterion
    random_state: Seed
    repair_: RepairTransformer
    _held_out: Measured | None = None

    def fit_with_audit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Groups,
        sample_weight: ArrayLike | None = None,
        test_fraction: float = 0.25,
        n_resamples: int = 1000,
    ) -> Self:
        """Fit on a part of the rows, and audit the scores of the others for the model card.

        Groups that take no part in the bound, or of whom fewer than ten people are held out, are not audited.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in `fit`.
        test_fraction : float
            The share of the rows that is held out of everything but the audit.
        n_resamples : int
            The number of resamples behind the interval and the noise floor.

        Returns
        -------
        estimator
            The fitted estimator; `card().held_out` has the audit.
        """
        bound = self._check_all()
        as_probability(test_fraction, "test_fraction")
        as_count(n_resamples, "n_resamples")
        rows, seed = self._as_rows(X, y, sensitive_features, sample_weight), as_seed(self.random_state)
        fitted, held_out = rows.with_weight().hold_out(test_fraction, seed)
        self._fit_described(fitted)
        confidence, held_out = self.confidence or _CONFIDENCE, self._audited(held_out)
        self._held_out = bound.audit(held_out, self._scores(held_out), confidence, n_resamples, seed)
        return self

    def _audited(self, held_out: TrainingRows) -> TrainingRows:
        """Return the rows of groups that take part in the bound, and of whom a card may tell."""
        names, without = held_out.group_names, getattr(self, "left_out_", ())
        labels = held_out.labels.astype(np.int64)
        sizes = least_sizes(held_out.groups, labels, self.criterion, len(names))
        part = np.array([name not in without for name in names])
        shown = part & (sizes >= DISCLOSURE_LIMIT)
        if shown.sum() < 2:
            listed = ", ".join(f"{size:,}" for size in sizes[part])
            least = f"two groups need at least {DISCLOSURE_LIMIT} people held out for the audit"
            raise InputError(f"{least}, got groups of {listed}")
        if few := [group_text(names[code]) for code in np.flatnonzero(part & ~shown)]:
            reason = f"fewer than {DISCLOSURE_LIMIT} people held out are left out of the audit"
            warnings.warn(f"groups with {reason}: {', '.join(few)}", InputWarning, stacklevel=3)
        return held_out if shown.all() else held_out.take(np.flatnonzero(shown[held_out.groups])).settled()

    def card(self) -> ModelCard:
        """Return the model card, with the audit of `fit_with_audit` if there is one."""
        return replace(super().card(), held_out=self._held_out)

    @property
    def promise_(self) -> str:
        """What holds and for whom, in a sentence."""
        return self.repair_.promise_

    @property
    def n_features_in_(self) -> int:
        """The number of features."""
        return int(self._feature_reader().n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the features, if the wrapped classifier knows them."""
        names: NDArray[Any] = self._feature_reader().feature_names_in_
        return names

    @property
    def text_features_(self) -> list[str]:
        """The names of the text columns, if the wrapped classifier knows them."""
        names: list[str] = self._feature_reader().text_features_
        return names

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "repair_")

    @abstractmethod
    def _check_all(self) -> Bound:
        """Check the parameters, and return the bound."""

    @abstractmethod
    def _feature_reader(self) -> Any:
        """Return the wrapped classifier that reads a row's features first."""

    @abstractmethod
    def _scores(self, rows: TrainingRows) -> FloatArray:
        """Return the repaired scores of checked rows."""

    def _as_rows(
        self, X: Any, y: ArrayLike | None, sensitive_features: Groups, sample_weight: ArrayLike | None
    ) -> TrainingRows:
        (X,) = indexable(X)
        return super()._as_rows(X, y, sensitive_features, sample_weight)

    def _new_repair(self, kind: type[AnyRepair]) -> AnyRepair:
        """Return a repair with the parameters that it shares with the classifier."""
        own = self.get_params(deep=False)
        return kind(**{name: own[name] for name in signature(kind).parameters if name in own})

    def _restore_repair(self, files: Files, kind: type[AnyRepair]) -> AnyRepair:
        repair = parse_part(files, "repair")
        if not isinstance(repair, kind):
            raise ValueError(f"repair must be a {kind.__name__}, got a {type(repair).__name__}")
        return repair


def check_wrapped(**estimators: Any) -> None:
    """Raise a ValueError for an estimator, by the name of its parameter, without probabilities."""
    for name, estimator in estimators.items():
        if estimator is not None and not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"must have predict_proba, got a {type(estimator).__name__}; "
                "wrap it in sklearn.calibration.CalibratedClassifierCV",
                name,
            )


def fit_wrapped(estimator: Any, rows: TrainingRows) -> Any:
    """Return a fitted copy of an estimator; others than ours get the groups if their `fit` takes them."""
    model = clone(estimator)
    if isinstance(model, RowsClassifier):
        return model._fit_rows(rows)
    options: dict[str, Any] = {}
    if has_fit_parameter(model, "sensitive_features"):
        options["sensitive_features"] = rows.named_groups
    if rows.weighted:
        if not has_fit_parameter(model, "sample_weight"):
            raise InputError(f"must be None: {type(model).__name__}.fit does not take it", "sample_weight")
        options["sample_weight"] = rows.weights
    return model.fit(rows.features, rows.targets, **options)


def dump_parts(**parts: Any) -> Files:
    """Return the files of fitted estimators, each in a folder that has the name of its parameter.

    Several of a kind are numbered. Those of scikit-learn are saved by skops.
    """
    files: Files = {}
    for name, part in parts.items():
        numbered = (
            {f"{name}/{number}": one for number, one in enumerate(part)} if isinstance(part, list) else {}
        )
        for folder, estimator in (numbered or {name: part}).items():
            ours = isinstance(estimator, FolderMixin)
            content = estimator._dump_files() if ours else {_SKOPS: _dump(estimator, name)}
            files |= {f"{folder}/{path}": data for path, data in content.items()}
    return files


def parse_part(files: Files, folder: str) -> Any:
    """Return the estimator whose files `dump_parts` put into a folder."""
    start = f"{folder}/"
    parts = {path.removeprefix(start): files[path] for path in files if path.startswith(start)}
    return _parse(parts[_SKOPS], f"{start}{_SKOPS}") if _SKOPS in parts else parse_files(parts)


def _dump(estimator: Any, name: str) -> bytes:
    """Return an estimator of scikit-learn in the format of skops, which holds no code."""
    skops = require("skops.io", extra="skops")
    try:
        content: bytes = skops.dumps(estimator)
        unknown = _unknown_types(content)
    except TypeError as error:
        unknown = [str(error)]
    if unknown:
        raise InputError(
            f"is a {type(estimator).__name__} with {', '.join(unknown)}, which only pickle could "
            "save; save it by other means, and repair_ alone",
            name,
        )
    return content


def _parse(content: bytes, name: str) -> Any:
    """Return the estimator that `_dump` wrote; types that it does not write are refused, and not made."""
    skops = require("skops.io", extra="skops")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            packed = [entry.filename for entry in archive.infolist() if entry.compress_type]
        if packed:  # skops packs nothing, and little that is packed may be very much
            raise ValueError(f"{packed[0]} must not be compressed")
        unknown = _unknown_types(content)
        if not unknown:
            return skops.loads(content, trusted=sorted(_SKLEARN_TYPES))
    except Exception as error:  # whatever skops or scikit-learn says of content that was made to harm
        raise InputError(f"cannot be read: {error}", name) from error
    raise InputError(f"must have types of scikit-learn alone, got {', '.join(unknown)}", name)


def _unknown_types(content: bytes) -> list[str]:
    skops = require("skops.io", extra="skops")
    return sorted(set(skops.get_untrusted_types(data=content)) - _SKLEARN_TYPES)
