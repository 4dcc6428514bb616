"""Models at several settings, and their scores on the validation and the test part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from localparity._types import Criterion, FloatArray
from localparity._validation import require
from localparity.models._parts import Part, Parts

NETWORK_STRENGTHS = (0.1, 0.2, 0.4)
BOOSTED_STRENGTHS = (0.1, 0.2, 0.3, 0.5)
REPAIR_SHARES = (1.0, 0.5, 0.0)
"""Of the bound: a repair that aims below it has room for what new people differ by."""


class Candidate(NamedTuple):
    """A model at one setting: how well it scores people whom neither it nor its repair was fitted on.

    Attributes
    ----------
    setting : str
        In words; empty where there is nothing to set.
    validation, test : ndarray
        Scores.
    """

    setting: str
    validation: FloatArray
    test: FloatArray


class Asked(NamedTuple):
    """What every method is told."""

    max_mcdp: float
    epsilon: float
    criterion: Criterion
    seed: int
    booster: str
    steps: int


Method = Callable[[Parts, Asked], Iterator[Candidate]]


def erm(parts: Parts, asked: Asked) -> Iterator[Candidate]:
    """A network without a penalty."""
    yield _scored("", _network("erm", 0.0, asked), parts)


def diffmcdp(parts: Parts, asked: Asked) -> Iterator[Candidate]:
    """A network with the paper's penalty."""
    for strength in NETWORK_STRENGTHS:
        yield _scored(f"strength {strength:g}", _network("diffmcdp", strength, asked), parts)


def boosted(parts: Parts, asked: Asked) -> Iterator[Candidate]:
    """Boosted trees without a penalty."""
    yield _scored("", _trees(0.0, asked), parts)


def penalised(parts: Parts, asked: Asked) -> Iterator[Candidate]:
    """Boosted trees with the penalty."""
    for strength in BOOSTED_STRENGTHS:
        yield _scored(f"strength {strength:g}", _trees(strength, asked), parts)


METHODS: dict[str, Method] = {
    "ERM": erm,
    "DiffMCDP": diffmcdp,
    "boosted trees": boosted,
    "penalised boosted trees": penalised,
}


def repaired(candidate: Candidate, parts: Parts, asked: Asked, share: float) -> Candidate:
    """A candidate's scores repaired to a share of the bound; one that cannot be reached is a ValueError.

    The repair of the test part is fitted on the validation part. To be judged there too, each half of the
    validation part is repaired as the other half asks.
    """
    validation = parts.validation
    halves = validation.halves(asked.seed)
    bound = share * asked.max_mcdp
    judged = np.empty_like(candidate.validation)
    for fitted, other in (halves, halves[::-1]):
        taken = Part(None, validation.rows.take(fitted))
        repair = _repair(candidate.validation[fitted], taken, bound, asked)
        judged[other] = repair.transform(
            candidate.validation[other], sensitive_features=validation.groups[other]
        )
    repair = _repair(candidate.validation, validation, bound, asked)
    test = repair.transform(candidate.test, sensitive_features=parts.test.groups)
    setting = f"repaired to {100.0 * bound:g}%"
    return Candidate(", ".join(filter(None, (candidate.setting, setting))), judged, test)


def _repair(scores: FloatArray, part: Part, bound: float, asked: Asked) -> Any:
    from localparity.models import ScoreRepair

    repair = ScoreRepair(max_mcdp=bound, epsilon=asked.epsilon, criterion=asked.criterion)
    rows = part.rows
    return repair.fit(scores, rows.labels, sensitive_features=part.groups, sample_weight=rows.weights)


def _network(method: str, strength: float, asked: Asked) -> Any:
    require("torch", extra="train")
    from localparity.models import LocalParityClassifier

    return LocalParityClassifier(
        method,
        strength,
        epsilon=asked.epsilon,
        criterion=asked.criterion,
        steps=asked.steps,
        device="cpu",
        random_state=asked.seed,
    )


def _trees(strength: float, asked: Asked) -> Any:
    from localparity.models import LocalParityLGBMClassifier, LocalParityXGBClassifier

    kinds = {"lightgbm": LocalParityLGBMClassifier, "xgboost": LocalParityXGBClassifier}
    return kinds[asked.booster](
        strength, epsilon=asked.epsilon, criterion=asked.criterion, random_state=asked.seed
    )


def _scored(setting: str, model: Any, parts: Parts) -> Candidate:
    train = parts.train
    model.fit(
        train.X, train.rows.labels, sensitive_features=train.rows.groups, sample_weight=train.rows.weights
    )
    scores = [model.predict_proba(part.X)[:, 1] for part in (parts.validation, parts.test)]
    return Candidate(setting, *scores)
