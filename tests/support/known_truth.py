"""A classifier whose MCDP in the population is known at every strength."""

from __future__ import annotations

from math import exp
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from localparity.models._base import Backend, BoundedClassifier, Model, Pace

# A strength reads one of so many columns of noise, so that models err independently of each other.
_COLUMNS = 97


class Fall(NamedTuple):
    """How the true MCDP falls with the strength: from `start` to `least`, the faster the larger `rate`."""

    start: float
    least: float
    rate: float = 3.0

    def __call__(self, strength: float) -> float:
        """Return the true MCDP at a strength."""
        return self.least + (self.start - self.least) * exp(-self.rate * strength)


class _KnownModel(Model):
    filename = "model.known"

    def __init__(self, gap: float, column: int) -> None:
        self.gap, self.column = gap, column

    def scores(self, features: Any) -> NDArray[Any]:
        """Two scores; the groups' shares of the higher one differ by the gap."""
        share = 0.5 + self.gap * (features[:, 0] - 0.5)
        return np.where(features[:, 1 + self.column] < share, 0.8, 0.2)

    def dump(self) -> tuple[dict[str, Any], bytes]:
        raise NotImplementedError

    @classmethod
    def parse(cls, described: dict[str, Any], content: bytes) -> _KnownModel:
        raise NotImplementedError


class _KnownBackend(Backend):
    pace = Pace(1, 1.0)

    def __init__(self, classifier: KnownTruthClassifier, *_: Any) -> None:
        self.fall = classifier.fall

    def train(self, strength: float, pace: Pace, progress: Any = None) -> _KnownModel:
        return _KnownModel(self.fall(strength), crc32(f"{strength:g}".encode()) % _COLUMNS)


class KnownTruthClassifier(BoundedClassifier):
    """Finds the strength of models that are not trained, on people whom `draw_people` draws."""

    _model_type = _KnownModel
    _backend_type = _KnownBackend

    def __init__(
        self,
        fall: Fall,
        *,
        max_mcdp: float | None = None,
        confidence: float | None = None,
        criterion: str = "demographic_parity",
        random_state: int = 0,
    ) -> None:
        self.fall, self.max_mcdp, self.confidence = fall, max_mcdp, confidence
        self.criterion, self.random_state = criterion, random_state
        self.strength, self.epsilon, self.validation_fraction = None, 0.0, 0.2
        self.patience, self.verbose = None, False

    def _default_strength(self) -> float:
        return 0.0

    @property
    def true_mcdp_(self) -> float:
        """MCDP of the model that was kept, in the population."""
        return self.fall(self.strength_)


def draw_people(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    """What `fit` takes: people of two groups, their noise, and classes that say nothing."""
    groups = rng.integers(0, 2, rows)
    noise = rng.random((rows, _COLUMNS))
    return {
        "X": np.column_stack([groups, noise]),
        "y": rng.integers(0, 2, rows),
        "sensitive_features": groups,
    }
