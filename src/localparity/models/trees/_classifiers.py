"""What the classifiers of boosted trees share, whatever the library."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from localparity._progress import Progress
from localparity._types import Criterion, FloatArray, Seed
from localparity._validation import InputError, as_count, as_number
from localparity.metrics import mcdp
from localparity.models._base import Backend, BoundedClassifier, Model, Pace
from localparity.models._encoding import CategoryEncoder
from localparity.models._rows import TrainingRows
from localparity.models.trees._objective import TEMPERATURE, MCDPObjective, logistic

# Boosted trees as a backend: grown at strengths on the same rows, scored and stored.


_REFUSED = set('[]<>{}",:')

Objective = Callable[[FloatArray, Any], tuple[FloatArray, FloatArray]]
"""Takes the margins of the training rows and the data set, and returns a gradient and a Hessian."""

Watched = tuple[Any, Callable[[FloatArray], float]]
"""A data set like the training one, and the loss of its margins, which early stopping watches."""


def check_booster_params(given: Mapping[str, Any] | None, refused: Iterable[str]) -> dict[str, Any]:
    """Return a library's further parameters, without those that the estimator sets."""
    for name in refused:
        if name in (given or {}):
            raise InputError(f"must not have {name!r}, which the estimator sets", "booster_params")
    return dict(given or {})


def library_names(encoder: CategoryEncoder) -> list[str] | None:
    """Return the columns' names, or None where one has a character that a library refuses."""
    return None if any(_REFUSED & set(name) for name in encoder.names_) else encoder.names_


@dataclass(frozen=True)
class TreeModel(Model):
    """A booster of one library, and the margin of every row before its first tree."""

    filename: ClassVar[str] = "model.trees"

    booster: Any
    start: float

    @abstractmethod
    def margins(self, features: Any) -> FloatArray:
        """Return the margins of rows."""

    @abstractmethod
    def n_trees(self) -> int:
        """Return the number of trees."""

    @abstractmethod
    def dump_booster(self) -> bytes:
        """Return the booster in the library's own text format."""

    @staticmethod
    @abstractmethod
    def parse_booster(content: bytes) -> Any:
        """Return the booster that `dump_booster` wrote."""

    def scores(self, features: Any) -> FloatArray:
        """Return the probability of the second class for each row."""
        return logistic(self.margins(features))

    def dump(self) -> tuple[dict[str, Any], bytes]:
        """Return the start, and the trees."""
        return {"start": self.start}, self.dump_booster()

    @classmethod
    def parse(cls, described: dict[str, Any], content: bytes) -> Self:
        """Return the model that `dump` wrote."""
        return cls(cls.parse_booster(content), as_number(described["start"], "start"))


class TreeBackend(Backend[TreeModel]):
    """Grows the trees of one library; `objective_names` are its names for what the classifier sets itself."""

    model_type: ClassVar[type[TreeModel]]
    objective_names: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        classifier: BoostedClassifier,
        rows: TrainingRows,
        validation: TrainingRows | None,
        seed: int,
    ) -> None:
        self.classifier, self.validation, self.patience = classifier, validation, classifier.patience
        given = check_booster_params(classifier.booster_params, self.objective_names)
        rate = given.pop("learning_rate", classifier.learning_rate)
        self.pace = Pace(as_count(classifier.n_estimators, "n_estimators"), rate)
        self.parameters = self.common_parameters(seed, classifier.n_jobs) | given
        positive = float(rows.weights @ rows.labels) / float(rows.weights.sum())
        self.start = math.log(positive / (1.0 - positive))
        self.objective = MCDPObjective(
            rows.labels,
            sensitive_features=rows.grouping,
            strength=0.0,
            temperature=classifier.temperature,
            epsilon=classifier.epsilon,
            search=classifier.search,
            sharpness=classifier.sharpness,
            criterion=classifier.criterion,
            sample_weight=rows.weights,
        )
        self.training = self.dataset(rows.features)

    @abstractmethod
    def common_parameters(self, seed: int, n_jobs: int | None) -> dict[str, Any]:
        """Return the library's names and values for what all libraries have."""

    @abstractmethod
    def dataset(self, features: Any, training: Any = None) -> Any:
        """Return rows as the library trains on them or, given the training set, validates on them."""

    @abstractmethod
    def grow(self, objective: Objective, pace: Pace, watched: Watched | None) -> Any:
        """Return a booster; with a patience, without the trees after the best."""

    def train(self, strength: float, pace: Pace, progress: Progress | None = None) -> TreeModel:
        """Return the trees grown at a strength."""
        growth = _Growth(self, strength, progress)
        # LightGBM copies an objective deeply, unless it is a function.
        booster = self.grow(lambda margins, _: growth.derivatives(margins), pace, growth.watched())
        return self.model_type(booster, self.start)


class _Growth:
    """One call of `TreeBackend.train`: counts the trees and watches the validation part."""

    def __init__(self, backend: TreeBackend, strength: float, progress: Progress | None) -> None:
        self.backend, self.strength, self.progress = backend, strength, progress
        self.objective, self.trees = backend.objective._at(strength), 0

    def derivatives(self, margins: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the Hessian that the next tree follows."""
        self.trees += 1
        if self.progress is not None:
            self.progress({"step": self.trees})
        return self.objective(margins)

    def watched(self) -> Watched | None:
        """Return the validation part, where early stopping or the progress needs it."""
        rows, backend = self.backend.validation, self.backend
        if rows is None or (backend.patience is None and self.progress is None):
            return None
        held_out = backend.dataset(rows.features, backend.training)
        return held_out, lambda margins: self._validation_loss(rows, margins)

    def _validation_loss(self, rows: TrainingRows, margins: FloatArray) -> float:
        """Return what early stopping watches: the mean loss plus strength x MCDP."""
        losses = np.logaddexp(0.0, margins) - rows.labels * margins
        people = rows.predictions(logistic(margins), always_weighted=True)
        classifier = self.backend.classifier
        disparity = mcdp(people, epsilon=classifier.epsilon, criterion=classifier.criterion)
        if self.progress is not None:
            self.progress({"step": self.trees, "mcdp": disparity})
        return float(np.average(losses, weights=rows.weights)) + self.strength * disparity


_STRENGTH = 0.2


class BoostedClassifier(BoundedClassifier):
    """The parameters of boosted trees; see `LocalParityXGBClassifier`."""

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

    def _default_strength(self) -> float:
        return _STRENGTH

    def _make_backend(self, rows: TrainingRows, validation: TrainingRows | None, seed: int) -> TreeBackend:
        return self._backend_type(self, rows, validation, seed)
