"""What a library of boosted trees does for the classifiers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from localparity._types import FloatArray
from localparity.models.trees._objective import MCDPObjective

Metric = Callable[[FloatArray], float]
"""The validation loss of margins, which early stopping watches."""


@dataclass(frozen=True)
class BoostingPlan:
    """How trees are grown: how many, from which margin, by which parameters of the library.

    With `patience`, growing stops after so many trees without a better one on the validation part, and those
    after the best are dropped.
    """

    rounds: int
    start: float
    parameters: dict[str, Any]
    patience: int | None


class Library(Protocol):
    """One library of boosted trees; `objective_names` are its names for the objective."""

    objective_names: tuple[str, ...]

    def parameters(self, learning_rate: float, seed: int, n_jobs: int | None) -> dict[str, Any]:
        """Return the library's names and values for what all libraries have."""

    def dataset(self, X: Any, plan: BoostingPlan, training: Any) -> Any:
        """Return rows as the library trains on them or, given the training set, validates on them."""

    def train(
        self,
        training: Any,
        plan: BoostingPlan,
        objective: MCDPObjective,
        validation: tuple[Any, Metric] | None,
    ) -> Any:
        """Return a booster."""

    def margins(self, booster: Any, X: Any, start: float) -> FloatArray:
        """Return the margins of rows."""

    def rounds(self, booster: Any) -> int:
        """Return how many trees a booster has."""

    def dump(self, booster: Any) -> bytes:
        """Return a booster in the library's own text format."""

    def parse(self, dumped: bytes) -> Any:
        """Return the booster that `dump` wrote."""
