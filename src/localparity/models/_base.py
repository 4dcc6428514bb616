"""What the classifiers whose local disparity is penalised share, whatever they are made of."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from localparity._types import Criterion, FloatArray, Group
from localparity._validation import as_epsilon
from localparity.models._bound import Judge, Model, TrainAt, Trial, search_strength, tell_unmet


class PenalisedClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier of two classes, fitted at a strength, or at the one that a bound on MCDP asks for."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    max_mcdp: float | None
    max_mcdp_confidence: float | None
    epsilon: float
    criterion: Criterion
    random_state: Any
    classes_: NDArray[Any]
    groups_: tuple[Group, ...]
    strength_: float
    trials_: list[Trial]
    bound_met_: bool

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Train on rows with their classes and groups.

        Parameters
        ----------
        X : array-like or data frame
            The features.
        y : array-like
            Two classes, of any kind that can be sorted.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row; of several columns, the combinations that occur.
        sample_weight : array-like, optional
            Weights that are not negative; a row of weight 0 is as good as absent.

        Returns
        -------
        estimator
            Itself.
        """
        as_epsilon(self.epsilon)
        for name in ("trials_", "bound_met_"):
            # What a search for a bound left behind is not of this fit.
            self.__dict__.pop(name, None)
        self._fit(X, y, sensitive_features, sample_weight)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """The two classes' probabilities, one row a row; the second column is the score.

        Parameters
        ----------
        X : array-like or data frame
            The features, in the columns that `fit` had.

        Returns
        -------
        ndarray of shape (rows, 2)
        """
        check_is_fitted(self)
        scores = self._scores(X)
        return np.column_stack([1.0 - scores, scores])

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row: the second where its probability is above one half.

        Parameters
        ----------
        X : array-like or data frame
            The features, in the columns that `fit` had.

        Returns
        -------
        ndarray of shape (rows,)
        """
        above = self.predict_proba(X)[:, 1] > 0.5
        chosen: NDArray[Any] = self.classes_[above.astype(np.int64)]
        return chosen

    def save(self, folder: Any) -> None:
        """Write the fitted model to a folder, of which nothing is run when it is loaded.

        Parameters
        ----------
        folder : path
            Where to; what an earlier `save` left there is replaced.
        """
        check_is_fitted(self)
        self._save(folder)

    @classmethod
    def load(cls, folder: Any) -> Self:
        """The model that `save` wrote, ready to predict.

        Parameters
        ----------
        folder : path
            Where from; a folder that is not a whole model is a ValueError. Load trees that you trust: the
            libraries that read them can crash on such as were made to harm.

        Returns
        -------
        estimator
        """
        return cls._load(folder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @abstractmethod
    def _fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> None:
        """Check what `fit` was given, and train."""

    @abstractmethod
    def _scores(self, X: Any) -> FloatArray:
        """The probability of the second class, one a row."""

    @abstractmethod
    def _save(self, folder: Any) -> None:
        """Write the fitted model."""

    @classmethod
    @abstractmethod
    def _load(cls, folder: Any) -> Self:
        """Read a model."""

    def _seed(self) -> int:
        """The seed itself where one is given, so that a model starts as any that is made from it."""
        if isinstance(self.random_state, numbers.Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _judge(self, labels: FloatArray, groups: NDArray[np.int64], weights: FloatArray) -> Judge:
        """What holds scores of the validation part against the bound."""
        assert self.max_mcdp is not None
        asked = float(self.max_mcdp), self.max_mcdp_confidence, self.epsilon, self.criterion
        return Judge(labels, groups, weights, *asked)

    def _keep_within_bound(self, train_at: TrainAt[Model], judge: Judge) -> Model:
        """The model that a search over strengths chooses; says what it saw, and warns of a bound not met."""
        model, self.trials_, chosen = search_strength(train_at)
        trial = self.trials_[chosen]
        self.strength_, self.bound_met_ = trial.strength, trial.met
        tell_unmet(self.trials_, trial, judge, stacklevel=4)
        return model
