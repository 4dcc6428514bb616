"""The networks that are trained: a trunk and a body that represent a row, a head that gives its logit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch import Tensor, nn


class ByChance(nn.Module, ABC):
    """A layer that leaves something to chance in training; what, is drawn before a step, not during it.

    What was drawn is a buffer, so that the forward pass is a pure function of its tensors: it can be repeated
    within a step, and a stack of networks has a stack of buffers.
    """

    @abstractmethod
    def make_room(self, rows: int) -> None:
        """Have a buffer for so many rows."""

    @abstractmethod
    def draw(self, rows: int, generator: torch.Generator) -> None:
        """Draw for each of so many rows."""


class Dropout(ByChance):
    """Leaves out a share of the units.

    Parameters
    ----------
    width : int
        How many units there are.
    share : float
        The share of them that is left out.

    Examples
    --------
    >>> dropout = Dropout(4, 0.5)
    >>> dropout.draw(2, torch.Generator().manual_seed(0))
    >>> sorted(set(dropout(torch.ones(2, 4)).flatten().tolist()))
    [0.0, 2.0]
    """

    drawn: Tensor

    def __init__(self, width: int, share: float) -> None:
        super().__init__()
        if not 0.0 <= share < 1.0:
            raise ValueError(f"dropout is {share:g} where a number from 0 to below 1 is expected")
        self.width, self.share = width, share
        self.register_buffer("drawn", torch.ones(0, width), persistent=False)

    def extra_repr(self) -> str:
        """What tells it from another."""
        return f"{self.width}, {self.share}"

    def make_room(self, rows: int) -> None:
        """Have a number for each unit of so many rows."""
        if len(self.drawn) != rows:
            self.drawn = self.drawn.new_ones(rows, self.width)

    @torch.no_grad()
    def draw(self, rows: int, generator: torch.Generator) -> None:
        """Draw a number for each unit of so many rows; it is kept where that is not below the share."""
        if self.share == 0.0:
            return
        self.make_room(rows)
        self.drawn.uniform_(generator=generator)

    def forward(self, values: Tensor) -> Tensor:
        """The values without the units that are left out; in evaluation, as they are."""
        if not self.training or self.share == 0.0:
            return values
        kept = (self.drawn[: values.shape[0]] >= self.share).to(values)
        return values * kept.div_(1.0 - self.share)


class Network(nn.Module):
    """A trunk, a body and a head.

    Parameters
    ----------
    body : nn.Module
        From features to the last hidden layer.
    head : nn.Linear
        From the last hidden layer to one logit.
    trunk : nn.Module, optional
        What comes before the body: for images, up to the map of features. None hands on the features.

    Examples
    --------
    >>> network = Network(nn.Identity(), nn.Linear(3, 1))
    >>> network(torch.zeros(5, 3)).shape
    torch.Size([5])
    """

    def __init__(self, body: nn.Module, head: nn.Linear, trunk: nn.Module | None = None) -> None:
        super().__init__()
        self.trunk, self.body, self.head = trunk or nn.Identity(), body, head

    def logits(self, hidden: Tensor) -> Tensor:
        """The logits of rows in the last hidden layer."""
        logits: Tensor = self.head(hidden)[..., 0]
        return logits

    def forward(self, features: Tensor) -> Tensor:
        """The logits of rows."""
        return self.logits(self.body(self.trunk(features)))

    def draw(self, rows: int, generator: torch.Generator) -> None:
        """Draw what a training step leaves to chance."""
        for layer in self.modules():
            if isinstance(layer, ByChance):
                layer.draw(rows, generator)

    def hidden_weights(self) -> dict[str, Tensor]:
        """The weights of all linear layers and convolutions but the head, by their names."""
        return {
            f"{name}.weight": layer.weight
            for name, layer in self.named_modules()
            if isinstance(layer, nn.Linear | nn.Conv2d) and layer is not self.head
        }


def multilayer(n_features: int, hidden: Sequence[int], dropout: float) -> Network:
    """Linear layers with ReLU and dropout in between.

    Parameters
    ----------
    n_features : int
        How many features a row has.
    hidden : sequence of int
        The widths of the hidden layers.
    dropout : float
        The share of hidden units that are left out in a training step.

    Returns
    -------
    Network

    Examples
    --------
    >>> weights = multilayer(101, (512, 256, 64), 0.5).hidden_weights()
    >>> [tuple(weight.shape) for weight in weights.values()]
    [(512, 101), (256, 512), (64, 256)]
    """
    widths = [n_features, *hidden]
    layers: list[nn.Module] = []
    for width, next_width in pairwise(widths):
        layers += [nn.Linear(width, next_width), nn.ReLU(), Dropout(next_width, dropout)]
    return Network(nn.Sequential(*layers), nn.Linear(widths[-1], 1))


@contextmanager
def statistics_at_rest(network: nn.Module) -> Iterator[None]:
    """Batch normalisation goes by the batch, and its running statistics stay as they are."""
    layers = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm2d)]
    for layer in layers:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer in layers:
            layer.track_running_stats = True
