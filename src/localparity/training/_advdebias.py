"""AdvDebias: an adversary that must not be able to tell the group."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, one_hot

from localparity.training._distributed import gather_rows
from localparity.training._method import Method, Scored
from localparity.training._networks import Network
from localparity.training._rows import Rows

_ADVERSARY_WIDTH = 50


class AdvDebias(Method):
    """Cross-entropy plus that of an adversary, whose gradient reaches the network reversed.

    The adversary, one hidden layer of 50, guesses the group from the last hidden layer; the network has no
    dropout. With two groups it has one output, with more one for each.

    Examples
    --------
    >>> from localparity.training._method import MethodOptions
    >>> AdvDebias(0.3, 2, MethodOptions()).name
    'advdebias'
    """

    name = "advdebias"

    def prepare(self, training: Rows, network: Network) -> None:
        """Build the adversary for the network's last hidden layer."""
        outputs = 1 if self.n_groups == 2 else self.n_groups
        self.adversary = nn.Sequential(
            nn.Linear(network.head.in_features, _ADVERSARY_WIDTH),
            nn.ReLU(),
            nn.Linear(_ADVERSARY_WIDTH, outputs),
        ).to(training.features)

    def wrap(self, network: Network) -> Network:
        """The network without dropout."""
        for layer in network.modules():
            if isinstance(layer, nn.Dropout):
                layer.p = 0.0
        return network

    def penalty(self, network: Network, batch: Scored) -> Tensor:
        """The adversary's cross-entropy."""
        reversed_hidden: Tensor = _Reverse.apply(gather_rows(batch.hidden))  # type: ignore[no-untyped-call]
        guess = self.adversary(reversed_hidden)
        truth = one_hot(batch.whole.groups, self.n_groups)[:, -guess.shape[1] :].to(guess)
        losses = binary_cross_entropy_with_logits(guess, truth, reduction="none").mean(-1)
        weights = batch.whole.weights
        return self.strength * (losses * weights).sum() / weights.sum()


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return -gradients[0]
