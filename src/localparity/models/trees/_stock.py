"""LightGBM's trees for tables as people have them: numbers and texts, some of them missing."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted

from localparity._types import ArrayLike, FloatArray, Seed
from localparity._validation import as_count, check_indexes
from localparity.models._encoding import TableFeatures
from localparity.models._folder import Files, FolderMixin, dump_classes, restore_classes
from localparity.models._rows import as_classes, as_seed
from localparity.models.trees._boosters import (
    OBJECTIVE_NAMES,
    lightgbm,
    lightgbm_dataset,
    lightgbm_parameters,
    parse_lightgbm,
)
from localparity.models.trees._classifiers import check_booster_params

_FILENAME = "model.trees"


class TableClassifier(TableFeatures, FolderMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """LightGBM's trees for any number of classes, on tables as people have them.

    Columns of a data frame may be numbers or texts, and values may be missing: a missing text is a category
    of its own, and the trees learn which way a missing number goes. What `fit` did not see counts as unknown,
    with an `UnseenValuesWarning`. It knows nothing of groups: other models build on it.

    Parameters
    ----------
    n_estimators : int
        The number of trees, of each class where there are more than two.
    learning_rate : float
        The share of each tree's step that is taken.
    num_leaves : int
        The most leaves of a tree.
    booster_params : dict, optional
        Further parameters of LightGBM, such as ``{"min_data_in_leaf": 50}``.
    n_jobs : int, optional
        The number of threads; None leaves it to the library.
    random_state : int, Generator or None
        The same seed gives the same bits.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of `predict_proba`.
    booster_ : lightgbm.Booster
        The trees.
    text_features_ : list of str
        The names of the text columns.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> model = lp.models.TableClassifier(n_estimators=20, random_state=0)
    >>> model = model.fit(census.data, census.sensitive_features)
    >>> model.classes_.tolist(), model.predict_proba(census.data).shape
    (['Female', 'Male'], (2000, 2))
    """

    classes_: NDArray[Any]
    booster_: Any
    _libraries = ("lightgbm",)

    def __init__(
        self,
        n_estimators: int = 200,
        learning_rate: float = 0.05,
        num_leaves: int = 15,
        *,
        booster_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.booster_params = booster_params
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            What is to be predicted.
        sample_weight : array-like of shape (n_samples,), optional
            Weights that are not negative; a row of weight 0 counts as absent.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        rounds = as_count(self.n_estimators, "n_estimators")
        given = check_booster_params(self.booster_params, OBJECTIVE_NAMES)
        check_indexes({"X": X, "y": y, "sample_weight": sample_weight})
        rows = _num_samples(X)
        targets = as_classes(self, y, rows, multiclass=True)
        weights = _check_sample_weight(
            sample_weight, np.empty(rows), dtype=np.float64, ensure_non_negative=True
        )
        kept = np.flatnonzero(weights > 0.0)
        if kept.size < rows:
            X, targets, weights = _safe_indexing(X, kept), targets[kept], weights[kept]
        labels, objective = self._learn_targets(targets)
        features = self._learn_features(X, weights)
        common = lightgbm_parameters(as_seed(self.random_state), self.n_jobs)
        shape = {"learning_rate": self.learning_rate, "num_leaves": self.num_leaves}
        parameters = common | shape | given | objective
        training = lightgbm_dataset(self.encoder_, features, labels, weight=weights, params=parameters)
        self.booster_ = lightgbm().train(parameters, training, rounds)
        return self

    def _predict(self, X: Any) -> FloatArray:
        """Return what the trees predict, in a column for each class where there are more than two."""
        check_is_fitted(self)
        return np.asarray(self.booster_.predict(self._read_features(X)), dtype=np.float64)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features, in the columns that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        found = self._predict(X)
        return np.column_stack([1.0 - found, found]) if found.ndim == 1 else found

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features, in the columns that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        places = self.predict_proba(X).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[places]
        return chosen

    def _learn_targets(self, targets: NDArray[Any]) -> tuple[FloatArray, dict[str, Any]]:
        """Return the targets of rows with weight as LightGBM takes them, and the objective."""
        self.classes_, labels = np.unique(targets, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            found = self.classes_.tolist()
            raise ValueError(f"y must have two classes or more among weights above 0, got one class: {found}")
        several = {"objective": "multiclass", "num_class": n_classes}
        return labels.astype(np.float64), {"objective": "binary"} if n_classes == 2 else several

    def _dump(self) -> tuple[dict[str, Any], Files]:
        learned = self._dump_features() | dump_classes(self.classes_)
        return learned, {_FILENAME: str(self.booster_.model_to_string()).encode()}

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        self._restore_features(learned)
        self.booster_ = parse_lightgbm(files[_FILENAME])
        if self.booster_.num_feature() != self.n_features_in_:
            raise ValueError(
                f"the trees have {self.booster_.num_feature()} features, expected {self.n_features_in_}"
            )
        self.classes_ = restore_classes(learned)
        found = self.booster_.num_model_per_iteration()
        if self.classes_.ndim != 1 or found != (len(self.classes_) if len(self.classes_) != 2 else 1):
            raise ValueError(f"the trees are not those of the classes {learned['classes']!r}")
