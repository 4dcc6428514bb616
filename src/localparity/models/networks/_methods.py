"""How a network is trained: the settings, what a method is, and the seven methods."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import binary_cross_entropy_with_logits, cosine_similarity

from localparity._types import Criterion
from localparity._validation import InputError, as_choice, as_count, as_strength
from localparity.counts._comparison import CRITERIA
from localparity.models.networks._batches import BalancedBatches, Batches, TensorRows, balancing_weights
from localparity.models.networks._losses import (
    DEFAULT_SEARCH,
    DEFAULT_SHARPNESS,
    DEFAULT_TEMPERATURE,
    ABCCLoss,
    DPLoss,
    MCDPLoss,
)
from localparity.models.networks._networks import Dropout, Network, frozen_statistics


@dataclass(frozen=True)
class TrainingSettings:
    """How a network is built and trained; each method reads what concerns it.

    The defaults are what the paper's published code ran on tables.

    Parameters
    ----------
    hidden, dropout, steps, batch_size, learning_rate, schedule, temperature, search, memory, balanced
        As in `LocalParityClassifier`, whose preset "paper" has the defaults.
    precision, alignment, sharpness, epsilon, criterion, weight_decay, patience
        As in `LocalParityClassifier`, with the same defaults.
    augment : bool, default=False
        Whether a network for images sees random views of them in training.
    decay_every, decay_factor : int and float, default=50 and 0.1
        The steps at one learning rate, for the schedule "steps", and what it is then multiplied by.
    check_every : int, default=25
        The number of steps between evaluations of the validation rows.

    Examples
    --------
    >>> TrainingSettings(search="soft").steps
    150
    """

    hidden: Sequence[int] = (512, 256, 64)
    dropout: float = 0.5
    steps: int = 150
    batch_size: int = 1024
    learning_rate: float = 1e-3
    schedule: str = "steps"
    temperature: float = DEFAULT_TEMPERATURE
    search: str = DEFAULT_SEARCH
    memory: int = 0
    balanced: bool = False
    precision: str = "float32"
    alignment: float = 0.05
    augment: bool = False
    sharpness: float = DEFAULT_SHARPNESS
    epsilon: float = 0.0
    criterion: Criterion = "demographic_parity"
    decay_every: int = 50
    decay_factor: float = 0.1
    weight_decay: float = 0.0
    check_every: int = 25
    patience: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "check_every"):
            as_count(getattr(self, name), name)
        if self.patience is not None:
            as_count(self.patience, "patience")
        as_choice(self.schedule, "schedule", ("steps", "cosine"))
        as_choice(self.precision, "precision", ("float32", "bfloat16", "float64"))


class ScoredBatch(NamedTuple):
    """A batch and the network's output for it: what a method's penalty is computed from.

    Parameters
    ----------
    rows : TensorRows
        The batch.
    logits, entry, hidden : Tensor
        The rows' logits, and their values where the network's body begins and in the last hidden layer.
    autocast : context manager
        The precision of the network's forward pass, for a penalty that repeats it.

    Examples
    --------
    >>> def penalty(network: Network, batch: ScoredBatch) -> Tensor:
    ...     return batch.logits.square().mean()
    """

    rows: TensorRows
    logits: Tensor
    entry: Tensor
    hidden: Tensor
    autocast: AbstractContextManager[Any]


class Method(nn.Module):
    """A training method: cross-entropy plus, times the strength, a penalty.

    A method overrides what differs: `penalty`, `prepare`, `batches` and `draw`.
    Parameters that it adds are trained with the network's. Everything that changes is a parameter or a
    buffer, which a step that is recorded as a CUDA graph reads in its place.

    Parameters
    ----------
    strength : float
        The weight of the penalty.
    n_groups : int
        The number of groups.
    settings : TrainingSettings
        How to train.

    Examples
    --------
    >>> float(Method(0.5, 2, TrainingSettings()).strength)
    0.5
    """

    name: ClassVar[str] = ""
    criteria: ClassVar[tuple[str, ...]] = ("demographic_parity",)
    strength: Tensor

    def __init__(self, strength: float, n_groups: int, settings: TrainingSettings) -> None:
        super().__init__()
        number = as_strength(strength)
        self.penalised = number > 0.0
        self.register_buffer("strength", torch.tensor(number, dtype=torch.float64))
        self.n_groups = n_groups
        self.settings = settings
        if settings.criterion not in self.criteria:
            known = ", ".join(map(repr, self.criteria))
            raise InputError(
                f"must be one of {known} for method {self.name!r}, got {settings.criterion!r}", "criterion"
            )

    def prepare(self, training: TensorRows, network: Network) -> None:
        """Learn from the training rows, add parameters or change the network before the first step.

        Parameters
        ----------
        training : TensorRows
            All training rows.
        network : Network
            The network to be trained, changed in place.
        """

    def batches(self, training: TensorRows, seed: int) -> tuple[Batches, TensorRows]:
        """Choose how rows are drawn and weighted.

        Parameters
        ----------
        training : TensorRows
            All training rows.
        seed : int
            The same seed gives the same batches.

        Returns
        -------
        tuple
            An object whose `draw` returns the row numbers of the next batch, and the rows with weights such
            that a batch stands for the data.
        """
        if not self.settings.balanced:
            return Batches(len(training.labels), self.settings.batch_size, seed), training
        batches = BalancedBatches(training.groups, self.n_groups, self.settings.batch_size, seed)
        return batches, balancing_weights(training, self.n_groups)

    def draw(self, generator: torch.Generator) -> None:
        """Draw the random numbers of a step into buffers.

        Parameters
        ----------
        generator : torch.Generator
            The run's own.
        """

    def penalty(self, network: Network, batch: ScoredBatch) -> Tensor:
        """Compute what is added to the cross-entropy: the strength times a disparity.

        Parameters
        ----------
        network : Network
            The network that is trained.
        batch : ScoredBatch
            The batch and the network's output for it.

        Returns
        -------
        Tensor
            A scalar.
        """
        raise NotImplementedError


def objective(
    method: Method, network: Network, batch: TensorRows, autocast: AbstractContextManager[Any]
) -> Tensor:
    """The loss of a batch; `autocast` is the precision of the network's forward pass."""
    with autocast:
        entry = network.trunk(batch.features)
        hidden = network.body(entry)
        logits = network.logits(hidden)
    logits, entry, hidden = (values.to(batch.weights) for values in (logits, entry, hidden))
    loss = cross_entropy(logits, batch)
    if not method.penalised:
        return loss
    return loss + method.penalty(network, ScoredBatch(batch, logits, entry, hidden, autocast))


