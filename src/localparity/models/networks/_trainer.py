"""THE loop: every method is trained by it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from localparity._types import Criterion
from localparity._validation import as_choice, as_count, as_number
from localparity.metrics import mcdp
from localparity.models.networks._checkpoint import (
    flatten_optimizer,
    load_tensors,
    restore_optimizer,
    save_tensors,
    with_prefix,
    without_prefix,
)
from localparity.models.networks._distributed import average_gradients, process_index, world_size
from localparity.models.networks._method import Method, cross_entropy
from localparity.models.networks._networks import Network
from localparity.models.networks._replay import RecordedStep
from localparity.models.networks._rows import Rows

Progress = Callable[[dict[str, float]], None]
_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class Plan:
    """How long and how fast to train.

    Parameters
    ----------
    steps : int
        How many optimiser steps are taken at most.
    batch_size : int
        How many rows a batch has.
    learning_rate : float
        Adam's, at the start.
    schedule : str
        "steps" multiplies the learning rate by `decay_factor` after every `decay_every` steps; "cosine"
        brings it down to 0 along half a cosine.
    decay_every, decay_factor : int, float
        What the schedule "steps" does.
    weight_decay : float
        Decoupled, as in AdamW.
    clip_norm : float, optional
        The largest norm of a gradient; a larger one is scaled down to it.
    precision : str
        "float32" or "float64", as the rows are; or "bfloat16" for the network's forward pass.
    check_every : int
        After so many steps the validation rows are evaluated, and a checkpoint is written.
    patience : int, optional
        After so many evaluations without a better one, training stops and goes back to the best.

    Examples
    --------
    >>> Plan().steps
    150
    """

    steps: int = 150
    batch_size: int = 1024
    learning_rate: float = 1e-3
    schedule: str = "steps"
    decay_every: int = 50
    decay_factor: float = 0.1
    weight_decay: float = 0.0
    clip_norm: float | None = None
    precision: str = "float32"
    check_every: int = 25
    patience: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "check_every"):
            as_count(getattr(self, name), name)
        if self.patience is not None:
            as_count(self.patience, "patience")
        if self.clip_norm is not None and not as_number(self.clip_norm, "clip_norm") > 0.0:
            raise ValueError(f"clip_norm is {self.clip_norm:g} where a number above 0 is expected")
        as_choice(self.schedule, "schedule", ("steps", "cosine"))
        as_choice(self.precision, "precision", ("float32", "bfloat16", "float64"))

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        if self.schedule == "cosine":
            return self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * step / self.steps))
        return self.learning_rate * self.decay_factor ** (step // self.decay_every)


@dataclass
class Evaluation:
    """How good and how even the scores of some rows are."""

    loss: float
    average_precision: float
    mcdp: float


@dataclass
class _Run:
    """What changes while training; `losses` are those that `history` does not have yet."""

    step: int = 0
    best: float = float("inf")
    waited: int = 0
    losses: list[Tensor] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)
    best_network: dict[str, Tensor] = field(default_factory=dict)


class Trainer:
    """Trains a network by a method.

    Parameters
    ----------
    method : Method
        What is added to the cross-entropy, and how rows are drawn.
    network : Network
        What is trained, in place.
    plan : Plan
        How long and how fast.
    seed : int
        The same seed gives the same bits on the CPU.
    checkpoint : path, optional
        Where to write what is needed to go on, at every evaluation; a run that finds it there goes on.
    progress : callable, optional
        Called after every step with the step, the loss and what is known of AP and MCDP.

    Examples
    --------
    >>> from localparity.models.networks._method import MethodOptions
    >>> from localparity.models.networks._methods import make_method
    >>> from localparity.models.networks._networks import multilayer
    >>> rows = Rows(torch.randn(64, 3), (torch.arange(64) % 2).float(), torch.arange(64) % 2, torch.ones(64))
    >>> method = make_method("erm", 0.0, 2, MethodOptions())
    >>> trainer = Trainer(method, multilayer(3, (8,), 0.0), Plan(steps=5))
    >>> len(trainer.fit(rows))
    5
    """

    def __init__(
        self,
        method: Method,
        network: Network,
        plan: Plan,
        *,
        seed: int = 0,
        checkpoint: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.method, self.network, self.plan, self.seed = method, method.wrap(network), plan, seed
        self.checkpoint, self.progress = checkpoint, progress
        self.drawn = torch.zeros(0, dtype=torch.int64)

    def fit(self, training: Rows, validation: Rows | None = None) -> list[dict[str, float]]:
        """Train, and return a record of each step: its number, its loss and, where evaluated, AP and MCDP."""
        plan, run = self.plan, _Run()
        self.begin(training)
        optimizer = self._optimizer(training.weights.device)
        step = RecordedStep(lambda: self._step(optimizer), recorded=_can_be_recorded(training))
        print_of_run = "" if self.checkpoint is None else self._fingerprint(training)
        if self.checkpoint is not None and self.checkpoint.exists():
            self._resume(run, optimizer, print_of_run)
        while run.step < plan.steps and not self._exhausted(run):
            _set_learning_rate(optimizer, plan.learning_rate_at(run.step))
            self.draw()
            run.losses.append(step())
            run.step += 1
            if run.step % plan.check_every == 0 or run.step == plan.steps:
                self._check(run, validation)
                self._save(run, optimizer, print_of_run)
        if run.best_network:
            self.network.load_state_dict(run.best_network)
        self.network.eval()
        if not all(bool(tensor.isfinite().all()) for tensor in self.network.parameters()):
            raise ValueError(
                f"training has diverged: the network has weights that are not finite after {run.step} steps; "
                "lower learning_rate or strength"
            )
        return run.history

    def begin(self, training: Rows) -> None:
        """Prepare the method, and set where rows and chance come from."""
        device = training.features.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(self.seed)
            self.method.prepare(training, self.network)
        self.method.to(training.weights).train()
        self.network.train()
        self.generator = torch.Generator(device).manual_seed(self.seed)
        self.batches = self.method.batches(training, self.plan.batch_size, self.seed)
        self.training = self.method.reweighted(training)

    def parameters(self) -> list[Tensor]:
        """What is trained."""
        return [*self.network.parameters(), *self.method.parameters()]

    def draw(self) -> None:
        """Draw all that a step leaves to chance: the rows of its batch, and what is kept in buffers."""
        self.drawn = self._take_note(self.draw_rows())

    def draw_rows(self) -> Tensor:
        """Draw into the buffers, and return the row numbers of the batch."""
        rows = self.batches.draw()
        self.network.draw(len(rows), self.generator)
        self.method.draw(self.generator)
        return rows

    def loss(self) -> Tensor:
        """The loss of the batch that was drawn."""
        batch = self.training.take(self.drawn)
        return self.method.objective(self.network, batch, self.autocast(batch.features.device))

    def autocast(self, device: torch.device) -> AbstractContextManager[Any]:
        """The precision of the network's forward pass."""
        return torch.autocast(device.type, torch.bfloat16, enabled=self.plan.precision == "bfloat16")

    def _take_note(self, rows: Tensor) -> Tensor:
        """The row numbers on the device, always in the same place: a recorded step reads them there."""
        device = self.training.weights.device
        if self.drawn.shape != rows.shape or self.drawn.device != device:
            return rows.to(device)
        return self.drawn.copy_(rows)

    def _optimizer(self, device: torch.device) -> torch.optim.Optimizer:
        plan, on_gpu = self.plan, device.type == "cuda"
        rate = torch.tensor(plan.learning_rate, device=device) if on_gpu else plan.learning_rate
        return torch.optim.AdamW(
            self.parameters(),
            lr=rate,
            weight_decay=plan.weight_decay,
            eps=1e-8,
            capturable=on_gpu,
            # Otherwise half of a step's time goes to reading and writing the weights again and again.
            fused=on_gpu,
        )

    def _step(self, optimizer: torch.optim.Optimizer) -> Tensor:
        """One step on the batch that was drawn; its loss, or the losses of a stack's runs."""
        optimizer.zero_grad()
        loss = self.loss()
        loss.sum().backward()  # type: ignore[no-untyped-call]
        average_gradients(self.parameters())
        if self.plan.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters(), self.plan.clip_norm)
        optimizer.step()
        return loss.detach()

    def _check(self, run: _Run, validation: Rows | None) -> None:
        """Note the steps since the last check, and evaluate the validation rows."""
        first = run.step - len(run.losses) + 1
        # One transfer for all of them: a step must not wait for its loss.
        values = torch.stack(run.losses).tolist()
        run.losses.clear()
        records = [{"step": first + place, "loss": loss} for place, loss in enumerate(values)]
        run.history += records
        if validation is not None:
            self._evaluate(run, validation)
        if self.progress is not None:
            for record in records:
                self.progress(record)

    def _evaluate(self, run: _Run, validation: Rows) -> None:
        """Evaluate the validation rows, and note whether they are the best so far."""
        found = evaluate(self.network, validation, self.method.options.epsilon, self.method.options.criterion)
        self.network.train()
        run.history[-1] |= {"average_precision": found.average_precision, "mcdp": found.mcdp}
        if self.plan.patience is None:
            return
        value = found.loss + float(self.method.strength) * found.mcdp
        if value < run.best:
            run.best, run.waited = value, 0
            run.best_network = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        else:
            run.waited += 1

    def _exhausted(self, run: _Run) -> bool:
        return self.plan.patience is not None and run.waited >= self.plan.patience

    def _save(self, run: _Run, optimizer: torch.optim.Optimizer, print_of_run: str) -> None:
        if self.checkpoint is None or process_index() > 0:
            return
        tensors = {
            **with_prefix("network", self.network.state_dict()),
            **with_prefix("method", self.method.state_dict()),
            **with_prefix("optimizer", flatten_optimizer(optimizer)),
            **with_prefix("batches", self.batches.state()),
            **with_prefix("best", run.best_network),
            "random": self.generator.get_state(),
        }
        values = {
            "run": print_of_run,
            "step": run.step,
            "best": None if run.best == float("inf") else run.best,
            "waited": run.waited,
            "history": run.history,
        }
        save_tensors(self.checkpoint, tensors, values)

    def _resume(self, run: _Run, optimizer: torch.optim.Optimizer, print_of_run: str) -> None:
        assert self.checkpoint is not None
        tensors, values = load_tensors(self.checkpoint)
        if values["run"] != print_of_run:
            raise ValueError(
                f"{self.checkpoint} is the checkpoint of a run with other data or settings; "
                "delete it, or name another, to start anew"
            )
        self.network.load_state_dict(without_prefix("network", tensors))
        self.method.load_state_dict(without_prefix("method", tensors))
        restore_optimizer(optimizer, without_prefix("optimizer", tensors))
        self.batches.restore(without_prefix("batches", tensors))
        self.generator.set_state(tensors["random"])
        run.step, run.waited, run.history = values["step"], values["waited"], values["history"]
        run.best = float("inf") if values["best"] is None else values["best"]
        run.best_network = without_prefix("best", tensors)

    def _fingerprint(self, training: Rows) -> str:
        """What tells this run from another: settings, data and the network at the start."""
        method = self.method
        settings = [
            asdict(self.plan),
            method.name,
            float(method.strength),
            method.n_groups,
            asdict(method.options),
            self.seed,
            str(self.network),
        ]
        digest = hashlib.sha256(json.dumps(settings).encode())
        for tensor in (*training, *self.network.state_dict().values()):
            digest.update(np.ascontiguousarray(tensor.detach().cpu().numpy()).tobytes())
        return digest.hexdigest()


