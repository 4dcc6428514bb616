"""No more alternatives are wrongly said to dominate a baseline than the stated error allows."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from benchmarks.promises import most_failures
from scipy.special import expit, ndtri
from sklearn.metrics import average_precision_score

from localparity._types import FloatArray
from localparity.models._dominance import BaselineRule, accuracy_differences
from localparity.models._rows import TrainingRows

pytestmark = pytest.mark.slow

ERROR, ALTERNATIVES, DRAWS, MANY = 0.05, 5, 400, 2000
Rng = np.random.Generator


class Design(NamedTuple):
    """Two groups, a baseline and alternatives: shifts of the second group, and noise beside the signal.

    `decided` is what a claim is wrong about: "mcdp", or the accuracy that is lower by exactly the margin.
    """

    people: int
    decided: str
    shifts: tuple[float, float] = (0.5, 0.5)
    noises: tuple[float, float] = (1.0, 1.0)
    prevalence: float = 0.3
    few_scores: bool = False

    def draw(self, rng: Rng, people: int | None = None) -> tuple[TrainingRows, list[FloatArray]]:
        """The rows with the baseline's scores, and those of the alternatives."""
        size = people or self.people
        groups = rng.integers(0, 2, size)
        signal = rng.standard_normal(size)
        labels = (rng.random(size) < expit(2.0 * (signal + ndtri(self.prevalence)))).astype(np.float64)

        def scores(kind: int) -> FloatArray:
            noise = self.noises[kind] * rng.standard_normal(size)
            scored = expit(signal + noise + self.shifts[kind] * groups + 2.0 * ndtri(self.prevalence))
            return np.asarray(scored.round(1) if self.few_scores else scored)

        names, classes = ("a", "b"), np.array([0, 1])
        rows = TrainingRows(None, labels, groups, np.ones(size), classes, names, scores=scores(0))
        return rows, [scores(1) for _ in range(ALTERNATIVES)]

    @property
    def truth(self) -> tuple[float, float]:
        """The differences of average precision and of accuracy, as a million people show."""
        return _truth(self)

    @property
    def margin(self) -> float:
        """What makes a claim wrong in one way alone."""
        precision, accuracy = self.truth
        return {"mcdp": 0.1, "precision": -precision, "accuracy": -accuracy}[self.decided]


@cache
def _truth(design: Design) -> tuple[float, float]:
    rows, (scores, *_) = design.draw(np.random.default_rng(0), 1_000_000)
    assert rows.scores is not None
    precisions = [average_precision_score(rows.labels, each) for each in (rows.scores, scores)]
    rights = [((each > 0.5) == (rows.labels > 0.5)).mean() for each in (rows.scores, scores)]
    return precisions[1] - precisions[0], float(rights[1] - rights[0])


PARITY = {
    "200 people, as far apart": Design(200, "mcdp"),
    "1,000 people, as far apart": Design(1000, "mcdp"),
    "400 people, no gap": Design(400, "mcdp", shifts=(0.0, 0.0)),
    "400 people, eleven scores": Design(400, "mcdp", few_scores=True),
}
LESS_ACCURATE = {
    "300 people": Design(300, "precision", (1.5, 0.0), (0.3, 1.0)),
    "1,500 people": Design(1500, "precision", (1.5, 0.0), (0.3, 1.0)),
    "1,000 people, one in ten": Design(1000, "precision", (1.5, 0.0), (0.3, 1.0), 0.1),
}


def dominates(design: Design, rng: Rng, n_resamples: int = 99) -> bool:
    """Whether any alternative is said to dominate, which none does."""
    rows, alternatives = design.draw(rng)
    confidence = 1.0 - 2.0 * ERROR / ALTERNATIVES
    rule = BaselineRule(
        design.margin, "demographic_parity", confidence, n_resamples, int(rng.integers(2**31))
    )
    return any(rule.differences(rows, scores).dominates(design.margin) for scores in alternatives)


def keeps_accuracy(design: Design, place: int, rng: Rng) -> bool:
    """Whether some alternative is said to lose less than it does of average precision, or of accuracy."""
    rows, alternatives = design.draw(rng)
    confidence = 1.0 - 2.0 * ERROR / ALTERNATIVES
    truth = design.truth[place]
    return any(accuracy_differences(rows, each, confidence)[place].low > truth for each in alternatives)


def streams(draws: int) -> list[Rng]:
    return [np.random.default_rng(seed) for seed in np.random.SeedSequence(2026).spawn(draws)]


@pytest.mark.parametrize("name", PARITY)
def test_at_parity_of_both_few_are_said_to_dominate(name: str) -> None:
    assert sum(dominates(PARITY[name], rng) for rng in streams(DRAWS)) / DRAWS <= most_failures(ERROR, DRAWS)


@pytest.mark.parametrize("place", [0, 1], ids=["average precision", "accuracy"])
@pytest.mark.parametrize("name", [*PARITY, *LESS_ACCURATE])
def test_few_are_said_to_lose_less_than_they_do(name: str, place: int) -> None:
    design = {**PARITY, **LESS_ACCURATE}[name]
    wrong = sum(keeps_accuracy(design, place, rng) for rng in streams(MANY)) / MANY
    assert wrong <= most_failures(ERROR, MANY)


def test_much_lower_mcdp_at_too_low_accuracy_does_not_dominate() -> None:
    design = LESS_ACCURATE["1,500 people"]
    wrong = sum(dominates(design, rng) for rng in streams(DRAWS // 4)) / (DRAWS // 4)
    assert wrong <= most_failures(ERROR, DRAWS // 4)
