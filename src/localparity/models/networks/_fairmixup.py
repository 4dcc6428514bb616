"""FairMixup: the score must not change on the way from one group to another."""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

from localparity.models.networks._distributed import gather_rows
from localparity.models.networks._method import Method, MethodOptions, ScoredBatch
from localparity.models.networks._networks import Network
from localparity.models.networks._rows import BalancedBatches, Batches, TensorRows


class FairMixup(Method):
    """Cross-entropy on balanced batches, plus how the score changes between groups.

    Rows of two groups are mixed, x = t x0 + (1 - t) x1 with t uniform on [0, 1]; the penalty is the absolute
    mean of the score's derivative at x in the direction x1 - x0, of the worst pair of groups. Images are
    mixed as feature maps.
    """

    name = "fairmixup"
    share: Tensor

    def __init__(self, strength: float, n_groups: int, options: MethodOptions) -> None:
        super().__init__(strength, n_groups, options)
        self.register_buffer("share", torch.zeros(()))

    @torch.no_grad()
    def draw(self, generator: torch.Generator) -> None:
        """Draw the share t of the mixture."""
        self.share.uniform_(generator=generator)

    def batches(self, training: TensorRows, batch_size: int, seed: int) -> Batches:
        """Equally many rows of each group, group after group."""
        return BalancedBatches(training.groups, self.n_groups, batch_size, seed)

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

        gradient = torch.func.grad(total)(mixed)
        return gather_rows((gradient * direction).flatten(1).sum(1)).mean().abs()