def _can_be_recorded(training: Rows) -> bool:
    return training.weights.is_cuda and world_size() == 1


def _set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def predict_scores(network: Network, features: Tensor) -> Tensor:
    """The scores of rows, on the CPU, with dropout off."""
    network.eval()
    like = next(network.parameters())
    with torch.no_grad():
        parts = [torch.sigmoid(network(part.to(like))).cpu() for part in torch.split(features, _ROWS_AT_ONCE)]
    return torch.cat(parts)


def evaluate(
    network: Network, rows: Rows, epsilon: float = 0.0, criterion: Criterion = "demographic_parity"
) -> Evaluation:
    """Cross-entropy, average precision and MCDP of rows, with dropout off."""
    from sklearn.metrics import average_precision_score

    network.eval()
    with torch.no_grad():
        logits = torch.cat([network(part) for part in torch.split(rows.features, _ROWS_AT_ONCE)])
        loss = float(cross_entropy(logits, rows))
    labels, groups, weights = (column.cpu().numpy() for column in (rows.labels, rows.groups, rows.weights))
    scores = torch.sigmoid(logits).cpu().numpy()
    return Evaluation(
        loss,
        float(average_precision_score(labels, scores, sample_weight=weights)),
        mcdp(
            labels,
            scores,
            sensitive_features=groups,
            epsilon=epsilon,
            criterion=criterion,
            sample_weight=weights,
        ),
    )
