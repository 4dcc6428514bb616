"""From runs to results: the only module here that trains."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from localparity._types import IntArray
from localparity.models.networks._devices import as_device
from localparity.models.networks._method import MethodOptions
from localparity.models.networks._methods import make_method
from localparity.models.networks._networks import Network, multilayer
from localparity.models.networks._plan import TrainingPlan
from localparity.models.networks._rows import TensorRows
from localparity.models.networks._trainer import Trainer, predict_scores
from localparity.paper._data import DATA_SETS, load_samples
from localparity.paper._preparation import paper_preprocessor
from localparity.paper._resnet import imagenet_weights, resnet18
from localparity.paper._result import FROM_IMAGENET, FROM_SCRATCH, PartScores, Result
from localparity.paper._run import Run
from localparity.paper._stack import fit_stack


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


def train_runs(runs: Sequence[Run], device: str = "auto") -> list[Result]:
    """Train runs of one data set, method and preset, which may differ in strength and seed, and measure them.

    On the CPU with one thread, so that the bits do not depend on the number of cores.
    """
    place = as_device(device)
    prepared = [prepare(run.dataset, run.seed) for run in runs]
    rows = {run.seed: data.training.to(place) for run, data in zip(runs, prepared, strict=True)}
    with _one_thread():
        started = time.perf_counter()
        trainers = [
            make_trainer(run, rows[run.seed], data.n_groups) for run, data in zip(runs, prepared, strict=True)
        ]
        if len(runs) > 1 and DATA_SETS[runs[0].dataset].kind == "table":
            fit_stack(trainers, [rows[run.seed] for run in runs])
        else:
            for run, trainer in zip(runs, trainers, strict=True):
                trainer.fit(rows[run.seed])
        seconds = (time.perf_counter() - started) / len(runs)
        results = []
        for run, trainer, data in zip(runs, trainers, prepared, strict=True):
            scores = _score(trainer, data)
            metrics = {name: value for part in scores for name, value in scores[part].measure(part).items()}
            start = _start_of(DATA_SETS[run.dataset].kind)
            results.append(Result(metrics, scores["test"], seconds, _device_name(place), _versions(), start))
        return results


def make_trainer(run: Run, training: TensorRows, n_groups: int) -> Trainer:
    """What `LocalParityClassifier` would train with, for a run."""
    plan, options = (
        TrainingPlan(**_fields_in(run, TrainingPlan)),
        MethodOptions(**_fields_in(run, MethodOptions)),
    )
    method = make_method(run.method, run.strength, n_groups, options)
    return Trainer(method, _new_network(run, training), plan, seed=run.seed + 1)


def _fields_in(run: Run, kind: type[TrainingPlan | MethodOptions]) -> dict[str, Any]:
    """Those of a run's settings that are fields of a data class."""
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in run.settings.items() if name in names}


def _new_network(run: Run, training: TensorRows) -> Network:
    settings = run.settings
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        if DATA_SETS[run.dataset].kind == "image":
            network = resnet18(imagenet_weights(), augment=settings.get("augment", False))
        else:
            network = multilayer(training.features.shape[1], settings["hidden"], settings["dropout"])
    return network.to(training.weights)


@lru_cache(maxsize=8)
def prepare(dataset: str, seed: int) -> PreparedData:
    """The parts of a data set at a seed, encoded as the estimator encodes them; images stay bytes."""
    samples = load_samples(dataset)
    split = DATA_SETS[dataset].split(samples.labels, seed)
    if DATA_SETS[dataset].kind == "image":
        features = torch.from_numpy(samples.features)
    else:
        encoder = paper_preprocessor().fit(samples.features.iloc[split.train])
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


def _score(trainer: Trainer, data: PreparedData) -> dict[str, PartScores]:
    return {
        name: PartScores(predict_scores(trainer.network, part.features).numpy(), part.groups, part.labels)
        for name, part in (("val", data.validation), ("test", data.test))
    }


def _versions() -> dict[str, str]:
    import localparity

    return {"localparity": localparity.__version__, "torch": torch.__version__}


def _start_of(kind: str) -> str:
    return FROM_IMAGENET if kind == "image" and imagenet_weights() is not None else FROM_SCRATCH


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
