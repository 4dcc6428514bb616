"""What the classifiers of boosted trees share, whatever the library."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from localparity._progress import Progress
from localparity._types import Criterion, FloatArray, Seed
from localparity._validation import InputError, as_count
from localparity.metrics import mcdp
from localparity.models._base import Backend, BoundedClassifier, Model, Pace
from localparity.models._encoding import CategoryEncoder
from localparity.models._rows import TrainingRows
from localparity.models.trees._objective import TEMPERATURE, MCDPObjective, logistic

_REFUSED = set('[]<>{}",:')

Objective = Callable[[FloatArray, Any], tuple[FloatArray, FloatArray]]
"""Takes the training rows' margins and the data set, and returns a gradient and a Hessian.

LightGBM copies an objective deeply, unless it is a function.
"""

Watched = tuple[Any, Callable[[FloatArray], float]]
"""A data set like the training one, and the loss of its margins, which early stopping watches."""


def check_booster_params(params: Mapping[str, Any] | None, refused: Iterable[str]) -> dict[str, Any]:
    """Return a library's further parameters, without those that the estimator sets."""
    for name in refused:
        if name in (params or {}):
            raise InputError(f"must not have {name!r}, which the estimator sets", "booster_params")
    return dict(params or {})


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

    def scores(self, features: Any) -> FloatArray:
        """Return the probability of the second class for each row."""
        return logistic(self.margins(features))


class TreeBackend(Backend):
    """Grows the trees of one library; `objective_names` are its names for what the classifier sets itself."""

    model_type: ClassVar[type[TreeModel]]
    objective_names: ClassVar[tuple[str, ...]]

    def __init__(
        self, classifier: BoostedClassifier, rows: TrainingRows, validation: TrainingRows | None, seed: int
    ) -> None:
        self.classifier, self.validation, self.patience = classifier, validation, classifier.patience
        further = check_booster_params(classifier.booster_params, self.objective_names)
        rate = further.pop("learning_rate", classifier.learning_rate)
        self.pace = Pace(as_count(classifier.n_estimators, "n_estimators"), rate)
        self.parameters = self.common_parameters(seed, classifier.n_jobs) | further
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

    @staticmethod
    @abstractmethod
    def common_parameters(seed: int, n_jobs: int | None) -> dict[str, Any]:
        """Return the library's names and values for what all libraries have."""

    @abstractmethod
    def dataset(self, features: Any, training: Any = None) -> Any:
        """Return rows as the library trains on them or, given the training set, validates on them."""

    @abstractmethod
    def grow(self, objective: Objective, pace: Pace, watched: Watched | None) -> Any:
        """Return a booster; with a patience, without the trees after the best."""

    def train(self, strength: float, pace: Pace, progress: Progress | None = None) -> TreeModel:
        """Return the trees grown at a strength."""
        objective, rows, trees = self.objective._at(strength), self.validation, 0

        def derivatives(margins: FloatArray, _: Any) -> tuple[FloatArray, FloatArray]:
            nonlocal trees
            trees += 1
            if progress is not None:
                progress({"step": trees})
            return objective(margins)

        def validation_loss(margins: FloatArray) -> float:
            """Return what early stopping watches: the mean loss plus strength x MCDP."""
            assert rows is not None
            losses = np.logaddexp(0.0, margins) - rows.labels * margins
            people, classifier = rows.predictions(logistic(margins), always_weighted=True), self.classifier
            disparity = mcdp(people, epsilon=classifier.epsilon, criterion=classifier.criterion)
            if progress is not None:
                progress({"step": trees, "mcdp": disparity})
            return float(np.average(losses, weights=rows.weights)) + strength * disparity

        watched: Watched | None = None
        if rows is not None and (self.patience is not None or progress is not None):
            watched = self.dataset(rows.features, self.training), validation_loss
        return self.model_type(self.grow(derivatives, pace, watched), self.start)


_STRENGTH = 0.2


class BoostedClassifier(BoundedClassifier):
    """The parameters of boosted trees; see `LocalParityXGBClassifier`."""

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
