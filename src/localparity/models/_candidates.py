"""The models that a comparison tries, and their scores on the validation and the test part."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from localparity._types import Criterion, FloatArray, IntArray
from localparity._validation import require
from localparity.models._rows import TrainingRows

REPAIR_SHARES = (1.0, 0.5, 0.0)
"""Of the bound: a repair that aims below it has room for how new people differ."""


class ComparisonRows(NamedTuple):
    """The rows that are trained on, those that settings are chosen on, and those that are reported."""

    train: TrainingRows
    validation: TrainingRows
    test: TrainingRows


class Candidate(NamedTuple):
    """A model at one setting, described in words, and its scores of the validation and the test part."""

    setting: str
    validation: FloatArray
    test: FloatArray


class CompareSettings(NamedTuple):
    """What every method of a comparison is trained with."""

    max_mcdp: float
    epsilon: float
    criterion: Criterion
    seed: int
    booster: str
    steps: int


def repaired(
    candidate: Candidate, rows: ComparisonRows, settings: CompareSettings, share: float
) -> Candidate:
    """Repair a candidate's scores to a share of the bound; one that is out of reach is a ValueError.

    The repair of the test part is fitted on the validation part. To be judged there too, each half of the
    validation part is repaired by what the other half was fitted to.
    """
    bound = share * settings.max_mcdp
    validation, scores = rows.validation, candidate.validation
    halves = validation.split(0.5, settings.seed)
    judged = np.empty_like(scores)
    for fitted, other in (halves, halves[::-1]):
        repair = _repair(scores, validation, fitted, bound, settings)
        judged[other] = repair.transform(scores[other], sensitive_features=validation.groups[other])
    repair = _repair(scores, validation, np.arange(scores.size), bound, settings)
    test = repair.transform(candidate.test, sensitive_features=rows.test.groups)
    setting = f"repaired to {100.0 * bound:g}%"
    return Candidate(", ".join(filter(None, (candidate.setting, setting))), judged, test)


def _repair(
    scores: FloatArray, rows: TrainingRows, fitted: IntArray, bound: float, settings: CompareSettings
) -> Any:
    from localparity.models import ScoreRepair

    return ScoreRepair(bound, epsilon=settings.epsilon, criterion=settings.criterion).fit(
        scores[fitted],
        rows.labels[fitted],
        sensitive_features=rows.groups[fitted],
        sample_weight=rows.weights[fitted],
    )


def _network(method: str, strength: float, settings: CompareSettings) -> Any:
    require("torch", extra="train")
    from localparity.models import LocalParityClassifier

    return LocalParityClassifier(
        method,
        strength,
        epsilon=settings.epsilon,
        criterion=settings.criterion,
        steps=settings.steps,
        device="cpu",
        random_state=settings.seed,
    )


def _trees(strength: float, settings: CompareSettings) -> Any:
    from localparity.models import LocalParityLGBMClassifier, LocalParityXGBClassifier

    kinds = {"lightgbm": LocalParityLGBMClassifier, "xgboost": LocalParityXGBClassifier}
    return kinds[settings.booster](
        strength, epsilon=settings.epsilon, criterion=settings.criterion, random_state=settings.seed
    )


METHODS: dict[str, tuple[Callable[[float, CompareSettings], Any], tuple[float, ...]]] = {
    "ERM": (partial(_network, "erm"), (0.0,)),
    "DiffMCDP": (partial(_network, "diffmcdp"), (0.1, 0.2, 0.4)),
    "boosted trees": (_trees, (0.0,)),
    "penalised boosted trees": (_trees, (0.1, 0.2, 0.3, 0.5)),
}
"""By name, what makes a model at a strength, and the strengths that are tried."""


def train_candidates(method: str, rows: ComparisonRows, settings: CompareSettings) -> list[Candidate]:
    """Train a method at each of its strengths."""
    make, strengths = METHODS[method]
    train, candidates = rows.train, []
    for strength in strengths:
        model = make(strength, settings)
        model.fit(train.features, train.labels, sensitive_features=train.groups, sample_weight=train.weights)
        scores = [model.predict_proba(part.features)[:, 1] for part in (rows.validation, rows.test)]
        candidates.append(Candidate(f"strength {strength:g}" if strength else "", *scores))
    return candidates
