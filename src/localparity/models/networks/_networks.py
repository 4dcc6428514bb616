"""The networks that are trained: a trunk and a body that represent a row, and a head that gives its logit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch import Tensor, nn


class RandomLayer(nn.Module, ABC):
    """A layer that is random in training; its random numbers are drawn before a step, not during it.

    They are a buffer, so that the forward pass is a pure function of its tensors and can be repeated within a
    step.
    """

    @abstractmethod
    def draw(self, rows: int, generator: torch.Generator) -> None:
        """Draw for each of this many rows, into the buffer that is there if it fits."""


class Dropout(RandomLayer):
    """Sets a share of the units to zero."""

    drawn: Tensor

    def __init__(self, width: int, share: float) -> None:
        super().__init__()
        if not 0.0 <= share < 1.0:
            raise ValueError(f"dropout must be in [0, 1), got {share:g}")
        self.width, self.share = width, share
        self.register_buffer("drawn", torch.ones(0, width), persistent=False)

    @torch.no_grad()
    def draw(self, rows: int, generator: torch.Generator) -> None:
        """Draw a number for each unit of this many rows; a unit is kept if it is not below the share."""
        if self.share == 0.0:
            return
        if len(self.drawn) != rows:
            self.drawn = self.drawn.new_ones(rows, self.width)
        self.drawn.uniform_(generator=generator)

    def forward(self, values: Tensor) -> Tensor:
        """Set the units that were drawn to zero; in evaluation, change nothing."""
        if not self.training or self.share == 0.0:
            return values
        mask = (self.drawn[: values.shape[0]] >= self.share).to(values)
        return values * mask.div_(1.0 - self.share)


class Network(nn.Module):
    """A trunk, a body and a head; its output is a logit for each row.

    Parameters
    ----------
    body : nn.Module
        From features to the last hidden layer.
    head : nn.Linear
        From the last hidden layer to one logit.
    trunk : nn.Module, optional
        What comes before the body: for images, up to the feature map. None passes the features on.

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
        """Return the logits of rows given by their last hidden layer.

        Parameters
        ----------
        hidden : Tensor of shape (n_samples, width)
            The output of `body`.

        Returns
        -------
        Tensor of shape (n_samples,)
            Logits.
        """
        logits: Tensor = self.head(hidden)[..., 0]
        return logits

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits of rows, whose features are what the trunk takes."""
        return self.logits(self.body(self.trunk(features)))

    def hidden_weights(self) -> dict[str, Tensor]:
        """Return the weights, by their names, of all linear layers and convolutions except the head."""
        return {
            f"{name}.weight": layer.weight
            for name, layer in self.named_modules()
            if isinstance(layer, nn.Linear | nn.Conv2d) and layer is not self.head
        }


def random_layers(network: nn.Module) -> list[RandomLayer]:
    """The layers of a network that are random in training."""
    return [layer for layer in network.modules() if isinstance(layer, RandomLayer)]


def multilayer(n_features: int, hidden: Sequence[int], dropout: float) -> Network:
    """Linear layers of the given widths, each followed by ReLU and dropout, and a head."""
    widths = [n_features, *hidden]
    layers: list[nn.Module] = []
    for width, next_width in pairwise(widths):
        layers += [nn.Linear(width, next_width), nn.ReLU(), Dropout(next_width, dropout)]
    return Network(nn.Sequential(*layers), nn.Linear(widths[-1], 1))


@contextmanager
def frozen_statistics(network: nn.Module) -> Iterator[None]:
    """Batch normalisation uses the batch's statistics and leaves its running ones as they are."""
    layers = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm2d)]
    for layer in layers:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer in layers:
            layer.track_running_stats = True
