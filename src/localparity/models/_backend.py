"""What one kind of model does for `BoundedClassifier`: it is trained, gives scores and is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Self, TypeVar

from localparity._types import FloatArray


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


AnyModel = TypeVar("AnyModel", bound=Model)


class Backend(ABC, Generic[AnyModel]):
    """Trains models of one kind on the rows of one call of `fit`."""

    @abstractmethod
    def train(self, strength: float) -> AnyModel:
        """Return the model trained at a strength; every strength starts alike."""

    def finish(self, model: AnyModel) -> AnyModel:
        """Return the model that is kept, and free what only training needs."""
        return model
