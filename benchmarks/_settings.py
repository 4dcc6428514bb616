"""Networks trained with given settings, rather than with a preset's: what searches judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from localparity.models.networks import Trainer, TrainingSettings
from localparity.models.networks._methods import make_method
from localparity.models.networks._networks import Network, multilayer
from localparity.paper._data import DATA_SETS
from localparity.paper._resnet import resnet18
from localparity.paper._train import prepare

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
Seeded = tuple[int, float]
"""A seed and a strength."""


def settings_from(candidate: dict[str, Any]) -> TrainingSettings:
    """The settings of a candidate: its `plan`, `options` and, if named, `hidden`, `dropout` and `augment`.

    Images are augmented unless it says otherwise.
    """
    others = {name: candidate[name] for name in ("hidden", "dropout") if name in candidate}
    augment = candidate.get("augment", True)
    return TrainingSettings(**candidate["plan"], **candidate["options"], **others, augment=augment)


def train_with(
    settings: TrainingSettings, dataset: str, method: str, runs: Sequence[Seeded]
) -> list[Trainer]:
    """Train a method at several seeds and strengths; the trainers have the networks."""
    rows = {seed: prepare(dataset, seed).training.to(torch.device(DEVICE)) for seed, _ in runs}
    trainers = []
    for seed, strength in runs:
        torch.manual_seed(seed)
        network = _network(settings, dataset, rows[seed].features.shape[1]).to(DEVICE)
        own = make_method(method, strength, 2, settings)
        trainers.append(Trainer(own, network, seed=seed + 1))
    for (seed, _), trainer in zip(runs, trainers, strict=True):
        trainer.fit(rows[seed])
    return trainers


def _network(settings: TrainingSettings, dataset: str, width: int) -> Network:
    if DATA_SETS[dataset].kind == "image":
        return resnet18(augment=settings.augment)
    return multilayer(width, settings.hidden, settings.dropout)
