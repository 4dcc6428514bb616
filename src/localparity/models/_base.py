"""The skeleton of every classifier that is trained at a strength, or within a bound on MCDP."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from localparity._progress import Progress, progress_bar
from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, Seed
from localparity._validation import as_count, as_epsilon, as_fraction, as_probability, as_strength
from localparity.counts import Comparison
from localparity.models._bound import (
    BoundCheck,
    BoundNotMetWarning,
    Trial,
    check_bound,
    choose,
    find_sequence,
    search_strength,
)
from localparity.models._encoding import TableFeatures, UnseenValuesWarning
from localparity.models._folder import (
    Files,
    FolderMixin,
    dump_classes,
    plain,
    restore_classes,
    restore_groups,
)
from localparity.models._rows import TrainingRows, TwoClassMixin, as_seed, check_training_rows
from localparity.models._sequence import accept_in_order

# What one kind of model does for `BoundedClassifier`: it is trained, gives scores and is stored.


class Model(ABC):
    """A trained model.

    Attributes
    ----------
    filename : str
        The name of its file in a model folder.
    """

    filename: ClassVar[str]

    @abstractmethod
    def scores(self, features: Any) -> FloatArray:
        """Return the probability of the second class for each row."""

    @abstractmethod
    def dump(self) -> tuple[dict[str, Any], bytes]:
        """Return what describes the model in JSON, and the content of its file."""

    @classmethod
    @abstractmethod
    def parse(cls, described: dict[str, Any], content: bytes) -> Self:
        """Return the model that `dump` wrote; anything else is a ValueError."""


class Pace(NamedTuple):
    """The number of optimiser steps, or trees, of a fit, and its learning rate.

    Examples
    --------
    >>> Pace(200, 0.1).shortened()
    Pace(steps=25, learning_rate=0.4)
    """

    steps: int
    learning_rate: float

    def shortened(self) -> Pace:
        """Return that of a short fit, whose MCDP at a strength is near that of a whole one."""
        return Pace(math.ceil(self.steps / 8), min(4.0 * self.learning_rate, max(1.0, self.learning_rate)))


AnyModel = TypeVar("AnyModel", bound=Model)


class Backend(ABC, Generic[AnyModel]):
    """Trains models of one kind on the rows of one call of `fit`.

    Attributes
    ----------
    pace : Pace
        That of a whole fit.
    """

    pace: Pace

    @abstractmethod
    def train(self, strength: float, pace: Pace, progress: Progress | None = None) -> AnyModel:
        """Return the model trained at a strength; every strength starts alike.

        `progress` is called with a record of each step, or tree.
        """

    def finish(self, model: AnyModel) -> AnyModel:
        """Return the model that is kept, and free what only training needs."""
        return model


class BoundedClassifier(TableFeatures, FolderMixin, TwoClassMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes, trained at a strength or at the one that a bound on MCDP asks for.

    A subclass has the parameters named below and says how features are encoded and which backend trains.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    _model_type: ClassVar[type[Model]]

    strength: float | None
    max_mcdp: float | None
    confidence: float | None
    epsilon: float
    criterion: Criterion
    validation_fraction: float
    patience: int | None
    random_state: Seed
    verbose: bool
    classes_: NDArray[Any]
    groups_: tuple[Group, ...]
    strength_: float
    trials_: list[Trial]
    bound_met_: bool
    promise_: str
    model_: Any

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Groups = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train on rows with their classes and groups.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            Two classes, of any kind that can be sorted.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row; of several columns, the combinations that occur.
        sample_weight : array-like of shape (n_samples,), optional
            Weights that are not negative; a row of weight 0 counts as absent.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        as_epsilon(self.epsilon)
        check_bound(self.strength, self.max_mcdp, self.confidence)
        fraction = as_probability(self.validation_fraction, "validation_fraction")
        if self.patience is not None:
            as_count(self.patience, "patience")
        self._check_parameters()
        strength = None
        if self.max_mcdp is None:
            strength = as_strength(self._default_strength() if self.strength is None else self.strength)
        for name in ("trials_", "bound_met_"):
            # A search for a bound in an earlier fit leaves nothing behind.
            self.__dict__.pop(name, None)
        rows = check_training_rows(self, X, y, sensitive_features, sample_weight).with_weight()
        self._fitted_on = rows.describe()
        self.classes_, self.groups_ = rows.classes, rows.group_names
        seed = as_seed(self.random_state)
        validation = tested = None
        if self.confidence is not None:
            by_class = Comparison(self.criterion).needs_labels
            rows, tested = rows.hold_out(fraction, seed, by_class=by_class)
        rows = rows._replace(features=self._learn_features(rows.features, rows.weights))
        if tested is not None:
            with warnings.catch_warnings():
                # A rare category may occur among the people held out alone, as among new people.
                warnings.simplefilter("ignore", UnseenValuesWarning)
                tested = tested._replace(features=self._read_features(tested.features))
        if self.max_mcdp is not None or self.patience is not None:
            rows, validation = rows.hold_out(fraction, seed)
        backend = self._make_backend(rows, validation, seed)
        if strength is not None:
            self.strength_, model = strength, self._train(backend, strength, "fit")
            self.promise_ = "Nothing is promised: the model was trained at a strength, without a bound."
        else:
            assert validation is not None
            model = self._search(backend, validation, tested)
        self.model_ = backend.finish(model)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features, in the columns that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            The second column is the score.
        """
        check_is_fitted(self)
        scores = self.model_.scores(self._read_features(X)).astype(np.float64, copy=False)
        return np.column_stack([1.0 - scores, scores])

    def _check_parameters(self) -> None:
        """Check the parameters that only this class has."""

    @abstractmethod
    def _default_strength(self) -> float:
        """Return the strength where neither it nor a bound is given."""

    @abstractmethod
    def _make_backend(self, rows: TrainingRows, validation: TrainingRows | None, seed: int) -> Backend[Any]:
        """Return what trains on these rows, after the parameters have been checked."""

    def _search(self, backend: Backend[Any], validation: TrainingRows, tested: TrainingRows | None) -> Model:
        """Return the most accurate model within the bound, else warn and return the nearest.

        With a confidence, the search on the validation part says which models are tested and in which order.
        """
        bound = as_fraction(self.max_mcdp, "max_mcdp")
        check = BoundCheck(validation, bound, self.epsilon, self.criterion, self.confidence)

        def train_at(strength: float, title: str, *, short: bool = False) -> tuple[Model, Trial]:
            model = self._train(backend, strength, title, short=short)
            return model, check(strength, model.scores(validation.features))

        if tested is None:
            found = search_strength(train_at, bound)
        else:
            sequence, check = find_sequence(train_at, bound), check._replace(rows=tested)
            scored = ((model, trial.strength, model.scores(tested.features)) for model, trial in sequence)
            tries = ((model, check(strength, scores)) for model, strength, scores in scored)
            accepted, refused = accept_in_order(tries, lambda tried: tried[1].met)
            found = accepted + refused
        self.trials_ = [trial for _, trial in found]
        model, chosen = found[choose(self.trials_)]
        self.strength_, self.bound_met_ = chosen.strength, chosen.met
        if not chosen.met:
            message = check.describe_failure(self.trials_, chosen)
            warnings.warn(message, BoundNotMetWarning, stacklevel=3)
        self.promise_ = check.describe(self.trials_, chosen)
        return model

    def _train(self, backend: Backend[Any], strength: float, title: str, *, short: bool = False) -> Model:
        """Return the model trained at a strength, and show how it goes."""
        pace = backend.pace.shortened() if short else backend.pace
        with progress_bar(f"{title}, strength {strength:g}", pace.steps, shown=self.verbose) as progress:
            model: Model = backend.train(strength, pace, progress)
        return model

    def _dump(self) -> tuple[dict[str, Any], Files]:
        described, content = self.model_.dump()
        learned = {
            **dump_classes(self.classes_),
            "groups": [_group_text(group) for group in self.groups_],
            "strength": self.strength_,
            "promise": self.promise_,
            "model": described,
            **self._dump_features(),
        }
        return learned, {self.model_.filename: content}

    def _restore(self, learned: dict[str, Any], files: Files) -> None:
        self.classes_ = restore_classes(learned, two=True)
        self.groups_ = restore_groups(learned["groups"])
        self.strength_, self.promise_ = as_strength(learned["strength"]), str(learned["promise"])
        self._restore_features(learned)
        self.model_ = self._model_type.parse(learned["model"], files[self._model_type.filename])


def _group_text(group: Any) -> Any:
    """Return a group as JSON has it; values that JSON does not know as their text."""
    if isinstance(group, tuple):
        return [_group_text(part) for part in group]
    try:
        return plain(group, "sensitive_features")
    except ValueError:
        return str(group)
