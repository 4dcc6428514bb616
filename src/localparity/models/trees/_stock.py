"""LightGBM's own trees for tables with texts and missing values: what group-blind models predict with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from localparity._io._sealed import Files
from localparity._types import FloatArray, Seed
from localparity._validation import as_count
from localparity.models._encoding import TableFeatures
from localparity.models._folder import FolderMixin, dump_classes, restore_classes
from localparity.models._rows import as_seed
from localparity.models.trees._boosters import (
    OBJECTIVE_NAMES,
    lightgbm,
    lightgbm_dataset,
    lightgbm_forest,
    lightgbm_parameters,
)
from localparity.models.trees._classifiers import Forest, check_booster_params, check_width
from localparity.models.trees._objective import logistic

_FILENAME = "model.trees"
_LEARNING_RATE, _LEAVES = 0.05, 15


class StockTrees(TableFeatures, FolderMixin, BaseEstimator):  # type: ignore[misc]
    """LightGBM's trees for any number of classes, fitted on rows that were checked before.

    A missing text is a category of its own, and the trees learn which way a missing number goes. What `fit`
    did not see counts as unknown, with an `UnseenValuesWarning`.
    """

    classes_: NDArray[Any]
    forest_: Forest
    _libraries = ("lightgbm",)

    def __init__(
        self,
        n_estimators: int = 200,
        *,
        booster_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.booster_params = booster_params
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: NDArray[Any], *, sample_weight: FloatArray | None = None) -> Self:
        """Grow the trees."""
        rounds = as_count(self.n_estimators, "n_estimators")
        further = check_booster_params(self.booster_params, (*OBJECTIVE_NAMES, "sigmoid"))
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        if not (weights > 0.0).all():
            indexes = np.flatnonzero(weights > 0.0)
            X, y, weights = _safe_indexing(X, indexes), y[indexes], weights[indexes]
        self.classes_, labels = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        objective = {"objective": "multiclass", "num_class": n_classes}
        if n_classes == 2:
            objective = {"objective": "binary"}
        parameters = {
            **lightgbm_parameters(as_seed(self.random_state), self.n_jobs),
            "learning_rate": _LEARNING_RATE,
            "num_leaves": _LEAVES,
            **further,
            **objective,
        }
        features, targets = self._learn_features(X, weights), labels.astype(np.float64)
        training = lightgbm_dataset(self.encoder_, features, targets, weight=weights, params=parameters)
        self.forest_ = lightgbm_forest(lightgbm().train(parameters, training, rounds))
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class."""
        check_is_fitted(self)
        from scipy.special import softmax

        margins = self.forest_.margins(self._read_features(X))
        if len(self.classes_) != 2:
            return np.asarray(softmax(margins, axis=1))
        shares = logistic(margins[:, 0])
        return np.column_stack([1.0 - shares, shares])

    def _dump(self) -> tuple[dict[str, Any], Files]:
        described, content = self.forest_.dump()
        learned = self._dump_features() | dump_classes(self.classes_)
        return {**learned, "trees": described}, {_FILENAME: content}

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        self._restore_features(learned)
        self.forest_ = Forest.parse(learned["trees"], files[_FILENAME])
        check_width(self.forest_, self.n_features_in_)
        self.classes_ = restore_classes(learned)
        expected = len(self.classes_) if len(self.classes_) != 2 else 1
        if self.classes_.ndim != 1 or self.forest_.n_outputs != expected:
            raise ValueError(f"the trees are not those of the classes {learned['classes']!r}")
