"""The training loop, which every method shares."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from localparity._io._forecast import Forecast
from localparity._types import Criterion
from localparity.metrics import mcdp
from localparity.models._progress import Progress
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
