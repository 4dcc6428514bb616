"""What a library of boosted trees has to do for the classifier: one adapter a library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from localparity._types import FloatArray
from localparity.models.trees._objective import MCDPObjective

Metric = Callable[[FloatArray], float]


@dataclass(frozen=True)
class Plan:
    """How trees are grown.

    Attributes
    ----------
    rounds : int
        How many.
    start : float
        The margin of every row before the first.
    parameters : dict
        The library's own.
    patience : int or None
        After so many rounds without a better one on the validation part, no more are grown, and those after
        the best are dropped.
    """

    rounds: int
    start: float
    parameters: dict[str, Any]
    patience: int | None


class Library(Protocol):
    """One library of boosted trees, behind the classifier.

    Attributes
    ----------
    objective_names : tuple of str
        The library's names for the parameter that the classifier sets itself.
    """

    objective_names: tuple[str, ...]

    def parameters(self, learning_rate: float, seed: int, n_jobs: int | None) -> dict[str, Any]:
        """The library's names and values for what all libraries have."""

    def dataset(self, X: Any, plan: Plan, training: Any) -> Any:
        """The rows as the library trains on them or, with the training set, as it validates on them."""

    def train(
        self, training: Any, plan: Plan, objective: MCDPObjective, validation: tuple[Any, Metric] | None
    ) -> Any:
        """A booster; `validation` is a data set like the training one, and a loss of its margins."""

    def margins(self, booster: Any, X: Any, start: float) -> FloatArray:
        """The margins of rows."""

    def rounds(self, booster: Any) -> int:
        """How many trees a booster has."""

    def dump(self, booster: Any) -> bytes:
        """A booster in the library's own text format."""

    def parse(self, dumped: bytes) -> Any:
        """The booster that `dump` wrote."""
