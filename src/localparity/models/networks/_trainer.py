"""The training loop, which every method shares."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from localparity._io._forecast import Forecast
from localparity._types import Criterion
from localparity.metrics import mcdp
from localparity.models._progress import Progress
from localparity.models.networks._checkpoint import (
    join_states,
    load_tensors,
    optimizer_state,
    restore_optimizer,
    save_tensors,
    split_states,
)
from localparity.models.networks._distributed import process_index
from localparity.models.networks._method import Method, cross_entropy
from localparity.models.networks._networks import Network
from localparity.models.networks._plan import TrainingPlan
from localparity.models.networks._rows import TensorRows
from localparity.models.networks._training import Steps, Training, check_finite

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
    checkpoint : path, optional
        A file for the state of training, written at every evaluation; a run that finds it resumes.
    progress : callable, optional
        Called after every step with a dict of the step, the loss and, if evaluated, AP and MCDP.

    Examples
    --------
    >>> import localparity as lp
    >>> from localparity.models.networks._networks import multilayer
    >>> labels, groups = (torch.arange(64) % 2).float(), torch.arange(64) % 2
    >>> rows = lp.models.TensorRows(torch.randn(64, 3), labels, groups, torch.ones(64))
    >>> method = lp.models.METHODS["erm"](0.0, n_groups=2, options=lp.models.MethodOptions())
    >>> plan = lp.models.TrainingPlan(steps=5)
    >>> len(lp.models.Trainer(method, multilayer(3, (8,), 0.0), plan).fit(rows))
    5
    """

    def __init__(
        self,
        method: Method,
        network: Network,
        plan: TrainingPlan,
        *,
        seed: int = 0,
        checkpoint: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.method, self.network, self.plan, self.seed = method, method.wrap(network), plan, seed
        self.checkpoint, self.progress = checkpoint, progress

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
        self.checkpoint, self.progress, self.seed = trainer.checkpoint, trainer.progress, trainer.seed
        self.validation = validation
        self.training = Training(self.method, self.network, self.plan, training, seed=self.seed)
        self.steps = Steps(self.training, self.plan)
        self.step, self.waited, self.best = 0, 0, float("inf")
        self.losses: list[Tensor] = []
        self.history: list[dict[str, float]] = []
        self.best_network: dict[str, Tensor] = {}
        self.fingerprint = "" if self.checkpoint is None else self._fingerprint(training)

    def run(self) -> list[dict[str, float]]:
        """Take the steps, from where a checkpoint was written if there is one."""
        plan = self.plan
        if self.checkpoint is not None and self.checkpoint.exists():
            self._resume(self.checkpoint)
        forecast = Forecast(plan.steps - self.step, "steps")
        while self.step < plan.steps and not self._is_exhausted():
            self.losses.append(self.steps.take(self.step))
            self.step += 1
            forecast.advance()
            if self.step % plan.check_every == 0 or self.step == plan.steps:
                self._check()
                if self.checkpoint is not None and process_index() == 0:
                    self._save(self.checkpoint)
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

    def _save(self, path: Path) -> None:
        states = {
            "network": self.network.state_dict(),
            "method": self.method.state_dict(),
            "optimizer": optimizer_state(self.steps.optimizer),
            "batches": self.training.batches.state(),
            "best": self.best_network,
            "generator": {"state": self.training.generator.get_state()},
        }
        values = {
            "run": self.fingerprint,
            "step": self.step,
            "best": None if self.best == float("inf") else self.best,
            "waited": self.waited,
            "history": self.history,
        }
        save_tensors(path, join_states(states), values)

    def _resume(self, path: Path) -> None:
        tensors, values = load_tensors(path)
        if values["run"] != self.fingerprint:
            raise ValueError(
                f"{path} is the checkpoint of a run with other data or settings; "
                "delete it, or name another file, to start again"
            )
        states = split_states(tensors)
        self.network.load_state_dict(states["network"])
        self.method.load_state_dict(states["method"])
        restore_optimizer(self.steps.optimizer, states["optimizer"])
        self.training.batches.restore(states["batches"])
        self.training.generator.set_state(states["generator"]["state"])
        self.step, self.waited, self.history = values["step"], values["waited"], values["history"]
        self.best = float("inf") if values["best"] is None else values["best"]
        self.best_network = states["best"]

    def _fingerprint(self, training: TensorRows) -> str:
        """A hash of the settings, the data and the initial network: the same for the same run only."""
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
