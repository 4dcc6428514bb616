"""What the classifiers of boosted trees share, whatever the library."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import validate_data

from localparity._types import Criterion, FloatArray, Seed
from localparity.models._base import BoundedClassifier
from localparity.models._folder import Files
from localparity.models._rows import TrainingRows
from localparity.models.trees._backend import TreeBackend, TreeModel
from localparity.models.trees._objective import TEMPERATURE

_STRENGTH = 0.2
_TEXTS = {"object", "str", "string", "String"}
_CATEGORIES = {"category", "Categorical", "Enum"}


class BoostedClassifier(BoundedClassifier):
    """The parameters and the features of boosted trees; see `LocalParityXGBClassifier`."""

    _model_type: ClassVar[type[TreeModel]]
    _backend_type: ClassVar[type[TreeBackend]]
    model_: TreeModel
    _unsaved: ClassVar[dict[str, Any]] = {"verbose": False}

    def __init__(
        self,
        strength: float | None = None,
        *,
        max_mcdp: float | None = None,
        confidence: float | None = None,
        epsilon: float = 0.0,
        criterion: Criterion = "demographic_parity",
        temperature: float = TEMPERATURE,
        search: str | None = None,
        sharpness: float = 8.0,
        n_estimators: int = 200,
        learning_rate: float = 0.1,
        patience: int | None = None,
        validation_fraction: float = 0.2,
        n_jobs: int | None = None,
        random_state: Seed = None,
        booster_params: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.strength = strength
        self.max_mcdp = max_mcdp
        self.confidence = confidence
        self.epsilon = epsilon
        self.criterion = criterion
        self.temperature = temperature
        self.search = search
        self.sharpness = sharpness
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.booster_params = booster_params
        self.verbose = verbose

    @property
    def booster_(self) -> Any:
        """The library's own booster."""
        return self.model_.booster

    @property
    def start_(self) -> float:
        """The margin before the first tree."""
        return self.model_.start

    @property
    def n_estimators_(self) -> int:
        """How many trees there are."""
        return self.model_.n_trees()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _default_strength(self) -> float:
        return _STRENGTH

    def _make_backend(self, rows: TrainingRows, validation: TrainingRows | None, seed: int) -> TreeBackend:
        return self._backend_type(self, rows, validation, seed)

    def _learn_features(self, X: Any, weights: FloatArray) -> Any:
        features = self._check_features(X, reset=True)
        columns = X.columns if hasattr(features, "columns") else []
        self.text_features_ = [str(name) for name in columns if str(X[name].dtype) in _CATEGORIES]
        return features

    def _read_features(self, X: Any) -> Any:
        return self._check_features(X, reset=False)

    def _check_features(self, X: Any, *, reset: bool) -> Any:
        """Return a data frame as it is, for the library to read, and anything else as numbers."""
        if not (hasattr(X, "columns") and hasattr(X, "__getitem__") and len(X)):
            return validate_data(
                self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
            )
        validate_data(self, X, skip_check_array=True, reset=reset)
        for name in X.columns:
            if str(X[name].dtype) in _TEXTS:
                raise ValueError(
                    f"column {name!r} of X must be numeric or categorical, got texts; "
                    f"use X.astype({{{name!r}: 'category'}})"
                )
        return X

    def _dump(self) -> tuple[dict[str, Any], Files]:
        learned, files = super()._dump()
        return {**learned, "text_features": self.text_features_}, files

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        super()._restore(learned, files)
        self.text_features_ = list(map(str, learned["text_features"]))
