"""The two models that a group-blind score is made of: of the class, and of the group."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from localparity._types import FloatArray, IntArray
from localparity.models._features import SharedTable
from localparity.models._rows import TrainingRows
from localparity.models.repair._wrapped import fit_wrapped
from localparity.models.repair.blind._features import BlindRows


class Ingredients(NamedTuple):
    """A classifier of the class, and one of the group for each label compared.

    The classifiers of the group predict codes from 0 to `n_groups` - 1.
    """

    estimator: Any
    group_estimators: tuple[Any, ...]
    codes: tuple[IntArray, ...]
    n_groups: int

    @classmethod
    def fit(
        cls, pair: tuple[Any, Any], rows: TrainingRows, labels: tuple[int | None, ...], *, weighted: bool
    ) -> Ingredients:
        """Fit copies of a pair of classifiers, that of the group among the people of each label."""
        targets = rows.classes[rows.labels.astype(np.int64)]
        estimator = fit_wrapped(pair[0], rows, targets, weighted=weighted)
        fitted = []
        for label in labels:
            among = rows if label is None else rows.take(np.flatnonzero(rows.labels == label))
            if np.unique(among.groups).size < 2:
                raise ValueError(
                    "each fold must leave rows of two groups or more to fit the group_estimator on"
                )
            fitted.append(fit_wrapped(pair[1], among, among.groups, weighted=weighted))
        codes = tuple(np.asarray(one.classes_, dtype=np.int64) for one in fitted)
        return cls(estimator, tuple(fitted), codes, len(rows.group_names))

    @classmethod
    def fitted(cls, estimator: Any, group_estimator: Any, rows: TrainingRows, n_labels: int) -> Ingredients:
        """Take fitted classifiers as they are; that of the group has the groups' names as its classes."""
        check_is_fitted(estimator)
        check_is_fitted(group_estimator)
        classes, wanted = np.asarray(estimator.classes_).tolist(), rows.classes.tolist()
        if classes != wanted:
            raise ValueError(f"estimator must predict {wanted}, got {classes}")
        names, found = list(rows.group_names), np.asarray(group_estimator.classes_).tolist()
        if set(found) != set(names):
            raise ValueError(f"group_estimator must predict {names}, got {found}")
        codes = np.array([names.index(name) for name in found])
        return cls(estimator, (group_estimator,) * n_labels, (codes,) * n_labels, len(names))

    @classmethod
    def restored(
        cls, estimator: Any, group_estimators: tuple[Any, ...], codes: list[list[int]], n_groups: int
    ) -> Ingredients:
        """Take the parts that a folder had, or raise a ValueError where they do not belong together."""
        for one, known in zip(group_estimators, codes, strict=True):
            if not set(known) <= set(range(n_groups)) or not len(one.classes_) == len(known) == len(
                set(known)
            ):
                raise ValueError(f"codes must be {len(one.classes_)} of {n_groups} groups, got {known}")
        return cls(
            estimator, group_estimators, tuple(np.array(one, dtype=np.int64) for one in codes), n_groups
        )

    def predict(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return P(y = 1 | x), and P(group | x) of shape (n_labels, n_samples, n_groups)."""
        table = X if isinstance(X, SharedTable) else SharedTable(X)
        found = self.estimator.predict_proba(table.of(self.estimator))[:, 1]
        scores = np.asarray(found, dtype=np.float64)
        probabilities = np.zeros((len(self.group_estimators), scores.size, self.n_groups))
        for label, (estimator, codes) in enumerate(zip(self.group_estimators, self.codes, strict=True)):
            probabilities[label][:, codes] = estimator.predict_proba(table.of(estimator))
        return scores, probabilities


def mean_prediction(fitted: list[Ingredients], X: Any) -> tuple[FloatArray, FloatArray]:
    """Return the means of what several pairs of models predict."""
    table = SharedTable(X)
    scores, probabilities = zip(*(one.predict(table) for one in fitted), strict=True)
    return np.mean(scores, axis=0), np.mean(probabilities, axis=0)


def blind_rows(rows: TrainingRows, scores: FloatArray, probabilities: FloatArray) -> BlindRows:
    """Return rows with their predictions, as the repair takes them."""
    return BlindRows(scores, probabilities, rows.labels.astype(np.int64), rows.groups, rows.weights)


def assign_folds(rows: TrainingRows, folds: int, seed: int) -> IntArray:
    """Return the fold of each row, at random among the people of each group and class."""
    cells = 2 * rows.groups + rows.labels.astype(np.int64)
    order = np.random.default_rng(seed).permutation(cells.size)
    order = order[np.argsort(cells[order], kind="stable")]
    found = np.empty(cells.size, dtype=np.int64)
    found[order] = np.arange(cells.size) % folds
    return found


def cross_fit(
    pair: tuple[Any, Any],
    rows: TrainingRows,
    labels: tuple[int | None, ...],
    folds: IntArray,
    *,
    weighted: bool,
) -> tuple[list[Ingredients], BlindRows]:
    """Return a pair of models for each fold, fitted without it, and what they predict for it."""
    fitted = []
    scores = np.empty(rows.labels.size)
    probabilities = np.empty((len(labels), rows.labels.size, len(rows.group_names)))
    for fold in range(int(folds.max()) + 1):
        inside = np.flatnonzero(folds == fold)
        one = Ingredients.fit(pair, rows.take(np.flatnonzero(folds != fold)), labels, weighted=weighted)
        scores[inside], probabilities[:, inside] = one.predict(rows.take(inside).features)
        fitted.append(one)
    return fitted, blind_rows(rows, scores, probabilities)
