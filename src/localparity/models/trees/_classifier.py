"""A scikit-learn classifier of boosted trees whose local disparity is penalised, or kept within a bound."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, validate_data

from localparity._types import Criterion, FloatArray
from localparity._validation import Grouping, as_count, as_probability, as_strength
from localparity.metrics import mcdp
from localparity.models._base import PenalisedClassifier
from localparity.models._bound import Judge, Trial, check_bound
from localparity.models._rows import Labelled, check_labelled, hold_out
from localparity.models.trees._booster import Library, Metric, Plan
from localparity.models.trees._objective import MCDPObjective, scores_of

_STRENGTH = 0.2
_TEXTS = {"object", "str", "string", "String"}


class BoostedClassifier(PenalisedClassifier):
    """What the classifiers of all libraries share; see `LocalParityXGBClassifier`."""

    _library: ClassVar[Library]

    def __init__(
        self,
        strength: float | None = None,
        *,
        max_mcdp: float | None = None,
        max_mcdp_confidence: float | None = None,
        epsilon: float = 0.0,
        criterion: Criterion = "demographic_parity",
        temperature: float = 100.0,
        search: str | None = None,
        sharpness: float = 8.0,
        n_estimators: int = 200,
        learning_rate: float = 0.1,
        patience: int | None = None,
        validation_fraction: float = 0.2,
        n_jobs: int | None = None,
        random_state: Any = None,
        booster_params: dict[str, Any] | None = None,
    ) -> None:
        self.strength = strength
        self.max_mcdp = max_mcdp
        self.max_mcdp_confidence = max_mcdp_confidence
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

    def _fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> None:
        check_bound(self.strength, self.max_mcdp, self.max_mcdp_confidence)
        X = self._features(X, reset=True)
        rows = check_labelled(self, X, _num_samples(X), y, sensitive_features, sample_weight)
        self.classes_, self.groups_ = rows.classes, rows.names
        X = X if rows.kept.all() else _safe_indexing(X, np.flatnonzero(rows.kept))
        seed = self._seed()
        growing = _Growing(self, seed)
        if self.max_mcdp is None and self.patience is None:
            growing.train_on(X, rows)
        else:
            fraction = as_probability(self.validation_fraction, "validation_fraction")
            train, held_out = hold_out(rows.labels, rows.groups, fraction, seed, rows.names)
            growing.train_on(_safe_indexing(X, train), rows.take(train))
            growing.validate_on(_safe_indexing(X, held_out), rows.take(held_out))
        self.start_ = growing.plan.start
        if self.max_mcdp is None:
            self.strength_ = as_strength(_STRENGTH if self.strength is None else self.strength)
            self.booster_ = growing.grow(self.strength_)
        else:
            judge = growing.judge()
            self.booster_ = self._keep_within_bound(
                lambda strength: growing.try_strength(strength, judge), judge
            )
        self.n_estimators_ = self._library.rounds(self.booster_)

    def _scores(self, X: Any) -> FloatArray:
        return scores_of(self._library.margins(self.booster_, self._features(X, reset=False), self.start_))

    def _save(self, folder: Any) -> None:
        from localparity.models.trees._saving import save_boosted

        save_boosted(self, folder)

    @classmethod
    def _load(cls, folder: Any) -> Self:
        from localparity.models.trees._saving import load_boosted

        return load_boosted(cls, folder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _features(self, X: Any, *, reset: bool) -> Any:
        """A data frame as it is, for the library to read; anything else as numbers."""
        if not (hasattr(X, "columns") and hasattr(X, "__getitem__") and len(X)):
            return validate_data(
                self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
            )
        validate_data(self, X, skip_check_array=True, reset=reset)
        for name in X.columns:
            if str(X[name].dtype) in _TEXTS:
                raise ValueError(
                    f"column {name!r} of X holds texts where numbers or a categorical column are expected; "
                    f"X.astype({{{name!r}: 'category'}}) makes it one"
                )
        return X


class _Growing:
    """One call of `fit`: grows boosters at strengths on the same rows."""

    def __init__(self, classifier: BoostedClassifier, seed: int) -> None:
        self.classifier, self.library = classifier, classifier._library
        given = dict(classifier.booster_params or {})
        for name in self.library.objective_names:
            if name in given:
                raise ValueError(f"booster_params has {name!r}, which is the classifier's own to set")
        common = self.library.parameters(classifier.learning_rate, seed, classifier.n_jobs)
        self.parameters = common | given
        self.validation: tuple[Any, Labelled] | None = None

    def train_on(self, X: Any, rows: Labelled) -> None:
        """Take the rows to train on."""
        classifier, self.rows = self.classifier, rows
        positive = float(rows.weights @ rows.labels) / float(rows.weights.sum())
        patience = None if classifier.patience is None else as_count(classifier.patience, "patience")
        self.plan = Plan(
            as_count(classifier.n_estimators, "n_estimators"),
            math.log(positive / (1.0 - positive)),
            self.parameters,
            patience,
        )
        search = classifier.search
        if search is None:
            search = "exact" if classifier.epsilon else "soft"
        self.objective = MCDPObjective(
            rows.labels,
            sensitive_features=Grouping(rows.groups.astype(np.uint32), rows.names),
            strength=0.0,
            temperature=classifier.temperature,
            epsilon=classifier.epsilon,
            search=search,
            sharpness=classifier.sharpness,
            criterion=classifier.criterion,
            sample_weight=rows.weights,
        )
        self.training = self.library.dataset(X, self.plan, None)

    def validate_on(self, X: Any, rows: Labelled) -> None:
        """Take the rows of the validation part."""
        self.validation = X, rows

    def grow(self, strength: float) -> Any:
        """A booster at a strength."""
        watched = None
        if self.validation is not None and self.plan.patience is not None:
            held_out = self.library.dataset(self.validation[0], self.plan, self.training)
            watched = held_out, self.metric(strength)
        return self.library.train(self.training, self.plan, self.objective.at(strength), watched)

    def metric(self, strength: float) -> Metric:
        """What early stopping looks at: the mean loss of the validation rows plus strength x MCDP."""
        assert self.validation is not None
        rows, classifier = self.validation[1], self.classifier

        def loss_of(margins: FloatArray) -> float:
            losses = np.logaddexp(0.0, margins) - rows.labels * margins
            disparity = mcdp(
                rows.labels,
                scores_of(margins),
                sensitive_features=rows.groups,
                epsilon=classifier.epsilon,
                criterion=classifier.criterion,
                sample_weight=rows.weights,
            )
            return float(np.average(losses, weights=rows.weights)) + strength * disparity

        return loss_of

    def judge(self) -> Judge:
        """What the bound is held against."""
        assert self.validation is not None
        rows = self.validation[1]
        return self.classifier._judge(rows.labels, rows.groups, rows.weights)

    def try_strength(self, strength: float, judge: Judge) -> tuple[Any, Trial]:
        """A booster and what the validation part says of it."""
        assert self.validation is not None
        booster = self.grow(strength)
        margins = self.library.margins(booster, self.validation[0], self.plan.start)
        return booster, judge(strength, scores_of(margins))
