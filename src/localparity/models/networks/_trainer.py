"""The training loop, which every method shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from localparity._progress import Forecast, Progress
from localparity._types import Criterion
from localparity._validation import InputError, as_choice, as_count, as_number
from localparity.metrics import mcdp
from localparity.models.networks._batches import TensorRows
from localparity.models.networks._distributed import average_gradients, world_size
from localparity.models.networks._methods import Method, cross_entropy, objective
from localparity.models.networks._networks import Network, random_layers
from localparity.models.networks._replay import RecordedStep

# How long and how fast to train.


@dataclass(frozen=True)
class TrainingPlan:
    """How long and how fast to train.

    Parameters
    ----------
    steps : int, default=150
        The maximum number of optimiser steps.
    batch_size : int, default=1024
        The number of rows of a batch.
    learning_rate : float, default=1e-3
        Adam's initial learning rate.
    schedule : str, default="steps"
        "steps" multiplies the learning rate by `decay_factor` after every `decay_every` steps; "cosine"
        lowers it to 0 along half a cosine.
    decay_every : int, default=50
        The number of steps at one learning rate, for the schedule "steps".
    decay_factor : float, default=0.1
        The factor of the schedule "steps".
    weight_decay : float, default=0.0
        Decoupled, as in AdamW.
    clip_norm : float, optional
        The largest norm of a gradient; a larger one is scaled down to it.
    precision : str, default="float32"
        "float32" or "float64", as the rows are; or "bfloat16" for the network's forward pass.
    check_every : int, default=25
        The number of steps between evaluations of the validation rows.
    patience : int, optional
        The number of evaluations without improvement after which training stops and returns to the best.

    Examples
    --------
    >>> TrainingPlan().steps
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
            raise InputError(f"must be > 0, got {self.clip_norm:g}", "clip_norm")
        as_choice(self.schedule, "schedule", ("steps", "cosine"))
        as_choice(self.precision, "precision", ("float32", "bfloat16", "float64"))


# A run that is ready to take steps, and the steps: what `Trainer` and stacks of runs share.


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
    """Optimiser steps of a training, replayed as a CUDA graph on one GPU unless `recorded` is False."""

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


_CHUNK_ROWS = 65_536


class Trainer:
    """Trains a network by a method.

    Parameters
    ----------
    method : Method
        What is added to the cross-entropy, and how rows are drawn.
    network : Network
        What is trained, in place.
    plan : TrainingPlan
        How long and how fast.
    seed : int, default=0
        The same seed gives the same bits on the CPU.
    progress : callable, optional
        Called after every step with a dict of the step, the loss and, if evaluated, AP and MCDP.

    Examples
    --------
    >>> import localparity as lp
    >>> from localparity.models.networks._networks import multilayer
    >>> labels, groups = (torch.arange(64) % 2).float(), torch.arange(64) % 2
    >>> rows = lp.models.networks.TensorRows(torch.randn(64, 3), labels, groups, torch.ones(64))
    >>> options = lp.models.networks.MethodOptions()
    >>> method = lp.models.networks.METHODS["erm"](0.0, n_groups=2, options=options)
    >>> plan = lp.models.networks.TrainingPlan(steps=5)
    >>> len(lp.models.networks.Trainer(method, multilayer(3, (8,), 0.0), plan).fit(rows))
    5
    """

    def __init__(
        self,
        method: Method,
        network: Network,
        plan: TrainingPlan,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.method, self.network, self.plan, self.seed = method, method.wrap(network), plan, seed
        self.progress = progress

    def fit(self, training: TensorRows, validation: TensorRows | None = None) -> list[dict[str, float]]:
        """Train the network.

        Parameters
        ----------
        training : TensorRows
            The rows to train on.
        validation : TensorRows, optional
            Rows to evaluate every `check_every` steps of the plan.

        Returns
        -------
        list of dict
            A record of each step: `step`, `loss` and, if evaluated, `average_precision` and `mcdp`.
        """
        return _Fit(self, training, validation).run()


class _Fit:
    """One call of `Trainer.fit`; `losses` are those of the steps that `history` does not have yet."""

    def __init__(self, trainer: Trainer, training: TensorRows, validation: TensorRows | None) -> None:
        self.method, self.network, self.plan = trainer.method, trainer.network, trainer.plan
        self.progress, self.validation = trainer.progress, validation
        self.training = Training(self.method, self.network, self.plan, training, seed=trainer.seed)
        self.steps = Steps(self.training, self.plan)
        self.step, self.waited, self.best = 0, 0, float("inf")
        self.losses: list[Tensor] = []
        self.history: list[dict[str, float]] = []
        self.best_network: dict[str, Tensor] = {}

    def run(self) -> list[dict[str, float]]:
        """Take the steps, and keep the best network where there is a patience."""
        plan = self.plan
        forecast = Forecast(plan.steps, "steps")
        while self.step < plan.steps and not self._is_exhausted():
            self.losses.append(self.steps.take(self.step))
            self.step += 1
            forecast.advance()
            if self.step % plan.check_every == 0 or self.step == plan.steps:
                self._check()
        if self.best_network:
            self.network.load_state_dict(self.best_network)
        self.network.eval()
        check_finite(self.network, self.step)
        return self.history

    def _check(self) -> None:
        """Record the steps since the last check, and evaluate the validation rows."""
        first = self.step - len(self.losses) + 1
        # One transfer for all of them: a step must not wait for its loss.
        values = torch.stack(self.losses).tolist()
        self.losses.clear()
        records = [{"step": first + place, "loss": loss} for place, loss in enumerate(values)]
        self.history += records
        if self.validation is not None:
            self._evaluate(self.validation)
        if self.progress is not None:
            for record in records:
                self.progress(record)

    def _evaluate(self, validation: TensorRows) -> None:
        options = self.method.options
        found = evaluate(self.network, validation, options.epsilon, options.criterion)
        self.network.train()
        self.history[-1] |= {"average_precision": found.average_precision, "mcdp": found.mcdp}
        if self.plan.patience is None:
            return
        value = found.loss + float(self.method.strength) * found.mcdp
        if value < self.best:
            self.best, self.waited = value, 0
            self.best_network = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        else:
            self.waited += 1

    def _is_exhausted(self) -> bool:
        return self.plan.patience is not None and self.waited >= self.plan.patience


@dataclass(frozen=True)
class Evaluation:
    """Cross-entropy, average precision and MCDP of some rows."""

    loss: float
    average_precision: float
    mcdp: float


def predict_scores(network: Network, features: Tensor) -> Tensor:
    """The scores of rows, on the CPU, with dropout off."""
    network.eval()
    like = next(network.parameters())
    with torch.no_grad():
        parts = [torch.sigmoid(network(part.to(like))).cpu() for part in torch.split(features, _CHUNK_ROWS)]
    return torch.cat(parts)


def evaluate(
    network: Network, rows: TensorRows, epsilon: float = 0.0, criterion: Criterion = "demographic_parity"
) -> Evaluation:
    """Evaluate a network on rows, with dropout off."""
    from sklearn.metrics import average_precision_score

    network.eval()
    with torch.no_grad():
        logits = torch.cat([network(part) for part in torch.split(rows.features, _CHUNK_ROWS)])
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