def cross_entropy(logits: Tensor, rows: TensorRows, among: Tensor | None = None) -> Tensor:
    """The weighted mean cross-entropy, over all rows or among those of a mask."""
    weights = rows.weights if among is None else rows.weights * among
    losses = binary_cross_entropy_with_logits(logits, rows.labels, reduction="none")
    return (losses * weights).sum() / weights.sum().clamp_min(torch.finfo(losses.dtype).tiny)


_ADVERSARY_WIDTH = 50


class AdvDebias(Method):
    """Cross-entropy plus that of an adversary, whose gradient reaches the network reversed.

    The adversary, with one hidden layer of 50, predicts the group from the last hidden layer; the network
    has no dropout. With two groups the adversary has one output, with more one for each.
    """

    name = "advdebias"

    def prepare(self, training: TensorRows, network: Network) -> None:
        """Build the adversary for the network's last hidden layer, and turn the network's dropout off."""
        for layer in network.modules():
            if isinstance(layer, Dropout):
                layer.share = 0.0
        outputs = 1 if self.n_groups == 2 else self.n_groups
        self.adversary = nn.Sequential(
            nn.Linear(network.head.in_features, _ADVERSARY_WIDTH),
            nn.ReLU(),
            nn.Linear(_ADVERSARY_WIDTH, outputs),
        ).to(training.weights)

    def penalty(self, network: Network, batch: ScoredBatch) -> Tensor:
        """The strength times the adversary's cross-entropy."""
        # The value is that of the hidden layer, exactly; the gradient is its negative.
        guess = self.adversary(2.0 * batch.hidden.detach() - batch.hidden)
        codes = torch.arange(self.n_groups, device=guess.device)[-guess.shape[1] :]
        truth = (batch.rows.groups[:, None] == codes).to(guess)
        losses = binary_cross_entropy_with_logits(guess, truth, reduction="none").mean(-1)
        weights = batch.rows.weights
        return self.strength * (losses * weights).sum() / weights.sum()


