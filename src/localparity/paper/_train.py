"""From runs to results: runs are trained one by one, or several as a stack, and measured."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, vmap

from localparity._types import IntArray
from localparity._validation import InputError
from localparity.models.networks._batches import TensorRows
from localparity.models.networks._classifier import as_device
from localparity.models.networks._methods import make_method
from localparity.models.networks._networks import Network, multilayer, random_layers
from localparity.models.networks._trainer import Steps, Trainer, Training, check_finite, predict_scores
from localparity.paper._data import DATA_SETS, load_samples, paper_preprocessor
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


def train_runs(runs: Sequence[Run], device: str = "auto") -> list[tuple[Record, PartScores]]:
    """Train runs of one data set, method and preset, which may differ in strength and seed, and measure them.

    On the CPU with one thread, so that the bits do not depend on the number of cores.
    """
    target = as_device(device)
    prepared = [prepare(run.dataset, run.seed) for run in runs]
    rows = {
        run.seed: TensorRows(*(column.to(target) for column in data.training))
        for run, data in zip(runs, prepared, strict=True)
    }
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
        name = torch.cuda.get_device_name(target) if target.type == "cuda" else str(target)
        return [
            _measure(run, trainer.network, data, seconds=seconds, device=name)
            for run, trainer, data in zip(runs, trainers, prepared, strict=True)
        ]


def make_trainer(run: Run, training: TensorRows, n_groups: int) -> Trainer:
    """What `LocalParityClassifier` would train with, for a run."""
    method = make_method(run.method, run.strength, n_groups, run.settings)
    return Trainer(method, _new_network(run, training), seed=run.seed + 1)


def _new_network(run: Run, training: TensorRows) -> Network:
    """Return an untrained network, with ImageNet weights where those for images are in torch's cache."""
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


# Several runs at once: runs that differ in seed, strength or rows are trained as one stack.
#
# The tensors of the runs' networks and methods become slices of stacked tensors. One vectorised pass scores a
# batch of each run, and in each slice the sum of the runs' losses has the gradient of that run's loss. Each
# run draws from its own generators, so that it ends where it would have ended alone, up to the order in which
# numbers are added.


def fit_stack(trainers: Sequence[Trainer], rows: Sequence[TensorRows]) -> list[list[dict[str, float]]]:
    """Train runs of one method together, in place, and return what `Trainer.fit` returns for each.

    The runs share their settings, and their networks have the same layers; seeds, strengths and the number of
    features may differ. `rows` are each run's training rows, which runs may share.
    """
    _check_alike(trainers, rows)
    settings = trainers[0].method.settings
    steps = Steps(_Stack(trainers, rows), settings)
    losses = torch.stack([steps.take(step) for step in range(settings.steps)])
    for trainer in trainers:
        trainer.network.eval()
        check_finite(trainer.network, settings.steps)
    return [
        [{"step": step, "loss": loss} for step, loss in enumerate(values, start=1)]
        for values in losses.T.tolist()
    ]


class _Objective(nn.Module):
    """The objective of a run as a module, whose tensors can be exchanged for slices of a stack."""

    def __init__(self, run: Training) -> None:
        super().__init__()
        self.method, self.network = run.method, run.network
        self.objective = run.objective

    def forward(self, batch: TensorRows) -> Tensor:
        return self.objective(batch)


class _Stack:
    """Runs with stacked tensors, which `Steps` trains as if they were one."""

    def __init__(self, trainers: Sequence[Trainer], rows: Sequence[TensorRows]) -> None:
        self.runs = [
            Training(trainer.method, trainer.network, own, seed=trainer.seed)
            for trainer, own in zip(trainers, rows, strict=True)
        ]
        for run in self.runs:
            # Only for the shape of the buffers: not from the run's own generator.
            for layer in random_layers(run.network):
                layer.draw(run.batches.size, torch.Generator(run.generator.device))
        self.rows, self.starts = _joined([run.rows for run in self.runs])
        objectives = [_Objective(run) for run in self.runs]
        self.template = objectives[0]
        self.weights = _stacked([dict(objective.named_parameters()) for objective in objectives])
        self.buffers = _stacked([dict(objective.named_buffers()) for objective in objectives])
        for weight in self.weights.values():
            weight.requires_grad_()

    def parameters(self) -> list[Tensor]:
        """The stacked weights."""
        return list(self.weights.values())

    def draw(self) -> Tensor:
        """Draw for every run; the row numbers of the batches have shape (runs, rows)."""
        return torch.stack([run.draw() + start for run, start in zip(self.runs, self.starts, strict=True)])

    def loss(self, drawn: Tensor) -> Tensor:
        """The loss of each run."""
        losses: Tensor = vmap(self._loss_of_run)(self.weights, self.buffers, self.rows.take(drawn))
        return losses

    def _loss_of_run(self, weights: dict[str, Tensor], buffers: dict[str, Tensor], batch: Any) -> Tensor:
        loss: Tensor = functional_call(self.template, (weights, buffers), (TensorRows(*batch),))
        return loss


def _check_alike(trainers: Sequence[Trainer], rows: Sequence[TensorRows]) -> None:
    if len(trainers) != len(rows):
        raise InputError(f"has {len(rows)} entries, trainers has {len(trainers)}", "rows")
    first = trainers[0].method
    for method in (trainer.method for trainer in trainers):
        for name in ("name", "settings", "n_groups", "penalised"):
            one, other = getattr(first, name), getattr(method, name)
            if one != other:
                raise InputError(f"must be the same in all runs of a stack, got {one!r} and {other!r}", name)
    patience = first.settings.patience
    if patience is not None:
        raise InputError(f"must be None in a stack of runs, got {patience}", "patience")


def _joined(rows: Sequence[TensorRows]) -> tuple[TensorRows, list[int]]:
    """The rows of all runs, one after the other, shared ones once; and where those of each run start."""
    starts: dict[int, int] = {}
    parts: list[TensorRows] = []
    for own in rows:
        if id(own.features) not in starts:
            starts[id(own.features)] = sum(len(part.labels) for part in parts)
            parts.append(own)
    width = max(part.features.shape[1] for part in parts)
    features = [nn.functional.pad(part.features, (0, width - part.features.shape[1])) for part in parts]
    columns = [torch.cat(column) for column in list(zip(*parts, strict=True))[1:]]
    return TensorRows(torch.cat(features), *columns), [starts[id(own.features)] for own in rows]


def _stacked(runs: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The runs' tensors by name, stacked; each run's tensor becomes a view of its slice.

    If runs have different numbers of features, the slices of the narrower end in zeros, which stay zero
    since they meet features that are zero.
    """
    stacks = {}
    for name in runs[0]:
        tensors = [run[name] for run in runs]
        shape = [max(sizes) for sizes in zip(*(tensor.shape for tensor in tensors), strict=True)]
        stack = tensors[0].new_zeros((len(tensors), *shape))
        for part, tensor in zip(stack, tensors, strict=True):
            own = part[tuple(slice(size) for size in tensor.shape)]
            own.copy_(tensor.detach())
            tensor.data = own
        stacks[name] = stack
    return stacks
