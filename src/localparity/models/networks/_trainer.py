"""The training loop, which every method shares."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from localparity._progress import Progress
from localparity.metrics import mcdp
from localparity.models._bound import Measured
from localparity.models.networks._batches import TensorRows
from localparity.models.networks._methods import Method, TrainingSettings, cross_entropy, objective
from localparity.models.networks._networks import Network, random_layers

_STEPS_BEFORE_RECORDING = 3


class Training:
    """A run that is ready to take optimiser steps, prepared with its own seed.

    Torch's global generator stays as it was. On a GPU a step is hundreds of small kernels, and launching them
    takes several times as long as running them: after a few steps they are recorded as a CUDA graph, and from
    then on launched together, unless `recorded` is False.
    """

    def __init__(self, method: Method, network: Network, rows: TensorRows, *, seed: int) -> None:
        self.device = rows.weights.device
        self.recorded = on_gpu = self.device.type == "cuda"
        with torch.random.fork_rng(devices=[self.device] if on_gpu else []):
            torch.manual_seed(seed)
            method.prepare(rows, network)
        self.method, self.network = method.to(rows.weights).train(), network.train()
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.batches, self.rows = method.batches(rows, seed)
        self.settings, rate = method.settings, method.settings.learning_rate
        self.optimizer = torch.optim.AdamW(
            self.parameters(),
            lr=torch.tensor(rate, device=self.device) if on_gpu else rate,
            weight_decay=self.settings.weight_decay,
            eps=1e-8,
            capturable=on_gpu,
            # Otherwise half of a step's time goes to reading and writing the weights again and again.
            fused=on_gpu,
        )
        self._steps_taken = 0
        self._graph: Any = None
        self._drawn = torch.zeros(0, dtype=torch.int64)

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

    def take(self, step: int) -> Tensor:
        """Take the step with this number, from 0, and return its loss."""
        rate = learning_rate_at(self.settings, step)
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        drawn = self.draw()
        # Always in the same place on the device, where a recorded step reads them.
        if self._drawn.shape != drawn.shape or self._drawn.device != self.device:
            self._drawn = drawn.to(self.device)
        else:
            self._drawn.copy_(drawn)
        return self._replay() if self.recorded else self._optimise()

    def _replay(self) -> Tensor:
        self._steps_taken += 1
        if self._steps_taken <= _STEPS_BEFORE_RECORDING:
            # On a stream of its own, as CUDA requires before a recording.
            stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                loss = self._optimise()
            torch.cuda.current_stream().wait_stream(stream)
            return loss
        if self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
                self._loss = self._optimise()
        self._graph.replay()
        # The next step writes to the same memory.
        return self._loss.clone()

    def _optimise(self) -> Tensor:
        self.optimizer.zero_grad()
        reduced = self.settings.precision == "bfloat16"
        autocast = torch.autocast(self.device.type, torch.bfloat16, enabled=reduced)
        loss = objective(self.method, self.network, self.rows.take(self._drawn), autocast)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()


def learning_rate_at(settings: TrainingSettings, step: int) -> float:
    """The learning rate of a step, counted from 0."""
    if settings.schedule == "cosine":
        return settings.learning_rate * 0.5 * (1.0 + math.cos(math.pi * step / settings.steps))
    return settings.learning_rate * settings.decay_factor ** (step // settings.decay_every)


class Trainer:
    """Trains a network by a method, in place; the same seed gives the same bits on the CPU.

    `progress` is called with the record of every step.
    """

    def __init__(
        self, method: Method, network: Network, *, seed: int = 0, progress: Progress | None = None
    ) -> None:
        self.method, self.network, self.seed = method, network, seed
        self.progress = progress

    def fit(self, training: TensorRows, validation: TensorRows | None = None) -> list[dict[str, float]]:
        """Train on rows, evaluate others every `check_every` steps, and return a record of each step.

        A record has `step`, `loss` and, where evaluated, `average_precision` and `mcdp`.
        """
        settings = self.method.settings
        run = Training(self.method, self.network, training, seed=self.seed)
        best, best_network, checks_without_gain = math.inf, dict[str, Tensor](), 0
        history, losses = list[dict[str, float]](), list[Tensor]()
        for step in range(1, settings.steps + 1):
            losses.append(run.take(step - 1))
            if step % settings.check_every and step < settings.steps:
                continue
            # One transfer for all of them: a step must not wait for its loss.
            values = torch.stack(losses).tolist()
            history += (
                {"step": number, "loss": loss} for number, loss in enumerate(values, len(history) + 1)
            )
            losses.clear()
            if validation is not None:
                loss, measured = evaluate(self.network, validation, settings)
                self.network.train()
                history[-1] |= {"average_precision": measured.average_precision, "mcdp": measured.mcdp}
                loss += float(self.method.strength) * measured.mcdp
                if settings.patience is not None and loss < best:
                    best, checks_without_gain = loss, 0
                    best_network = {name: one.clone() for name, one in self.network.state_dict().items()}
                else:
                    checks_without_gain += 1
            if self.progress is not None:
                for record in history[-len(values) :]:
                    self.progress(record)
            if checks_without_gain == settings.patience:
                break
        if best_network:
            self.network.load_state_dict(best_network)
        self.network.eval()
        if not all(bool(tensor.isfinite().all()) for tensor in self.network.parameters()):
            raise ValueError(
                f"training has diverged: the network has weights that are not finite after {len(history)} "
                "steps; lower learning_rate or strength"
            )
        return history


_CHUNK_ROWS = 65_536


def predict_scores(network: Network, features: Tensor) -> Tensor:
    """The scores of rows, on the CPU, with dropout off."""
    network.eval()
    like = next(network.parameters())
    with torch.no_grad():
        parts = [torch.sigmoid(network(part.to(like))).cpu() for part in torch.split(features, _CHUNK_ROWS)]
    return torch.cat(parts)


def evaluate(network: Network, rows: TensorRows, settings: TrainingSettings) -> tuple[float, Measured]:
    """Return the cross-entropy of rows, with dropout off, and how their scores do."""
    from sklearn.metrics import average_precision_score

    network.eval()
    with torch.no_grad():
        logits = torch.cat([network(part) for part in torch.split(rows.features, _CHUNK_ROWS)])
        loss = float(cross_entropy(logits, rows))
    labels, groups, weights = (column.cpu().numpy() for column in (rows.labels, rows.groups, rows.weights))
    scores = torch.sigmoid(logits).cpu().numpy()
    disparity = mcdp(
        labels,
        scores,
        sensitive_features=groups,
        epsilon=settings.epsilon,
        criterion=settings.criterion,
        sample_weight=weights,
    )
    precision = float(average_precision_score(labels, scores, sample_weight=weights))
    return loss, Measured(len(scores), precision, disparity)
