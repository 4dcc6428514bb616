"""A run that is ready to take steps, and the steps: what `Trainer` and stacks of runs share."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from localparity.models.networks._distributed import average_gradients, world_size
from localparity.models.networks._method import Method, objective
from localparity.models.networks._networks import Network, random_layers
from localparity.models.networks._plan import TrainingPlan
from localparity.models.networks._replay import RecordedStep
from localparity.models.networks._rows import TensorRows


class Trainable(Protocol):
    """What `Steps` trains: a `Training`, or a stack of them."""

    rows: TensorRows

    def parameters(self) -> list[Tensor]:
        """What is trained."""

    def draw(self) -> Tensor:
        """Draw the random numbers of a step into buffers, and return the row numbers of its batch."""

    def loss(self, drawn: Tensor) -> Tensor:
        """The loss of the batch with these row numbers, or one for each run of a stack."""


class Training:
    """One run, prepared with its own seed; torch's global generator stays as it was."""

    def __init__(
        self, method: Method, network: Network, plan: TrainingPlan, rows: TensorRows, *, seed: int
    ) -> None:
        device = rows.features.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            method.prepare(rows, network)
        self.method, self.network, self.plan = method.to(rows.weights).train(), network.train(), plan
        self.generator = torch.Generator(device).manual_seed(seed)
        self.batches = method.batches(rows, plan.batch_size, seed)
        self.rows = method.reweighted(rows)

    def parameters(self) -> list[Tensor]:
        """The weights of the network and of the method."""
        return [*self.network.parameters(), *self.method.parameters()]

    def draw(self) -> Tensor:
        """Draw the random numbers of a step into buffers, and return the row numbers of its batch."""
        rows = self.batches.draw()
        for layer in random_layers(self.network):
            layer.draw(len(rows), self.generator)
        self.method.draw(self.generator)
        return rows

    def loss(self, drawn: Tensor) -> Tensor:
        """The loss of the batch with these row numbers."""
        return self.objective(self.rows.take(drawn))

    def objective(self, batch: TensorRows) -> Tensor:
        """The loss of a batch, in the plan's precision."""
        reduced = self.plan.precision == "bfloat16"
        autocast = torch.autocast(batch.features.device.type, torch.bfloat16, enabled=reduced)
        return objective(self.method, self.network, batch, autocast)


class Steps:
    """Optimiser steps of a training, replayed as a CUDA graph on one GPU unless told otherwise."""

    def __init__(self, training: Trainable, plan: TrainingPlan, *, recorded: bool | None = None) -> None:
        self.training, self.plan = training, plan
        self.device = training.rows.weights.device
        on_gpu = self.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(
            training.parameters(),
            lr=torch.tensor(plan.learning_rate, device=self.device) if on_gpu else plan.learning_rate,
            weight_decay=plan.weight_decay,
            eps=1e-8,
            capturable=on_gpu,
            # Otherwise half of a step's time goes to reading and writing the weights again and again.
            fused=on_gpu,
        )
        self._drawn = torch.zeros(0, dtype=torch.int64)
        self._step = RecordedStep(
            self._optimise, recorded=on_gpu and world_size() == 1 if recorded is None else recorded
        )

    def take(self, step: int) -> Tensor:
        """Take the step with this number, from 0; return its loss, or the losses of a stack of runs."""
        self._set_learning_rate(step)
        drawn = self.training.draw()
        # Always in the same place on the device, where a recorded step reads them.
        if self._drawn.shape != drawn.shape or self._drawn.device != self.device:
            self._drawn = drawn.to(self.device)
        else:
            self._drawn.copy_(drawn)
        return self._step()

    def _optimise(self) -> Tensor:
        self.optimizer.zero_grad()
        loss = self.training.loss(self._drawn)
        loss.sum().backward()  # type: ignore[no-untyped-call]
        parameters = self.training.parameters()
        average_gradients(parameters)
        if self.plan.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters, self.plan.clip_norm)
        self.optimizer.step()
        return loss.detach()

    def _set_learning_rate(self, step: int) -> None:
        rate = learning_rate_at(self.plan, step)
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate


def learning_rate_at(plan: TrainingPlan, step: int) -> float:
    """The learning rate of a step, counted from 0."""
    if plan.schedule == "cosine":
        return plan.learning_rate * 0.5 * (1.0 + math.cos(math.pi * step / plan.steps))
    return plan.learning_rate * plan.decay_factor ** (step // plan.decay_every)


def check_finite(network: Network, steps: int) -> None:
    """Raise if training has diverged."""
    if not all(bool(tensor.isfinite().all()) for tensor in network.parameters()):
        raise ValueError(
            f"training has diverged: the network has weights that are not finite after {steps} steps; "
            "lower learning_rate or strength"
        )
