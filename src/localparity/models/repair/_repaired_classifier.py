"""A classifier whose scores are repaired until their local disparity is within a bound."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted

from localparity._io._sealed import Files
from localparity._types import ArrayLike, Criterion, FloatArray, Groups, Seed
from localparity._validation import InputError, InputWarning, as_probability, setting
from localparity.models._bound import Bound
from localparity.models._rows import (
    TrainingRows,
    as_classes,
    as_row_weights,
    as_seed,
    check_training_rows,
    groups_of_rows,
)
from localparity.models.repair._base import (
    RepairingClassifier,
    check_wrapped,
    dump_parts,
    fit_wrapped,
    parse_part,
)
from localparity.models.repair._score_repair import ScoreRepair, check_labels_given
from localparity.predictions import check_group_weights

_ALMOST_PERFECT = 0.999
"""An area under the ROC curve that few models reach on rows that they were not trained on."""


class RepairedClassifier(RepairingClassifier):
    """A classifier of two classes, and a `ScoreRepair` of its scores.

    Part of the rows is held out of the classifier's training, and the repair is fitted there. The group of
    each row is needed at prediction; `GroupBlindClassifier` does without.

    Parameters
    ----------
    estimator : classifier
        Whose scores are repaired; it must have `predict_proba`.
    max_mcdp, epsilon, confidence, criterion
        The bound and what it holds for, as in `ScoreRepair`.
    prefit : bool
        Whether the estimator is fitted already and stays as it is. Pass `fit` other rows than it was fitted
        on: with a `confidence`, rows that look like those raise a warning.
    validation_fraction, random_state
        The share of the rows that is held out of training for the repair, or with a `confidence` more, up to
        half, where a bound this low needs as many; and the seed that draws it.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes; scores are probabilities of the second.
    estimator_, repair_ : classifier and ScoreRepair
        The fitted classifier, and the fitted repair with `maps_` and `mcdp_`.
    promise_ : str
        What holds and for whom, in a sentence.

    Examples
    --------
    >>> import localparity as lp
    >>> from sklearn.linear_model import LogisticRegression
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> X, sex = census.data[["age", "education_years"]], census.sensitive_features
    >>> model = lp.models.RepairedClassifier(LogisticRegression(), max_mcdp=0.05, random_state=0)
    >>> model = model.fit(X, census.target, sensitive_features=sex)
    >>> model.predict_proba(X, sensitive_features=sex).shape, model.repair_.mcdp_ <= 0.05
    ((2000, 2), True)
    """

    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}
    _unsaved: ClassVar[dict[str, Any]] = {"estimator": None, "prefit": True}
    repair_: ScoreRepair

    def __init__(
        self,
        estimator: Any,
        *,
        max_mcdp: float = 0.05,
        epsilon: float = 0.0,
        confidence: float | None = None,
        criterion: Criterion = "demographic_parity",
        prefit: bool = False,
        validation_fraction: float = 0.2,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.max_mcdp = max_mcdp
        self.epsilon = epsilon
        self.confidence = confidence
        self.criterion = criterion
        self.prefit = prefit
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def predict_proba(self, X: Any, *, sensitive_features: Groups = None) -> FloatArray:
        """Return the probability of each class after the repair.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row, among those that `fit` saw.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            The second column is the repaired score.
        """
        check_is_fitted(self)
        scores = self.repair_.transform(self._predict(X), sensitive_features=sensitive_features)
        return np.column_stack([1.0 - scores, scores])

    def predict(self, X: Any, *, sensitive_features: Groups = None) -> NDArray[Any]:
        """Return the class of each row: the second where its repaired score is above one half.

        Parameters
        ----------
        X, sensitive_features
            As in `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._classes_above_half(self.predict_proba(X, sensitive_features=sensitive_features))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags

    def _feature_reader(self) -> Any:
        return self.estimator_

    def _check_all(self) -> Bound:
        bound = Bound.of(self)
        check_wrapped(estimator=self.estimator)
        as_probability(self.validation_fraction, "validation_fraction")
        return bound

    def _as_rows(
        self, X: Any, y: ArrayLike | None, sensitive_features: Groups, sample_weight: ArrayLike | None
    ) -> TrainingRows:
        (X,) = indexable(X)
        if not self.prefit:
            return check_training_rows(self, X, y, sensitive_features, sample_weight)
        check_is_fitted(self.estimator)
        classes = self.estimator.classes_
        if len(classes) != 2:
            raise InputError(f"must have two classes, got {list(classes)}", "estimator")
        check_labels_given(self.criterion, y)
        n_rows = _num_samples(X)
        weights = as_row_weights(sample_weight, n_rows)
        labels = np.zeros(n_rows) if y is None else (as_classes(self, y, n_rows) == classes[1]).astype(float)
        codes, names = groups_of_rows(sensitive_features, n_rows)
        check_group_weights(codes, names, weights, "sample_weight")
        groups, weighted = codes.astype(np.int64), sample_weight is not None
        return TrainingRows(X, labels, groups, weights, classes, names, weighted).without_copies()

    def _learn(self, rows: TrainingRows) -> None:
        self.estimator_, held_out = self.estimator, rows
        if not self.prefit:
            share = self.validation_fraction
            if self.confidence is not None:
                share = Bound.of(self).share_held_out(share, rows.groups, rows.labels)
            training, held_out = rows.hold_out(share, as_seed(self.random_state))
            self.estimator_ = fit_wrapped(self.estimator, training)
        self.classes_ = self.estimator_.classes_
        scores = self._predict(held_out.features)
        if self.prefit and self.confidence is not None:
            self._warn_of_training_rows(scores, held_out.labels)
        self.repair_ = self._new_repair(ScoreRepair)._fit_rows(held_out, scores)

    def _predict(self, X: Any) -> FloatArray:
        """Return the score of each row before the repair."""
        scores: FloatArray = self.estimator_.predict_proba(X)[:, 1]
        return scores

    def _scores(self, rows: TrainingRows) -> FloatArray:
        return self.repair_._map(self._predict(rows.features), rows.grouping)

    def _warn_of_training_rows(self, scores: FloatArray, labels: FloatArray) -> None:
        """Warn where a fitted classifier was likely trained on the rows that a promise is made from.

        It shows in scores that separate the classes almost perfectly; most classifiers show nothing.
        """
        area = float(roc_auc_score(labels, scores)) if 0 < labels.sum() < labels.size else 0.0
        if area > _ALMOST_PERFECT:
            message = (
                f"{setting(confidence=self.confidence)} promises nothing on the classifier's own training "
                f"rows, which these may be: it separates the two classes almost perfectly (AUC {area:.4f}); "
                "fit the repair on rows that were held out"
            )
            warnings.warn(InputWarning(message), stacklevel=5)

    def _dump(self) -> tuple[dict[str, Any], Files]:
        return {}, dump_parts(estimator=self.estimator_, repair=self.repair_)

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        self.repair_ = self._restore_repair(files, ScoreRepair)
        self.estimator = self.estimator_ = parse_part(files, "estimator")
        self.classes_ = self.estimator_.classes_
