"""What a method is: the few things in which the ways to train differ."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from localparity._types import Criterion
from localparity._validation import as_strength
from localparity.models.networks._distributed import gather_rows
from localparity.models.networks._networks import Network
from localparity.models.networks._rows import BalancedBatches, Batches, Rows, balancing_weights


@dataclass(frozen=True)
class MethodOptions:
    """What methods can be told, beside their strength; each reads what concerns it.

    Parameters
    ----------
    temperature : float
        The steepness of the sigmoid that stands for a step.
    epsilon : float
        The half-width of the windows.
    criterion : str
        Which people are compared.
    search : str
        How `MCDPLoss` finds its threshold.
    sharpness : float
        The power of the soft search.
    memory : int
        How many recent rows `MCDPLoss` remembers.
    balanced : bool
        Whether every batch has as many rows of each group, reweighted.
    alignment : float
        DRAlign's weight of the cosines.

    Examples
    --------
    >>> MethodOptions(search="soft").temperature
    10.0
    """

    temperature: float = 10.0
    epsilon: float = 0.0
    criterion: Criterion = "demographic_parity"
    search: str = "exact"
    sharpness: float = 8.0
    memory: int = 0
    balanced: bool = False
    alignment: float = 0.05


class Scored(NamedTuple):
    """A batch and what the network makes of it.

    Attributes
    ----------
    own : Rows
        This process's rows.
    own_logits, entry, hidden : Tensor
        Their logits, and they themselves where the network's body begins and in its last hidden layer.
    whole : Rows
        The rows of all processes, but for the features, which are this process's own.
    logits : Tensor
        The logits of all processes' rows.
    autocast : context manager
        The precision of the network's forward pass, for a penalty that passes again.
    """

    own: Rows
    own_logits: Tensor
    entry: Tensor
    hidden: Tensor
    whole: Rows
    logits: Tensor
    autocast: AbstractContextManager[Any]


class Method(nn.Module):
    """A way to train: cross-entropy and, times the strength, a penalty.

    A method overrides what differs: `penalty`, `prepare` (what it learns from the training rows before the
    first step; parameters that it adds are trained along), `wrap` (what it does to the network), `batches`
    (how rows are drawn), `reweighted` (whether rows count for what they do in the data) and `draw` (what else
    it leaves to chance in a step). Everything that changes is a parameter or a buffer, so that the methods
    of several runs can be stacked.

    Parameters
    ----------
    strength : float
        The weight of the penalty.
    n_groups : int
        How many groups there are.
    options : MethodOptions
        What the method can be told.

    Examples
    --------
    >>> float(Method(0.5, 2, MethodOptions()).strength)
    0.5
    """

    name: ClassVar[str] = ""
    criteria: ClassVar[tuple[str, ...]] = ("demographic_parity",)
    strength: Tensor

    def __init__(self, strength: float, n_groups: int, options: MethodOptions) -> None:
        super().__init__()
        number = as_strength(strength)
        self.penalised = number > 0.0
        self.register_buffer("strength", torch.tensor(number, dtype=torch.float64))
        self.n_groups = n_groups
        self.options = options
        if options.criterion not in self.criteria:
            raise ValueError(
                f"criterion is {options.criterion!r} where method {self.name!r} "
                f"knows {', '.join(map(repr, self.criteria))}"
            )

    def prepare(self, training: Rows, network: Network) -> None:
        """Look at the training rows and the network before the first step."""

    def wrap(self, network: Network) -> Network:
        """The network as this method trains it."""
        return network

    def batches(self, training: Rows, batch_size: int, seed: int) -> Batches:
        """How rows are drawn."""
        if self.options.balanced:
            return BalancedBatches(training.groups, self.n_groups, batch_size, seed)
        return Batches(len(training.labels), batch_size, seed)

    def reweighted(self, training: Rows) -> Rows:
        """The training rows with the weights that go with the batches."""
        return balancing_weights(training, self.n_groups) if self.options.balanced else training

    def draw(self, generator: torch.Generator) -> None:
        """Draw what the method leaves to chance in a step."""

    def penalty(self, network: Network, batch: Scored) -> Tensor:
        """What is added to the cross-entropy: the strength times a disparity.

        Parameters
        ----------
        network : Network
            The network that is trained.
        batch : Scored
            The batch and what the network makes of it.

        Returns
        -------
        Tensor
            A scalar.
        """
        raise NotImplementedError

    def objective(self, network: Network, batch: Rows, autocast: AbstractContextManager[Any]) -> Tensor:
        """The loss of a batch, over all processes."""
        with autocast:
            entry = network.trunk(batch.features)
            hidden = network.body(entry)
            own_logits = network.logits(hidden)
        own_logits, entry, hidden = (values.to(batch.weights) for values in (own_logits, entry, hidden))
        whole = Rows(batch.features, *(gather_rows(column) for column in batch[1:]))
        scored = Scored(batch, own_logits, entry, hidden, whole, gather_rows(own_logits), autocast)
        loss = cross_entropy(scored.logits, whole)
        if not self.penalised:
            return loss
        return loss + self.penalty(network, scored)


def cross_entropy(logits: Tensor, rows: Rows, among: Tensor | None = None) -> Tensor:
    """The weighted mean cross-entropy, over all rows or among those of a mask."""
    weights = rows.weights if among is None else rows.weights * among
    losses = binary_cross_entropy_with_logits(logits, rows.labels, reduction="none")
    return (losses * weights).sum() / weights.sum().clamp_min(torch.finfo(losses.dtype).tiny)
