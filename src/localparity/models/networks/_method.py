"""What a training method is: the few things in which the methods differ."""

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
from localparity.models.networks._losses import DEFAULT_SEARCH, DEFAULT_SHARPNESS, DEFAULT_TEMPERATURE
from localparity.models.networks._networks import Network
from localparity.models.networks._rows import BalancedBatches, Batches, TensorRows, balancing_weights


@dataclass(frozen=True)
class MethodOptions:
    """The options of the methods, besides their strength; each method reads those that concern it.

    Parameters
    ----------
    temperature : float, default=10.0
        The steepness of the sigmoid that replaces the step of a distribution, for DiffABCC and DiffMCDP.
    epsilon : float, default=0.0
        The half-width of the windows.
    criterion : str, default="demographic_parity"
        Who is compared.
    search : str, default="exact"
        How `MCDPLoss` finds its threshold.
    sharpness : float, default=8.0
        The power of the soft search.
    memory : int, default=0
        The number of recent rows that `MCDPLoss` remembers.
    balanced : bool, default=False
        Whether every batch has equally many rows of each group, reweighted.
    alignment : float, default=0.05
        The weight of DRAlign's cosines.

    Examples
    --------
    >>> MethodOptions(search="soft").temperature
    10.0
    """

    temperature: float = DEFAULT_TEMPERATURE
    epsilon: float = 0.0
    criterion: Criterion = "demographic_parity"
    search: str = DEFAULT_SEARCH
    sharpness: float = DEFAULT_SHARPNESS
    memory: int = 0
    balanced: bool = False
    alignment: float = 0.05


class ScoredBatch(NamedTuple):
    """A batch and the network's output for it: what a method's penalty is computed from.

    Parameters
    ----------
    own : TensorRows
        This process's rows.
    own_logits : Tensor
        Their logits.
    entry : Tensor
        Their values where the network's body begins.
    hidden : Tensor
        Their values in the last hidden layer.
    whole : TensorRows
        The rows of all processes, except for the features, which are this process's.
    logits : Tensor
        The logits of all processes' rows.
    autocast : context manager
        The precision of the network's forward pass, for a penalty that repeats it.

    Examples
    --------
    >>> import localparity as lp
    >>> class Confidence(lp.models.Method):
    ...     def penalty(self, network: lp.models.Network, batch: lp.models.ScoredBatch):
    ...         return self.strength * batch.logits.square().mean()
    """

    own: TensorRows
    own_logits: Tensor
    entry: Tensor
    hidden: Tensor
    whole: TensorRows
    logits: Tensor
    autocast: AbstractContextManager[Any]


class Method(nn.Module):
    """A training method: cross-entropy plus, times the strength, a penalty.

    A method overrides what differs: `penalty`, `prepare`, `wrap`, `batches`, `reweighted` and `draw`.
    Parameters that it adds are trained with the network's. Everything that changes is a parameter or a
    buffer, so that the methods of several runs can be stacked.

    Parameters
    ----------
    strength : float
        The weight of the penalty.
    n_groups : int
        The number of groups.
    options : MethodOptions
        The options.

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
            known = ", ".join(map(repr, self.criteria))
            raise ValueError(
                f"criterion must be one of {known} for method {self.name!r}, got {options.criterion!r}"
            )

    def prepare(self, training: TensorRows, network: Network) -> None:
        """Learn from the training rows, or add parameters, before the first step.

        Parameters
        ----------
        training : TensorRows
            All training rows.
        network : Network
            The network to be trained.
        """

    def wrap(self, network: Network) -> Network:
        """Change the network for this method.

        Parameters
        ----------
        network : Network
            The network to be trained.

        Returns
        -------
        Network
            The network as this method trains it.
        """
        return network

    def batches(self, training: TensorRows, batch_size: int, seed: int) -> Batches:
        """Choose how rows are drawn.

        Parameters
        ----------
        training : TensorRows
            All training rows.
        batch_size : int
            The number of rows of a batch.
        seed : int
            The same seed gives the same batches.

        Returns
        -------
        Batches
            An object whose `draw` returns the row numbers of the next batch.
        """
        if self.options.balanced:
            return BalancedBatches(training.groups, self.n_groups, batch_size, seed)
        return Batches(len(training.labels), batch_size, seed)

    def reweighted(self, training: TensorRows) -> TensorRows:
        """Give the training rows the weights that go with the batches.

        Parameters
        ----------
        training : TensorRows
            All training rows.

        Returns
        -------
        TensorRows
            The rows, with weights such that a batch stands for the data.
        """
        return balancing_weights(training, self.n_groups) if self.options.balanced else training

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
    """The loss of a batch over all processes; `autocast` is the precision of the network's forward pass."""
    with autocast:
        entry = network.trunk(batch.features)
        hidden = network.body(entry)
        own_logits = network.logits(hidden)
    own_logits, entry, hidden = (values.to(batch.weights) for values in (own_logits, entry, hidden))
    whole = TensorRows(batch.features, *(gather_rows(column) for column in batch[1:]))
    scored = ScoredBatch(batch, own_logits, entry, hidden, whole, gather_rows(own_logits), autocast)
    loss = cross_entropy(scored.logits, whole)
    return loss + method.penalty(network, scored) if method.penalised else loss


def cross_entropy(logits: Tensor, rows: TensorRows, among: Tensor | None = None) -> Tensor:
    """The weighted mean cross-entropy, over all rows or among those of a mask."""
    weights = rows.weights if among is None else rows.weights * among
    losses = binary_cross_entropy_with_logits(logits, rows.labels, reduction="none")
    return (losses * weights).sum() / weights.sum().clamp_min(torch.finfo(losses.dtype).tiny)
