"""Several runs at once: models that differ in their seed, strength or rows are trained as one stack.

The tensors of the runs' networks and methods become slices of stacked tensors, one batch of each run is
scored by one vectorised pass, and the sum of the runs' losses has, in each slice, the gradient of that run's
loss. Each run draws its rows and its chance from its own generators, so that it becomes what it would have
become alone, up to the order in which numbers are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from localparity.models.networks._method import Method
from localparity.models.networks._networks import ByChance, Network
from localparity.models.networks._rows import Rows
from localparity.models.networks._trainer import Trainer


def fit_stack(trainers: Sequence[Trainer], rows: Sequence[Rows]) -> list[list[dict[str, float]]]:
    """Train the runs of one method together.

    Parameters
    ----------
    trainers : sequence of Trainer
        Runs of one method with one plan, whose networks have the same layers; seeds, strengths and the number
        of features may differ. They are trained in place.
    rows : sequence of Rows
        Each run's training rows; runs may share them.

    Returns
    -------
    list of list of dict
        Each run's record of its steps, as `Trainer.fit` returns it.

    Examples
    --------
    >>> from localparity.models.networks._method import MethodOptions
    >>> from localparity.models.networks._methods import make_method
    >>> from localparity.models.networks._networks import multilayer
    >>> from localparity.models.networks._trainer import Plan
    >>> rows = Rows(torch.randn(64, 3), (torch.arange(64) % 2).float(), torch.arange(64) % 2, torch.ones(64))
    >>> trainers = [
    ...     Trainer(make_method("diffdp", 0.2, 2, MethodOptions()), multilayer(3, (8,), 0.5), Plan(steps=5))
    ...     for _ in range(2)
    ... ]
    >>> [len(history) for history in fit_stack(trainers, [rows, rows])]
    [5, 5]
    """
    records: list[dict[str, Any]] = list(_Stack(trainers, rows).fit(rows[0]))
    return [
        [record | {"loss": record["loss"][place]} for record in records] for place in range(len(trainers))
    ]


class _Run(nn.Module):
    """One run's objective as a module, whose tensors can be exchanged for slices of a stack."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__()
        self.method, self.network = trainer.method, trainer.network
        self.trainer_autocast = trainer.autocast

    def forward(self, batch: Rows) -> Tensor:
        method, network = self.method, self.network
        assert isinstance(method, Method)
        assert isinstance(network, Network)
        return method.objective(network, batch, self.trainer_autocast(batch.features.device))


class _Stack(Trainer):
    """A trainer with a loss for each of its runs."""

    def __init__(self, trainers: Sequence[Trainer], rows: Sequence[Rows]) -> None:
        first = trainers[0]
        super().__init__(first.method, first.network, first.plan)
        self.runs, self.rows = list(trainers), list(rows)
        _check_alike(self.runs, self.rows)

    def begin(self, training: Rows) -> None:
        """Prepare every run, and make its tensors slices of the stack's."""
        for run, rows in zip(self.runs, self.rows, strict=True):
            run.begin(rows)
            for layer in run.network.modules():
                if isinstance(layer, ByChance):
                    layer.make_room(run.batches.size)
        self.template = _Run(self.runs[0])
        self.training, self.starts = _joined(self.runs)
        modules = [_Run(run) for run in self.runs]
        self.weights = _stacked([dict(module.named_parameters()) for module in modules])
        self.buffers = _stacked([dict(module.named_buffers()) for module in modules])
        for weight in self.weights.values():
            weight.requires_grad_()

    def parameters(self) -> list[Tensor]:
        """The stacked weights."""
        return list(self.weights.values())

    def draw_rows(self) -> Tensor:
        """Draw for every run, and return the row numbers of their batches, a row a run."""
        return torch.stack(
            [run.draw_rows() + start for run, start in zip(self.runs, self.starts, strict=True)]
        )

    def loss(self) -> Tensor:
        """The runs' losses."""
        losses: Tensor = vmap(self._one)(self.weights, self.buffers, self.training.take(self.drawn))
        return losses

    def _one(self, weights: dict[str, Tensor], buffers: dict[str, Tensor], batch: Any) -> Tensor:
        loss: Tensor = functional_call(self.template, (weights, buffers), (Rows(*batch),))
        return loss


def _check_alike(runs: list[Trainer], rows: list[Rows]) -> None:
    if len(runs) != len(rows):
        raise ValueError(f"rows has {len(rows)} entries where trainers has {len(runs)}")
    for run in runs:
        for name in ("plan", "method.name", "method.options", "method.n_groups", "method.penalised"):
            one, other = (_attribute(trainer, name) for trainer in (runs[0], run))
            if one != other:
                raise ValueError(f"{name} is {other!r} where the first run of the stack has {one!r}")
        for name in ("checkpoint", "plan.patience", "plan.clip_norm"):
            if _attribute(run, name) is not None:
                raise ValueError(f"{name} is {_attribute(run, name)!r} where a stack of runs needs None")


def _attribute(trainer: Trainer, name: str) -> Any:
    value: Any = trainer
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _joined(runs: list[Trainer]) -> tuple[Rows, list[int]]:
    """The rows of all runs, one after the other, those that runs share once; and where each run's start."""
    starts: dict[int, int] = {}
    parts: list[Rows] = []
    for run in runs:
        if id(run.training.features) not in starts:
            starts[id(run.training.features)] = sum(len(part.labels) for part in parts)
            parts.append(run.training)
    width = max(part.features.shape[1] for part in parts)
    features = [nn.functional.pad(part.features, (0, width - part.features.shape[1])) for part in parts]
    columns = [torch.cat(column) for column in list(zip(*parts, strict=True))[1:]]
    return Rows(torch.cat(features), *columns), [starts[id(run.training.features)] for run in runs]


def _stacked(runs: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The runs' tensors by name, stacked; each run's tensor becomes a view of its slice.

    Where runs have different numbers of features, the slices of the narrower end in zeros: they meet features
    that are zero, so nothing moves them.
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
