"""What one kind of model does for `BoundedClassifier`: it is trained, gives scores and is stored."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from localparity._types import FloatArray
from localparity.models._progress import Progress


class Model(ABC):
    """A trained model.

    Attributes
    ----------
    filename : str
        The name of its file in a model folder.
    """

    filename: ClassVar[str]

    @abstractmethod
    def scores(self, features: Any) -> FloatArray:
        """Return the probability of the second class for each row."""

    @abstractmethod
    def dump(self) -> tuple[dict[str, Any], bytes]:
        """Return what describes the model in JSON, and the content of its file."""

    @classmethod
    @abstractmethod
    def parse(cls, described: dict[str, Any], content: bytes) -> Self:
        """Return the model that `dump` wrote; anything else is a ValueError."""


class Pace(NamedTuple):
    """The number of optimiser steps, or trees, of a fit, and its learning rate.

    Examples
    --------
    >>> Pace(200, 0.1).shortened()
    Pace(steps=25, learning_rate=0.4)
    """

    steps: int
    learning_rate: float

    def shortened(self) -> Pace:
        """Return that of a short fit, whose MCDP at a strength is near that of a whole one."""
        return Pace(math.ceil(self.steps / 8), min(4.0 * self.learning_rate, max(1.0, self.learning_rate)))


AnyModel = TypeVar("AnyModel", bound=Model)


class Backend(ABC, Generic[AnyModel]):
    """Trains models of one kind on the rows of one call of `fit`.

    Attributes
    ----------
    pace : Pace
        That of a whole fit.
    """

    pace: Pace

    @abstractmethod
    def train(self, strength: float, pace: Pace, progress: Progress | None = None) -> AnyModel:
        """Return the model trained at a strength; every strength starts alike.

        `progress` is called with a record of each step, or tree.
        """

    def finish(self, model: AnyModel) -> AnyModel:
        """Return the model that is kept, and free what only training needs."""
        return model
