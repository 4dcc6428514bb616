"""Several runs at once: runs that differ in seed, strength or rows are trained as one stack.

The tensors of the runs' networks and methods become slices of stacked tensors, one batch of each run is
scored by one vectorised pass, and the sum of the runs' losses has, in each slice, the gradient of that run's
loss. Each run draws from its own generators, so that it ends where it would have ended alone, up to the order
in which numbers are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from localparity._validation import InputError
from localparity.models.networks._batches import TensorRows
from localparity.models.networks._networks import random_layers
from localparity.models.networks._trainer import Steps, Trainer, Training, check_finite


def fit_stack(trainers: Sequence[Trainer], rows: Sequence[TensorRows]) -> list[list[dict[str, float]]]:
    """Train runs of one method together, in place, and return what `Trainer.fit` returns for each.

    The runs share a plan, and their networks have the same layers; seeds, strengths and the number of
    features may differ. `rows` are each run's training rows, which runs may share.
    """
    _check_alike(trainers, rows)
    plan = trainers[0].plan
    steps = Steps(_Stack(trainers, rows), plan)
    losses = torch.stack([steps.take(step) for step in range(plan.steps)])
    for trainer in trainers:
        trainer.network.eval()
        check_finite(trainer.network, plan.steps)
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
            Training(trainer.method, trainer.network, trainer.plan, own, seed=trainer.seed)
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
    for trainer in trainers:
        for name in ("plan", "method.name", "method.options", "method.n_groups", "method.penalised"):
            one, other = (_attribute(each, name) for each in (trainers[0], trainer))
            if one != other:
                raise InputError(f"must be the same in all runs of a stack, got {one!r} and {other!r}", name)
        for name in ("plan.patience", "plan.clip_norm"):
            if (found := _attribute(trainer, name)) is not None:
                raise InputError(f"must be None in a stack of runs, got {found!r}", name)


def _attribute(trainer: Trainer, name: str) -> Any:
    value: Any = trainer
    for part in name.split("."):
        value = getattr(value, part)
    return value


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
        for place, tensor in enumerate(tensors):
            part = stack[place]
            for axis, size in enumerate(tensor.shape):
                part = part.narrow(axis, 0, size)
            part.copy_(tensor.detach())
            tensor.data = part
        stacks[name] = stack
    return stacks
