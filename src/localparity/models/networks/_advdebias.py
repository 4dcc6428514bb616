"""AdvDebias: an adversary must not be able to predict the group."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from localparity.models.networks._distributed import gather_rows
from localparity.models.networks._method import Method, ScoredBatch
from localparity.models.networks._networks import Dropout, Network
from localparity.models.networks._rows import TensorRows

_ADVERSARY_WIDTH = 50


class AdvDebias(Method):
    """Cross-entropy plus that of an adversary, whose gradient reaches the network reversed.

    The adversary, with one hidden layer of 50, predicts the group from the last hidden layer; the network
    has no dropout. With two groups the adversary has one output, with more one for each.
    """

    name = "advdebias"

    def prepare(self, training: TensorRows, network: Network) -> None:
        """Build the adversary for the network's last hidden layer."""
        outputs = 1 if self.n_groups == 2 else self.n_groups
        self.adversary = nn.Sequential(
            nn.Linear(network.head.in_features, _ADVERSARY_WIDTH),
            nn.ReLU(),
            nn.Linear(_ADVERSARY_WIDTH, outputs),
        ).to(training.weights)

    def wrap(self, network: Network) -> Network:
        """Turn dropout off."""
        for layer in network.modules():
            if isinstance(layer, Dropout):
                layer.share = 0.0
        return network

    def penalty(self, network: Network, batch: ScoredBatch) -> Tensor:
        """The strength times the adversary's cross-entropy."""
        hidden = gather_rows(batch.hidden)
        # The value is that of the hidden layer, exactly; the gradient is its negative.
        guess = self.adversary(2.0 * hidden.detach() - hidden)
        codes = torch.arange(self.n_groups, device=guess.device)[-guess.shape[1] :]
        truth = (batch.whole.groups[:, None] == codes).to(guess)
        losses = binary_cross_entropy_with_logits(guess, truth, reduction="none").mean(-1)
        weights = batch.whole.weights
        return self.strength * (losses * weights).sum() / weights.sum()
