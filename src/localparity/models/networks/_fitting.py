"""One fit: trains networks at strengths, each with its own checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from localparity.models._bound import Judge, Trial
from localparity.models.networks._method import MethodOptions
from localparity.models.networks._methods import make_method
from localparity.models.networks._networks import Network, multilayer
from localparity.models.networks._plan import TrainingPlan
from localparity.models.networks._progress import progress_bar
from localparity.models.networks._rows import TensorRows
from localparity.models.networks._trainer import Progress, Trainer, predict_scores

if TYPE_CHECKING:
    from localparity.models.networks._classifier import LocalParityClassifier


class Fitting:
    """One call of `fit`: trains at strengths, each with its own checkpoint."""

    def __init__(
        self,
        classifier: LocalParityClassifier,
        settings: dict[str, Any],
        n_groups: int,
        seed: int,
        training: TensorRows,
    ) -> None:
        self.classifier, self.settings, self.n_groups, self.seed = classifier, settings, n_groups, seed
        self.training = training
        self.histories: dict[float, list[dict[str, float]]] = {}
        self.folder = None if classifier.checkpoint is None else Path(classifier.checkpoint)
        self.written: list[Path] = []
        self.plan = TrainingPlan(
            steps=settings["steps"],
            batch_size=settings["batch_size"],
            learning_rate=settings["learning_rate"],
            schedule=settings["schedule"],
            weight_decay=classifier.weight_decay,
            clip_norm=classifier.clip_norm,
            precision=classifier.precision,
            patience=classifier.patience,
        )

    def train(self, strength: float, validation: TensorRows | None) -> tuple[Network, list[dict[str, float]]]:
        """The network trained at a strength; all strengths start alike."""
        classifier = self.classifier
        title = f"{classifier.method} {strength:g}"
        with progress_bar(title, self.plan.steps, shown=classifier.verbose) as progress:
            trainer = self.trainer(strength, progress=progress)
            history = trainer.fit(self.training, validation)
        self.histories[strength] = history
        return trainer.network, history

    def trainer(
        self, strength: float, start: Network | None = None, progress: Progress | None = None
    ) -> Trainer:
        """What trains at a strength, from a new network or from one that is given."""
        classifier, settings = self.classifier, self.settings
        options = MethodOptions(
            temperature=settings["temperature"],
            epsilon=classifier.epsilon,
            criterion=classifier.criterion,
            search=settings["search"],
            sharpness=classifier.sharpness,
            memory=settings["memory"],
            balanced=settings["balanced"],
            alignment=classifier.alignment,
        )
        method = make_method(classifier.method, strength, self.n_groups, options)
        checkpoint = None
        if self.folder is not None:
            checkpoint = self.folder / f"strength-{strength:g}.safetensors"
            self.written.append(checkpoint)
        return Trainer(
            method,
            self._new_network() if start is None else start,
            self.plan,
            seed=self.seed + 1,
            checkpoint=checkpoint,
            progress=progress,
        )

    def try_strength(self, strength: float, validation: TensorRows, judge: Judge) -> tuple[Network, Trial]:
        """A network and what the validation part says of it."""
        network, _ = self.train(strength, validation)
        return network, judge(strength, predict_scores(network, validation.features).numpy())

    def forget_checkpoints(self) -> None:
        """Remove what only an interrupted fit needs."""
        for path in self.written:
            path.unlink(missing_ok=True)

    def _new_network(self) -> Network:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            width = self.training.features.shape[1]
            network = multilayer(width, self.settings["hidden"], self.settings["dropout"])
        return network.to(self.training.features)