class ERM(Method):
    """Empirical risk minimisation, cross-entropy alone: its strength is 0 whatever it is given."""

    name = "erm"
    criteria = CRITERIA

    def __init__(self, strength: float, n_groups: int, settings: TrainingSettings) -> None:
        super().__init__(0.0 * as_strength(strength), n_groups, settings)


class FairMixup(Method):
    """Cross-entropy on balanced batches, plus how the score changes between groups.

    Rows of two groups are mixed, x = t x0 + (1 - t) x1 with t uniform on [0, 1]; the penalty is the absolute
    mean of the score's derivative at x in the direction x1 - x0, of the worst pair of groups. Images are
    mixed as feature maps.
    """

    name = "fairmixup"
    share: Tensor

    def __init__(self, strength: float, n_groups: int, settings: TrainingSettings) -> None:
        super().__init__(strength, n_groups, settings)
        self.register_buffer("share", torch.zeros(()))

    @torch.no_grad()
    def draw(self, generator: torch.Generator) -> None:
        """Draw the share t of the mixture."""
        self.share.uniform_(generator=generator)

    def batches(self, training: TensorRows, seed: int) -> tuple[Batches, TensorRows]:
        """Equally many rows of each group, group after group."""
        batches = BalancedBatches(training.groups, self.n_groups, self.settings.batch_size, seed)
        return batches, super().batches(training, seed)[1]

    def penalty(self, network: Network, batch: ScoredBatch) -> Tensor:
        """The strength times how the score changes between groups."""
        parts = batch.entry.chunk(self.n_groups)
        slopes = [
            self._slope(network, self.share * first + (1.0 - self.share) * second, second - first)
            for first, second in combinations(parts, 2)
        ]
        return self.strength * torch.stack(slopes).amax()

    def _slope(self, network: Network, mixed: Tensor, direction: Tensor) -> Tensor:
        def total(entry: Tensor) -> Tensor:
            return torch.sigmoid(network.logits(network.body(entry))).sum()

        gradient: Tensor = torch.func.grad(total)(mixed)
        return (gradient * direction).flatten(1).sum(1).mean().abs()


class LossMethod(Method):
    """Cross-entropy plus a loss of the batch's logits."""

    criteria = CRITERIA

    def __init__(self, strength: float, n_groups: int, settings: TrainingSettings) -> None:
        super().__init__(strength, n_groups, settings)
        self.loss = self.new_loss()

    def new_loss(self) -> DPLoss | ABCCLoss | MCDPLoss:
        """The loss of logits that the settings describe."""
        return DPLoss(criterion=self.settings.criterion, from_logits=True, n_groups=self.n_groups)

    def penalty(self, network: Network, batch: ScoredBatch) -> Tensor:
        """The strength times the loss."""
        rows = batch.rows
        disparity: Tensor = self.loss(batch.logits, rows.groups, rows.labels, rows.weights)
        return self.strength * disparity


class DiffDP(LossMethod):
    """Cross-entropy plus `DPLoss`, the difference between the groups' mean scores."""

    name = "diffdp"


