"""A classifier whose scores are repaired until their local disparity is within a bound."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import roc_auc_score
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted

from localparity._types import ArrayLike, Criterion, FloatArray, Groups, Seed
from localparity._validation import InputError, InputWarning, as_probability, setting
from localparity.models._folder import Files, FolderMixin
from localparity.models._rows import TrainingRows, as_classes, as_seed, check_training_rows, groups_of_rows
from localparity.models.repair._base import check_wrapped, dump_parts, fit_wrapped, parse_part
from localparity.models.repair._score_repair import ScoreRepair

_ALMOST_PERFECT = 0.999
"""An area under the ROC curve that few models reach on rows that they were not trained on."""


class RepairedClassifier(FolderMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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
    validation_fraction : float, optional
        The share of the rows that is held out of training for the repair; None fits both on all rows, whose
        scores are then not those of new people.
    random_state : int, Generator or None
        The same seed holds out the same rows.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes; scores are probabilities of the second.
    estimator_ : classifier
        The fitted classifier.
    repair_ : ScoreRepair
        The fitted repair, with `maps_` and `mcdp_`.
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

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    _unsaved: ClassVar[dict[str, Any]] = {"estimator": None, "prefit": True}

    def __init__(
        self,
        estimator: Any,
        *,
        max_mcdp: float = 0.05,
        epsilon: float = 0.0,
        confidence: float | None = None,
        criterion: Criterion = "demographic_parity",
        prefit: bool = False,
        validation_fraction: float | None = 0.2,
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

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sensitive_features: Groups = None,
        sample_weight: ArrayLike | None = None,
    ) -> RepairedClassifier:
        """Fit the classifier, unless it is fitted, and the repair.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,), optional
            Two classes; with `prefit` they are needed only by the criteria that compare people by label.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row; of several columns, the combinations that occur.
        sample_weight : array-like of shape (n_samples,), optional
            Weights that are not negative.

        Returns
        -------
        RepairedClassifier
            The fitted classifier.
        """
        repair = self._check_parameters()
        (X,) = indexable(X)
        if self.prefit:
            rows = self._take_fitted(X, y, sensitive_features, sample_weight)
        else:
            rows = self._fit_estimator(X, y, sensitive_features, sample_weight)
        scores = self.estimator_.predict_proba(rows.features)[:, 1]
        labels = None if y is None else rows.labels
        if self.prefit and self.confidence is not None:
            self._warn_of_training_rows(scores, labels)
        repair.fit(
            scores,
            labels,
            sensitive_features=rows.named_groups,
            sample_weight=None if sample_weight is None else rows.weights,
        )
        self.repair_ = repair
        return self

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
        scores = self.repair_.transform(
            self.estimator_.predict_proba(X)[:, 1], sensitive_features=sensitive_features
        )
        return np.column_stack([1.0 - scores, scores])

    def predict(self, X: Any, *, sensitive_features: Groups = None) -> NDArray[Any]:
        """Return the class of each row: the second where its repaired score is above one half.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row, among those that `fit` saw.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        above = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1] > 0.5
        chosen: NDArray[Any] = self.classes_[above.astype(np.int64)]
        return chosen

    @property
    def promise_(self) -> str:
        """What holds and for whom, in a sentence."""
        return self.repair_.promise_

    @property
    def text_features_(self) -> list[str]:
        """The names of the wrapped classifier's text columns, if it knows them."""
        names: list[str] = self.estimator_.text_features_
        return names

    @property
    def n_features_in_(self) -> int:
        """The number of features of the wrapped classifier."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the wrapped classifier's features, if it knows them."""
        names: NDArray[Any] = self.estimator_.feature_names_in_
        return names

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "repair_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags

    def _check_parameters(self) -> ScoreRepair:
        """Return the repair to be fitted, or raise a ValueError for parameters that are wrong."""
        repair = ScoreRepair(
            self.max_mcdp,
            epsilon=self.epsilon,
            confidence=self.confidence,
            criterion=self.criterion,
            random_state=self.random_state,
        )
        repair._check_parameters()
        check_wrapped(estimator=self.estimator)
        if self.validation_fraction is not None:
            as_probability(self.validation_fraction, "validation_fraction")
        elif self.confidence is not None and not self.prefit:
            raise InputError(
                f"{setting(confidence=self.confidence)} needs a validation_fraction, got None: the scores of "
                "the classifier's own training rows promise nothing for new people"
            )
        return repair

    def _fit_estimator(
        self, X: Any, y: ArrayLike, sensitive_features: Groups, sample_weight: ArrayLike | None
    ) -> TrainingRows:
        """Fit the classifier, and return the rows to repair on."""
        rows = check_training_rows(self, X, y, sensitive_features, sample_weight)
        self._fitted_on = rows.describe()
        training = held_out = rows
        if self.validation_fraction is not None:
            training, held_out = rows.hold_out(self.validation_fraction, as_seed(self.random_state))
        self.estimator_ = fit_wrapped(
            self.estimator, training, training.targets, weighted=sample_weight is not None
        )
        self.classes_ = self.estimator_.classes_
        return held_out

    def _take_fitted(
        self, X: Any, y: ArrayLike | None, sensitive_features: Groups, sample_weight: ArrayLike | None
    ) -> TrainingRows:
        """Take the classifier as it is, and return the rows to repair on."""
        check_is_fitted(self.estimator)
        self.estimator_, self.classes_ = self.estimator, self.estimator.classes_
        if len(self.classes_) != 2:
            raise InputError(f"must have two classes, got {list(self.classes_)}", "estimator")
        n_rows = _num_samples(X)
        weights = _check_sample_weight(sample_weight, np.empty(n_rows), dtype=np.float64)
        labels = np.zeros(n_rows)
        if y is not None:
            labels = (as_classes(self, y, n_rows) == self.classes_[1]).astype(np.float64)
        codes, names = groups_of_rows(sensitive_features, n_rows)
        rows = TrainingRows(X, labels, codes.astype(np.int64), weights, self.classes_, names).without_copies()
        self._fitted_on = rows.describe()
        return rows

    def _warn_of_training_rows(self, scores: FloatArray, labels: FloatArray | None) -> None:
        """Warn where a fitted classifier was likely trained on the rows that a promise is made from.

        It shows in classifiers that keep how many rows they were fitted on, as nearest neighbours and forests
        with out-of-bag scores do, and in scores that separate the classes almost perfectly. Most classifiers
        show nothing; and other rows of the same number, or an easy task, raise the warning in vain.
        """
        name, fitted_rows = type(self.estimator_).__name__, _rows_fitted_on(self.estimator_)
        if fitted_rows == scores.size:
            why = f"{name} was fitted on as many rows, {fitted_rows}"
        elif labels is not None and 0 < labels.sum() < labels.size:
            area = float(roc_auc_score(labels, scores))
            if area <= _ALMOST_PERFECT:
                return
            why = f"{name} separates the two classes almost perfectly (AUC {area:.4f})"
        else:
            return
        warnings.warn(
            InputWarning(
                f"{setting(confidence=self.confidence)} promises nothing on the classifier's own training "
                f"rows, which these may be: {why}; fit the repair on rows that were held out"
            ),
            stacklevel=3,
        )

    def _dump(self) -> tuple[dict[str, Any], Files]:
        return {}, dump_parts(estimator=self.estimator_, repair=self.repair_)

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        self.estimator_, self.repair_ = parse_part(files, "estimator"), parse_part(files, "repair")
        self.estimator, self.classes_ = self.estimator_, self.estimator_.classes_
        if not isinstance(self.repair_, ScoreRepair):
            raise ValueError(f"repair must be a ScoreRepair, got a {type(self.repair_).__name__}")


def _rows_fitted_on(estimator: Any) -> int | None:
    """Return how many rows a classifier, or the last step of a pipeline, says that it was fitted on."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if hasattr(last, "n_samples_fit_"):
        return int(last.n_samples_fit_)
    if hasattr(last, "oob_decision_function_"):
        return len(last.oob_decision_function_)
    return None
