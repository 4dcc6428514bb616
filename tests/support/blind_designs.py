"""People whose P(y = 1 | x) and P(group | x) are known: what group-blind repair is simulated on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity.datasets import make_census

Floats = NDArray[np.float64]
Rng = np.random.Generator


class BlindPeople(NamedTuple):
    """P(y = 1 | x) and P(group | x, label) of shape (2, n_people, n_groups), with labels and group codes."""

    scores: Floats
    probabilities: Floats
    labels: NDArray[Any]
    groups: NDArray[Any]

    @property
    def chances(self) -> Floats:
        """P(group | x) of each person."""
        no, yes = self.probabilities
        return np.asarray((1.0 - self.scores[:, None]) * no + self.scores[:, None] * yes)

    def take(self, size: int) -> BlindPeople:
        """The first people."""
        return BlindPeople(
            self.scores[:size], self.probabilities[:, :size], self.labels[:size], self.groups[:size]
        )


BlindDesign = Callable[[Rng, int], BlindPeople]


def census(rng: Rng, size: int) -> BlindPeople:
    """The census: hours and occupation tell of the sex (0: women, 1: men), whatever the label."""
    people = make_census(size, random_state=rng)
    table, women = people.data, {"care": 0.35, "office": 0.40, "technical": 0.20, "trades": 0.05}
    men = {"care": 0.08, "office": 0.27, "technical": 0.25, "trades": 0.40}
    hours = table["hours_per_week"].to_numpy()
    odds = 0.45 / 0.55 * (table["occupation"].map(women) / table["occupation"].map(men)).to_numpy()
    odds = odds * np.exp(((hours - 42.0) ** 2 - (hours - 37.0) ** 2) / (2.0 * 8.0**2))
    chance = odds / (1.0 + odds)
    index = np.log(people.score / (1.0 - people.score))
    scores = 1.0 / (1.0 + np.exp(-1.6 * index - 0.02 * (table["age"].to_numpy() - 46.0)))
    probabilities = np.stack([np.column_stack([chance, 1.0 - chance])] * 2)
    groups = (people.sensitive_features == "Male").astype(int)
    return BlindPeople(scores, probabilities, people.target, groups)


def mixed(shares: Sequence[float], decimals: int | None = None) -> BlindDesign:
    """Groups of some shares that two features tell of, and the label too; both may be rounded."""

    def draw(rng: Rng, size: int) -> BlindPeople:
        features = rng.normal(size=(size, 2))
        if decimals is not None:
            features = features.round(decimals)
        tilt = np.linspace(-1.2, 1.2, len(shares))
        logits = np.log(shares) + 0.8 * features[:, :1] * tilt + 0.3 * features[:, 1:] * tilt**2
        scores = 1.0 / (1.0 + np.exp(0.7 - features[:, 0] - 0.5 * features[:, 1]))
        labels = (rng.random(size) < scores).astype(int)
        given = [_normalised(logits + sign * 0.2 * tilt) for sign in (-1.0, 1.0)]
        probabilities = np.stack(given)
        cumulated = probabilities[labels, np.arange(size)].cumsum(axis=1)
        groups = (rng.random((size, 1)) > cumulated[:, :-1]).sum(axis=1)
        return BlindPeople(scores, probabilities, labels, groups)

    return draw


def _normalised(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
