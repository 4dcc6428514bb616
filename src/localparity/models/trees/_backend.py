"""Boosted trees as a backend: grown at strengths on the same rows, scored and stored."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from localparity._types import FloatArray
from localparity._validation import Grouping, as_count, as_number
from localparity.metrics import mcdp
from localparity.models._backend import Backend, Model
from localparity.models._rows import TrainingRows
from localparity.models.trees._library import BoostingPlan, Library
from localparity.models.trees._objective import MCDPObjective, scores_of

if TYPE_CHECKING:
    from localparity.models.trees._classifier import BoostedClassifier


@dataclass(frozen=True)
class TreeModel(Model):
    """A booster, and the margin of every row before its first tree."""

    filename: ClassVar[str] = "model.trees"
    library: ClassVar[Library]

    booster: Any
    start: float

    def scores(self, features: Any) -> FloatArray:
        """Return the probability of the second class for each row."""
        return scores_of(self.library.margins(self.booster, features, self.start))

    def dump(self) -> tuple[dict[str, Any], bytes]:
        """Return the start, and the trees in the library's own text format."""
        return {"start": self.start}, self.library.dump(self.booster)

    @classmethod
    def parse(cls, described: dict[str, Any], content: bytes) -> Self:
        """Return the model that `dump` wrote."""
        return cls(cls.library.parse(content), as_number(described["start"], "start"))


class TreeBackend(Backend[TreeModel]):
    """Grows trees with the parameters of a classifier."""

    def __init__(
        self,
        classifier: BoostedClassifier,
        rows: TrainingRows,
        validation: TrainingRows | None,
        seed: int,
    ) -> None:
        self.model_type, self.classifier, self.validation = classifier._model_type, classifier, validation
        self.library = self.model_type.library
        given = dict(classifier.booster_params or {})
        for name in self.library.objective_names:
            if name in given:
                raise ValueError(f"booster_params must not have {name!r}, which the classifier sets")
        common = self.library.parameters(classifier.learning_rate, seed, classifier.n_jobs)
        positive = float(rows.weights @ rows.labels) / float(rows.weights.sum())
        self.plan = BoostingPlan(
            as_count(classifier.n_estimators, "n_estimators"),
            math.log(positive / (1.0 - positive)),
            common | given,
            classifier.patience,
        )
        self.objective = MCDPObjective(
            rows.labels,
            sensitive_features=Grouping(rows.groups.astype(np.uint32), rows.group_names),
            strength=0.0,
            temperature=classifier.temperature,
            epsilon=classifier.epsilon,
            search=classifier.search,
            sharpness=classifier.sharpness,
            criterion=classifier.criterion,
            sample_weight=rows.weights,
        )
        self.training = self.library.dataset(rows.features, self.plan, None)

    def train(self, strength: float) -> TreeModel:
        """Return the trees grown at a strength."""
        watched = None
        if self.validation is not None and self.plan.patience is not None:
            held_out = self.library.dataset(self.validation.features, self.plan, self.training)
            rows = self.validation
            watched = held_out, lambda margins: self._validation_loss(rows, margins, strength)
        booster = self.library.train(self.training, self.plan, self.objective.at(strength), watched)
        return self.model_type(booster, self.plan.start)

    def _validation_loss(self, rows: TrainingRows, margins: FloatArray, strength: float) -> float:
        """Return what early stopping watches: the mean loss plus strength x MCDP."""
        losses = np.logaddexp(0.0, margins) - rows.labels * margins
        disparity = mcdp(
            rows.labels,
            scores_of(margins),
            sensitive_features=rows.groups,
            epsilon=self.classifier.epsilon,
            criterion=self.classifier.criterion,
            sample_weight=rows.weights,
        )
        return float(np.average(losses, weights=rows.weights)) + strength * disparity
