"""The models that a comparison tries, fitted, and their scores on the validation and the test part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from localparity._types import Criterion, FloatArray
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
    """A fitted model, its setting in words, and the scores that it is judged by and reported with."""

    setting: str
    model: Any
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


class CompareMethod(NamedTuple):
    """A method of a comparison.

    Attributes
    ----------
    make : callable
        Returns its models, not fitted, by their settings in words.
    is_repair : bool
        Whether the models have the bound themselves: one may be out of reach, and none is repaired again.
    """

    make: Callable[[CompareSettings], dict[str, Any]]
    is_repair: bool = False


def train(setting: str, model: Any, rows: ComparisonRows) -> Candidate:
    """Fit a model on the training part and score the others."""
    fitted = rows.train
    model.fit(
        fitted.features,
        fitted.targets,
        sensitive_features=fitted.named_groups,
        sample_weight=fitted.weights,
    )
    scores = [model.predict_proba(part.features)[:, 1] for part in (rows.validation, rows.test)]
    return Candidate(setting, model, *scores)


def repair(candidate: Candidate, share: float, rows: ComparisonRows, settings: CompareSettings) -> Candidate:
    """Repair a candidate to a share of the bound; one that is out of reach is a ValueError.

    The repair is fitted on the validation part. To be judged there too, each half of the validation part is
    repaired by what the other half was fitted to.
    """
    from localparity.models import RepairedClassifier, ScoreRepair

    bound = share * settings.max_mcdp
    options: dict[str, Any] = {"epsilon": settings.epsilon, "criterion": settings.criterion}
    part, scores = rows.validation, candidate.validation
    judged = np.empty_like(scores)
    halves = part.split(0.5, settings.seed)
    for fitted, other in (halves, halves[::-1]):
        half = part.take(fitted)
        of_half = ScoreRepair(bound, **options).fit(
            scores[fitted], half.labels, sensitive_features=half.named_groups, sample_weight=half.weights
        )
        judged[other] = of_half.transform(scores[other], sensitive_features=part.take(other).named_groups)
    model = RepairedClassifier(candidate.model, max_mcdp=bound, prefit=True, **options).fit(
        part.features, part.targets, sensitive_features=part.named_groups, sample_weight=part.weights
    )
    test = model.repair_.transform(candidate.test, sensitive_features=rows.test.named_groups)
    setting = f"repaired to {100.0 * bound:g}%"
    return Candidate(", ".join(filter(None, (candidate.setting, setting))), model, judged, test)


def _networks(method: str, strengths: Sequence[float], settings: CompareSettings) -> dict[str, Any]:
    require("torch", extra="train")
    from localparity.models import LocalParityClassifier

    return {
        _words(strength): LocalParityClassifier(
            method,
            strength,
            epsilon=settings.epsilon,
            criterion=settings.criterion,
            steps=settings.steps,
            device="cpu",
            random_state=settings.seed,
        )
        for strength in strengths
    }


def _trees(strengths: Sequence[float], settings: CompareSettings) -> dict[str, Any]:
    from localparity.models import LocalParityLGBMClassifier, LocalParityXGBClassifier

    kinds = {"lightgbm": LocalParityLGBMClassifier, "xgboost": LocalParityXGBClassifier}
    kind = kinds[settings.booster]
    options: dict[str, Any] = {"epsilon": settings.epsilon, "criterion": settings.criterion}
    return {_words(strength): kind(strength, random_state=settings.seed, **options) for strength in strengths}


def _group_blind(settings: CompareSettings) -> dict[str, Any]:
    from localparity.models import GroupBlindClassifier

    bounds = [share * settings.max_mcdp for share in REPAIR_SHARES if share]
    options: dict[str, Any] = {"epsilon": settings.epsilon, "criterion": settings.criterion}
    return {
        f"repaired to {100.0 * bound:g}%": GroupBlindClassifier(
            max_mcdp=bound, random_state=settings.seed, **options
        )
        for bound in bounds
    }


def _words(strength: float) -> str:
    return f"strength {strength:g}" if strength else ""


METHODS: dict[str, CompareMethod] = {
    "ERM": CompareMethod(partial(_networks, "erm", (0.0,))),
    "DiffMCDP": CompareMethod(partial(_networks, "diffmcdp", (0.1, 0.2, 0.4))),
    "boosted trees": CompareMethod(partial(_trees, (0.0,))),
    "penalised boosted trees": CompareMethod(partial(_trees, (0.1, 0.2, 0.3, 0.5))),
    "group-blind repair": CompareMethod(_group_blind, is_repair=True),
}
"""The methods of a comparison by their names."""
