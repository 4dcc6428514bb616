"""The skeleton of every classifier that is trained at a strength, or within a bound on MCDP."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from localparity._io._sealed import Files
from localparity._progress import Forecast, Progress, progress_bar
from localparity._types import Criterion, FloatArray, Group, Seed
from localparity._validation import InputError, as_count, as_epsilon, as_probability, as_strength, setting
from localparity.models._bound import (
    Attempt,
    Bound,
    BoundNotMetWarning,
    Measured,
    accept_in_order,
    choose,
    fits_to_test,
    most_fits,
    round_up,
    search_strength,
)
from localparity.models._encoding import TableFeatures, UnseenValuesWarning, level_of_caller
from localparity.models._folder import FolderMixin, as_json, dump_classes, restore_classes, restore_groups
from localparity.models._rows import RowsClassifier, TrainingRows, as_seed


class Model(ABC):
    """A trained model; `filename` is the name of its file in a model folder."""

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
    """The number of optimiser steps, or trees, of a fit, and its learning rate."""

    steps: int
    learning_rate: float

    def shortened(self) -> Pace:
        """Return that of a short fit, whose MCDP at a strength is near that of a whole one."""
        return Pace(math.ceil(self.steps / 8), min(4.0 * self.learning_rate, max(1.0, self.learning_rate)))


class Backend(ABC):
    """Trains models of one kind on the rows of one call of `fit`, at the `pace` of a whole fit."""

    pace: Pace

    @abstractmethod
    def train(self, strength: float, pace: Pace, progress: Progress | None = None) -> Model:
        """Return the model trained at a strength; every strength starts alike.

        `progress` is called with a record of each step, or tree.
        """


class BoundedClassifier(TableFeatures, FolderMixin, RowsClassifier, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes, trained at a strength or at the one that a bound on MCDP asks for.

    A subclass has the parameters named below and says how features are encoded and which backend trains.
    """

    _model_type: ClassVar[type[Model]]
    _backend_type: ClassVar[Callable[..., Backend]]

    strength: float | None
    max_mcdp: float | None
    confidence: float | None
    epsilon: float
    criterion: Criterion
    validation_fraction: float
    patience: int | None
    random_state: Seed
    verbose: bool
    groups_: tuple[Group, ...]
    strength_: float
    trials_: dict[float, Measured]
    bound_met_: bool
    promise_: str
    model_: Any

    def _predict(self, X: Any) -> FloatArray:
        scores: FloatArray = self.model_.scores(self._read_features(X)).astype(np.float64, copy=False)
        return scores

    def _check_all(self) -> None:
        as_epsilon(self.epsilon)
        if self.max_mcdp is not None:
            Bound.of(self)
            if self.strength is not None:
                names = " or ".join(map(setting, ("strength", "max_mcdp")))
                raise InputError(f"pass {names}, not both, got {self.strength:g} and {self.max_mcdp:g}")
        elif self.confidence is not None:
            confidence = as_probability(self.confidence)
            raise InputError(f"{setting(confidence=confidence)} needs {setting('max_mcdp')}, got None")
        as_probability(self.validation_fraction, "validation_fraction")
        if self.patience is not None:
            as_count(self.patience, "patience")
        if self.max_mcdp is None:
            self._given_strength()

    def _given_strength(self) -> float:
        return as_strength(self._default_strength() if self.strength is None else self.strength)

    def _learn(self, rows: TrainingRows) -> None:
        self.classes_, self.groups_ = rows.classes, rows.group_names
        seed, fraction = as_seed(self.random_state), self.validation_fraction
        validation = tested = None
        if self.confidence is not None:
            bound = Bound.of(self)
            share = bound.share_held_out(fraction, rows.groups, rows.labels)
            rows, tested = rows.hold_out(share, seed, by_class=bound.by_class)
        rows = rows._replace(features=self._learn_features(rows.features, rows.weights))
        if tested is not None:
            with warnings.catch_warnings():
                # A rare category may occur among the people held out alone, as among new people.
                warnings.simplefilter("ignore", UnseenValuesWarning)
                tested = tested._replace(features=self._read_features(tested.features))
        if self.max_mcdp is not None or self.patience is not None:
            rows, validation = rows.hold_out(fraction, seed)
        backend = self._backend_type(self, rows, validation, seed)
        if self.max_mcdp is None:
            self.strength_ = self._given_strength()
            model = self._train(backend, self.strength_, "fit")
            self.promise_ = "Nothing is promised: the model was trained at a strength, without a bound."
        else:
            assert validation is not None
            model = self._search(backend, validation, tested)
        self.model_ = model

    @abstractmethod
    def _default_strength(self) -> float:
        """Return the strength where neither it nor a bound is given."""

    def _search(self, backend: Backend, validation: TrainingRows, tested: TrainingRows | None) -> Model:
        """Return the most accurate model within the bound, else warn and return the nearest.

        With a confidence, the search on the validation part says which models are tested and in which order.
        """
        bound = Bound.of(self)

        def train_at(strength: float, title: str, *, short: bool = False) -> Attempt:
            with fits.part(backend.pace.shortened().steps if short else backend.pace.steps):
                model = self._train(backend, strength, title, short=short)
            return Attempt(strength, bound.measure(validation, model.scores(validation.features)), model)

        def test(attempt: Attempt) -> Attempt:
            assert tested is not None
            return attempt._replace(measured=bound.measure(tested, attempt.model.scores(tested.features)))

        with Forecast(most_fits(tested=tested is not None) * backend.pace.steps, "training") as fits:
            if tested is None:
                attempts = search_strength(train_at, bound.max_mcdp)
            else:
                results = map(test, fits_to_test(train_at, bound.max_mcdp))
                accepted, refused = accept_in_order(results, lambda attempt: bound.is_met(attempt.measured))
                attempts = accepted + refused
        self.trials_ = {attempt.strength: attempt.measured for attempt in attempts}
        chosen = attempts[choose([attempt.measured for attempt in attempts], bound)]
        self.strength_, self.bound_met_ = chosen.strength, bound.is_met(chosen.measured)
        if not self.bound_met_:
            message = self._describe_failure(bound, chosen.measured)
            warnings.warn(message, BoundNotMetWarning, stacklevel=level_of_caller())
        self.promise_ = self._describe_choice(bound, chosen.measured, tested)
        model: Model = chosen.model
        return model

    def _describe_failure(self, bound: Bound, chosen: Measured) -> str:
        """Return the message for a bound that no trial met."""
        opening = f"{setting(max_mcdp=bound.max_mcdp)} was not met: "
        if bound.confidence is None:
            return (
                f"{opening}of {len(self.trials_)} strengths up to {max(self.trials_):g}, the lowest "
                f"validation MCDP is {chosen.mcdp:.4f}, at strength {self.strength_:g}; that model is kept"
            )
        return (
            f"{opening}with {setting(confidence=bound.confidence)}, the first model to be tested, of "
            f"strength {self.strength_:g}, is only known to be within {round_up(chosen.at_most):g} from "
            f"{chosen.rows:,} people held out; that model is kept"
        )

    def _describe_choice(self, bound: Bound, chosen: Measured, tested: TrainingRows | None) -> str:
        """Return what is known of the bound after the choice of a trial, and for whom."""
        if tested is None:
            relation = "within" if self.bound_met_ else "above"
            return (
                f"On the validation part {bound.measure_name} is {chosen.mcdp:.4f}, {relation} "
                f"max_mcdp={bound.max_mcdp:g}; the strength, {self.strength_:g}, was chosen out of "
                f"{len(self.trials_)} by that part, so nothing is promised for other people."
            )
        if self.bound_met_:
            return bound.promise_of_test(tested)
        known = bound._replace(max_mcdp=round_up(chosen.at_most)).promise_of_test(tested)
        return f"max_mcdp={bound.max_mcdp:g} was not met. {known}"

    def _train(self, backend: Backend, strength: float, title: str, *, short: bool = False) -> Model:
        """Return the model trained at a strength, and show how it goes."""
        pace = backend.pace.shortened() if short else backend.pace
        with progress_bar(f"{title}, strength {strength:g}", pace.steps, shown=self.verbose) as progress:
            return backend.train(strength, pace, progress)

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
        return as_json(group, "sensitive_features")
    except ValueError:
        return str(group)
