"""From runs to results: the only part of the experiments that trains."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from localparity.models import LocalParityClassifier, Rows, Trainer
from localparity.models._encoding import TableEncoder
from localparity.models.networks._backend import NetworkBackend, as_device
from localparity.models.networks._networks import Network
from localparity.models.networks._trainer import predict_scores
from localparity.paper import Split
from localparity.paper._data import DATA_SETS, People, load_people
from localparity.paper._grids import OF_IMAGES
from localparity.paper._resnet import imagenet_weights, resnet18
from localparity.paper._result import FROM_IMAGENET, FROM_SCRATCH, Result, Scored
from localparity.paper._run import Run
from localparity.paper._stack import fit_stack


class Part(NamedTuple):
    """Encoded features of a part that is scored, with its groups and labels."""

    features: Tensor
    groups: NDArray[Any]
    labels: NDArray[np.int64]


class Parts(NamedTuple):
    """The three parts of a data set at a seed."""

    training: Rows
    n_groups: int
    validation: Part
    test: Part
    pretrained: bool = False


def train_runs(runs: Sequence[Run], device: str = "auto") -> list[Result]:
    """Train runs and measure them; on the CPU with one thread, so that the bits do not depend on the cores.

    Parameters
    ----------
    runs : sequence of Run
        Runs of one data set, method and preset, which may differ in strength and seed.
    device : str
        "auto" takes a GPU where there is one.

    Returns
    -------
    list of Result
        One a run, in their order.
    """
    place = as_device(device)
    parts = [prepare(run.dataset, run.seed) for run in runs]
    rows = {run.seed: part.training.to(place) for run, part in zip(runs, parts, strict=True)}
    with _one_thread():
        started = time.perf_counter()
        trainers = [
            make_trainer(run, rows[run.seed], part.n_groups) for run, part in zip(runs, parts, strict=True)
        ]
        if len(runs) > 1 and DATA_SETS[runs[0].dataset].kind == "table":
            fit_stack(trainers, [rows[run.seed] for run in runs])
        else:
            for run, trainer in zip(runs, trainers, strict=True):
                trainer.fit(rows[run.seed])
        seconds = (time.perf_counter() - started) / len(runs)
        return [
            _measure(trainer, part, seconds, place) for trainer, part in zip(trainers, parts, strict=True)
        ]


def make_trainer(run: Run, training: Rows, n_groups: int) -> Trainer:
    """What the estimator would train with, for a run."""
    changes = {**run.changes, "search": run.settings["search"]}
    of_images = {name: changes.pop(name) for name in OF_IMAGES if name in changes}
    classifier = LocalParityClassifier(run.method, preset=run.preset, random_state=run.seed, **changes)
    backend = NetworkBackend(classifier, training, n_groups=n_groups, seed=run.seed)
    image = DATA_SETS[run.dataset].kind == "image"
    return backend.trainer(run.strength, _image_network(run.seed, training, **of_images) if image else None)


def _image_network(seed: int, training: Rows, **settings: Any) -> Network:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return resnet18(imagenet_weights(), **settings).to(training.weights.device)


@lru_cache(maxsize=8)
def prepare(dataset: str, seed: int) -> Parts:
    """The parts of a data set at a seed, encoded as the estimator encodes them."""
    people = load_people(dataset)
    split = DATA_SETS[dataset].split(people.labels, seed)
    image = DATA_SETS[dataset].kind == "image"
    features = _images(people) if image else _encoded(people, split)
    names, codes = np.unique(people.groups, return_inverse=True)
    training = Rows(
        features[split.train],
        torch.from_numpy(people.labels[split.train]).float(),
        torch.from_numpy(codes[split.train]),
        torch.ones(len(split.train)),
    )
    validation, test = (
        Part(features[rows], people.groups[rows], people.labels[rows])
        for rows in (split.validation, split.test)
    )
    return Parts(training, len(names), validation, test, image and imagenet_weights() is not None)


def _images(people: People) -> Tensor:
    """Return images as they are, which stay bytes."""
    return torch.from_numpy(people.features)


def _encoded(people: People, split: Split) -> Tensor:
    """Return a table encoded as the training rows ask for."""
    encoder = TableEncoder().fit(people.features.iloc[split.train])
    return torch.from_numpy(encoder.transform(people.features)).float()


def _measure(trainer: Trainer, parts: Parts, seconds: float, device: torch.device) -> Result:
    import localparity

    scored = {
        name: Scored(predict_scores(trainer.network, part.features).numpy(), part.groups, part.labels)
        for name, part in (("val", parts.validation), ("test", parts.test))
    }
    metrics = {key: value for name, people in scored.items() for key, value in people.measure(name).items()}
    versions = {"localparity": localparity.__version__, "torch": torch.__version__}
    start = FROM_IMAGENET if parts.pretrained else FROM_SCRATCH
    return Result(metrics, scored["test"], seconds, _device_name(device), versions, start)


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
