"""Networks as a backend: trained at strengths, scored and stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor

from localparity._progress import Progress
from localparity._types import FloatArray
from localparity._validation import InputError, require
from localparity.models._base import Backend, Model, Pace
from localparity.models._rows import TrainingRows
from localparity.models.networks._batches import TensorRows
from localparity.models.networks._methods import MethodOptions, make_method
from localparity.models.networks._networks import Network, multilayer
from localparity.models.networks._trainer import Trainer, TrainingPlan, predict_scores

if TYPE_CHECKING:
    from localparity.models.networks._classifier import LocalParityClassifier


@dataclass(frozen=True)
class NetworkModel(Model):
    """A trained network, and a record of each step of its training."""

    filename: ClassVar[str] = "model.safetensors"

    network: Network
    history: list[dict[str, float]] = field(default_factory=list)

    def scores(self, features: FloatArray) -> FloatArray:
        """Return the probability of the second class for each row, in the network's precision."""
        scores: FloatArray = predict_scores(self.network, torch.from_numpy(features)).numpy()
        return scores

    def dump(self) -> tuple[dict[str, Any], bytes]:
        """Return the widths of the layers, and the tensors."""
        tensors = {name: tensor.detach().contiguous() for name, tensor in self.network.state_dict().items()}
        weights = list(self.network.hidden_weights().values())
        width = (weights[0] if weights else self.network.head.weight).shape[1]
        described = {"width": int(width), "hidden": [len(weight) for weight in weights]}
        return described, require("safetensors.torch", extra="train").save(tensors)

    @classmethod
    def parse(cls, described: dict[str, Any], content: bytes) -> Self:
        """Return the model that `dump` wrote."""
        safetensors = require("safetensors", extra="train")
        try:
            tensors = require("safetensors.torch", extra="train").load(content)
        except safetensors.SafetensorError as error:
            raise ValueError(f"{cls.filename} cannot be read: {error}") from error
        return cls(_network(described["width"], described["hidden"], tensors))


def _network(width: int, hidden: Sequence[int], tensors: Mapping[str, Tensor]) -> Network:
    """Return the network of some tensors, whose widths are checked first: memory might not hold others."""
    shapes = [tuple(tensor.shape) for tensor in tensors.values() if tensor.ndim == 2]
    widths = [width, *hidden, 1]
    if sorted(shapes) != sorted(zip(widths[1:], widths[:-1], strict=True)):
        raise InputError(f"is {hidden} and width {width}, the tensors have shapes {shapes}", "hidden")
    network = multilayer(width, hidden, 0.0).to(tensors["head.weight"].dtype)
    network.load_state_dict(tensors)
    network.eval()
    return network


class NetworkBackend(Backend[NetworkModel]):
    """Trains networks with the parameters of a classifier."""

    def __init__(
        self,
        classifier: LocalParityClassifier,
        training: TensorRows,
        validation: TensorRows | None = None,
        *,
        n_groups: int,
        seed: int,
    ) -> None:
        self.classifier, self.training, self.validation = classifier, training, validation
        self.n_groups, self.seed = n_groups, seed
        self.settings = settings = classifier._settings()
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
        self.pace = Pace(self.plan.steps, self.plan.learning_rate)
        self.options = MethodOptions(
            temperature=settings["temperature"],
            epsilon=classifier.epsilon,
            criterion=classifier.criterion,
            search=settings["search"],
            sharpness=classifier.sharpness,
            memory=settings["memory"],
            balanced=settings["balanced"],
            alignment=classifier.alignment,
        )

    def train(self, strength: float, pace: Pace, progress: Progress | None = None) -> NetworkModel:
        """Return the network trained at a strength; all strengths start alike."""
        method = make_method(self.classifier.method, strength, self.n_groups, self.options)
        plan = replace(self.plan, **pace._asdict())
        trainer = Trainer(method, self._new_network(), plan, seed=self.seed + 1, progress=progress)
        history = trainer.fit(self.training, self.validation)
        return NetworkModel(trainer.network, history)

    def finish(self, model: NetworkModel) -> NetworkModel:
        """Return the model on the CPU."""
        model.network.cpu()
        return model

    def _new_network(self) -> Network:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            width = self.training.features.shape[1]
            network = multilayer(width, self.settings["hidden"], self.settings["dropout"])
        return network.to(self.training.features)


def as_tensors(rows: TrainingRows, precision: str, device: torch.device) -> TensorRows:
    """Return rows as tensors on a device."""
    dtype = torch.float64 if precision == "float64" else torch.float32
    return TensorRows(
        torch.from_numpy(rows.features).to(dtype),
        torch.from_numpy(rows.labels).to(dtype),
        torch.from_numpy(rows.groups),
        torch.from_numpy(rows.weights).to(dtype),
    ).to(device)


# The device to train on.


def as_device(name: str) -> torch.device:
    """The torch device with this name; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"must be 'auto' or a torch device, got {name!r}: {error}", "device") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {name!r} needs CUDA, which this machine or this build of torch lacks")
    return device
