"""The networks that are trained: a body that represents a row, and a head that gives its logit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn


class Network(nn.Module):
    """A body and a head.

    Parameters
    ----------
    body : nn.Module
        From features to the last hidden layer.
    head : nn.Linear
        From the last hidden layer to one logit.

    Examples
    --------
    >>> import torch
    >>> network = Network(nn.Identity(), nn.Linear(3, 1))
    >>> network(torch.zeros(5, 3)).shape
    torch.Size([5])
    """

    def __init__(self, body: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.body, self.head = body, head

    def logits(self, hidden: Tensor) -> Tensor:
        """The logits of rows in the last hidden layer."""
        logits: Tensor = self.head(hidden)[..., 0]
        return logits

    def forward(self, features: Tensor) -> Tensor:
        """The logits of rows."""
        return self.logits(self.body(features))

    def hidden_weights(self) -> list[Tensor]:
        """The weight matrices of the body's linear layers."""
        return [layer.weight for layer in self.body.modules() if isinstance(layer, nn.Linear)]


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
    >>> [tuple(weight.shape) for weight in multilayer(101, (512, 256, 64), 0.5).hidden_weights()]
    [(512, 101), (256, 512), (64, 256)]
    """
    widths = [n_features, *hidden]
    layers: list[nn.Module] = []
    for width, next_width in pairwise(widths):
        layers += [nn.Linear(width, next_width), nn.ReLU(), nn.Dropout(dropout)]
    return Network(nn.Sequential(*layers), nn.Linear(widths[-1], 1))
