"""What the classifiers of boosted trees share, whatever the library."""

from __future__ import annotations

from typing import Any, ClassVar

from localparity._types import Criterion, Seed
from localparity.models._base import BoundedClassifier
from localparity.models._rows import TrainingRows
from localparity.models.trees._backend import TreeBackend, TreeModel
from localparity.models.trees._objective import TEMPERATURE

_STRENGTH = 0.2


class BoostedClassifier(BoundedClassifier):
    """The parameters of boosted trees; see `LocalParityXGBClassifier`."""

    _model_type: ClassVar[type[TreeModel]]
    _backend_type: ClassVar[type[TreeBackend]]
    model_: TreeModel
    _unsaved: ClassVar[dict[str, Any]] = {"verbose": False}

    def __init__(
        self,
        strength: float | None = None,
        *,
        max_mcdp: float | None = None,
        confidence: float | None = None,
        epsilon: float = 0.0,
        criterion: Criterion = "demographic_parity",
        temperature: float = TEMPERATURE,
        search: str | None = None,
        sharpness: float = 8.0,
        n_estimators: int = 200,
        learning_rate: float = 0.1,
        patience: int | None = None,
        validation_fraction: float = 0.2,
        n_jobs: int | None = None,
        random_state: Seed = None,
        booster_params: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.strength = strength
        self.max_mcdp = max_mcdp
        self.confidence = confidence
        self.epsilon = epsilon
        self.criterion = criterion
        self.temperature = temperature
        self.search = search
        self.sharpness = sharpness
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.booster_params = booster_params
        self.verbose = verbose

    @property
    def booster_(self) -> Any:
        """The library's own booster."""
        return self.model_.booster

    @property
    def start_(self) -> float:
        """The margin before the first tree."""
        return self.model_.start

    @property
    def n_estimators_(self) -> int:
        """How many trees there are."""
        return self.model_.n_trees()

    def _default_strength(self) -> float:
        return _STRENGTH

    def _make_backend(self, rows: TrainingRows, validation: TrainingRows | None, seed: int) -> TreeBackend:
        return self._backend_type(self, rows, validation, seed)