class DiffABCC(LossMethod):
    """Cross-entropy plus `ABCCLoss`, the area between the groups' smoothed distributions."""

    name = "diffabcc"

    def new_loss(self) -> ABCCLoss:
        """The area at the temperature of the settings."""
        settings = self.settings
        return ABCCLoss(
            settings.temperature, criterion=settings.criterion, from_logits=True, n_groups=self.n_groups
        )


class DiffMCDP(LossMethod):
    """Cross-entropy plus `MCDPLoss`, the maximal local disparity of the groups' smoothed distributions.

    With ``search="frozen"`` the threshold is the share of label 1 in the training rows, where the published
    code for tables started its solver and in effect stayed.
    """

    name = "diffmcdp"
    loss: MCDPLoss

    def new_loss(self) -> MCDPLoss:
        """The maximal local disparity, with the search of the settings."""
        settings = self.settings
        return MCDPLoss(
            settings.temperature,
            settings.epsilon,
            search=settings.search,
            threshold=0.5 if settings.search == "frozen" else None,
            sharpness=settings.sharpness,
            memory=settings.memory,
            criterion=settings.criterion,
            from_logits=True,
            n_groups=self.n_groups,
        )

    def prepare(self, training: TensorRows, network: Network) -> None:
        """Freeze the threshold at the share of label 1."""
        if self.settings.search == "frozen":
            self.loss.threshold = training.labels.mean()


class DRAlign(LossMethod):
    """Cross-entropy plus `DPLoss`, less the cosines between the groups' unit importances.

    A unit's importance to a group is the sum, over its incoming weights, of the square of the weight times
    the gradient of that group's cross-entropy. The cosines are summed over the hidden layers and averaged
    over the pairs of groups; their weight is `alignment` at every strength.
    """

    name = "dralign"
    criteria = ("demographic_parity",)

    def penalty(self, network: Network, batch: ScoredBatch) -> Tensor:
        """The strength times the difference of mean scores, less the alignment."""
        layers = self._importances(network, batch)
        cosines = [
            torch.stack([cosine_similarity(layer[one], layer[other], dim=0) for layer in layers]).sum()
            for one, other in combinations(range(self.n_groups), 2)
        ]
        return super().penalty(network, batch) - self.settings.alignment * torch.stack(cosines).mean()

    def _importances(self, network: Network, batch: ScoredBatch) -> list[Tensor]:
        """For each hidden layer, the unit importances of each group, shape (n_groups, units)."""
        weights = network.hidden_weights()

        def losses(weights: dict[str, Tensor]) -> Tensor:
            with batch.autocast:
                logits: Tensor = functional_call(network, weights, (batch.rows.features,))
            members = [batch.rows.groups == group for group in range(self.n_groups)]
            return torch.stack([cross_entropy(logits.to(batch.logits), batch.rows, one) for one in members])

        with frozen_statistics(network):
            values, pull = torch.func.vjp(losses, weights)[:2]
            # One group after the other: convolutions of several at once are slow.
            units = torch.eye(self.n_groups, dtype=values.dtype, device=values.device)
            gradients = [pull(unit)[0] for unit in units]
        return [
            torch.stack([(weight * gradient[name]).square().flatten(1).sum(1) for gradient in gradients])
            for name, weight in weights.items()
        ]


METHODS: dict[str, type[Method]] = {
    method.name: method for method in (ERM, AdvDebias, DiffDP, FairMixup, DRAlign, DiffABCC, DiffMCDP)
}


def as_method(method: Any) -> type[Method]:
    """The method with a name, or a class of one's own as it is."""
    if isinstance(method, type) and issubclass(method, Method):
        return method
    return METHODS[as_choice(method, "method", METHODS)]


def make_method(
    method: str | type[Method], strength: float, n_groups: int, settings: TrainingSettings
) -> Method:
    """The method with a name, or of a class, at a strength."""
    return as_method(method)(strength, n_groups, settings)
