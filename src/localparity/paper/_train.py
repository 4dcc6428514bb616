"""From runs to results: a run is trained and measured."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from localparity._types import IntArray
from localparity.models._encoding import TableEncoder
from localparity.models.networks._batches import TensorRows
from localparity.models.networks._classifier import as_device
from localparity.models.networks._methods import make_method
from localparity.models.networks._networks import Network, multilayer
from localparity.models.networks._trainer import Trainer, predict_scores
from localparity.paper._data import DATA_SETS, load_samples
from localparity.paper._resnet import imagenet_weights, resnet18
from localparity.paper._runs import Run
from localparity.paper._store import FROM_IMAGENET, FROM_SCRATCH, PartScores, Record


class EncodedPart(NamedTuple):
    """The encoded features of a validation or test part, with its groups and labels."""

    features: Tensor
    groups: NDArray[Any]
    labels: IntArray


class PreparedData(NamedTuple):
    """The three parts of a data set at a seed."""

    training: TensorRows
    n_groups: int
    validation: EncodedPart
    test: EncodedPart


def train_run(run: Run, device: str = "auto") -> tuple[Record, PartScores]:
    """Train a run and measure it; on the CPU with one thread, so that the bits do not depend on the cores."""
    target, data = as_device(device), prepare(run.dataset, run.seed)
    rows = TensorRows(*(column.to(target) for column in data.training))
    with _one_thread():
        started = time.perf_counter()
        trainer = make_trainer(run, rows, data.n_groups)
        trainer.fit(rows)
        seconds = time.perf_counter() - started
        name = torch.cuda.get_device_name(target) if target.type == "cuda" else str(target)
        return _measure(run, trainer.network, data, seconds=seconds, device=name)


def make_trainer(run: Run, training: TensorRows, n_groups: int) -> Trainer:
    """What `LocalParityClassifier` would train with, for a run."""
    method = make_method(run.method, run.strength, n_groups, run.settings)
    return Trainer(method, _new_network(run, training), seed=run.seed + 1)


def _new_network(run: Run, training: TensorRows) -> Network:
    """An untrained network; one for images has ImageNet weights if they are in torch's cache."""
    settings = run.settings
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        if DATA_SETS[run.dataset].kind == "image":
            network = resnet18(imagenet_weights(), augment=settings.augment)
        else:
            network = multilayer(training.features.shape[1], settings.hidden, settings.dropout)
    return network.to(training.weights)


@lru_cache(maxsize=8)
def prepare(dataset: str, seed: int) -> PreparedData:
    """The parts of a data set at a seed, encoded as the estimator encodes them; images stay bytes."""
    samples = load_samples(dataset)
    split = DATA_SETS[dataset].split(samples.labels, seed)
    if DATA_SETS[dataset].kind == "image":
        features = torch.from_numpy(samples.features)
    else:
        encoder = TableEncoder().fit(samples.features.iloc[split.train])
        features = torch.from_numpy(encoder.transform(samples.features)).to(torch.float32)
    names, codes = np.unique(samples.groups, return_inverse=True)
    training = TensorRows(
        features[split.train],
        torch.from_numpy(samples.labels[split.train]).float(),
        torch.from_numpy(codes[split.train]),
        torch.ones(len(split.train)),
    )
    validation, test = (
        EncodedPart(features[rows], samples.groups[rows], samples.labels[rows])
        for rows in (split.validation, split.test)
    )
    return PreparedData(training, len(names), validation, test)


def _measure(
    run: Run, network: Network, data: PreparedData, *, seconds: float, device: str
) -> tuple[Record, PartScores]:
    """The record of a trained run, and the scores of its test part."""
    import localparity

    validation, test = (
        PartScores(predict_scores(network, part.features).numpy(), part.groups, part.labels)
        for part in (data.validation, data.test)
    )
    pretrained = DATA_SETS[run.dataset].kind == "image" and imagenet_weights() is not None
    record = Record(
        run,
        {**validation.measure("val"), **test.measure("test")},
        seconds,
        device,
        versions={"localparity": localparity.__version__, "torch": torch.__version__},
        start=FROM_IMAGENET if pretrained else FROM_SCRATCH,
    )
    return record, test


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
