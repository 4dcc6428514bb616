"""DRAlign: the units that are important must be equally important to all groups."""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cosine_similarity

from localparity.models.networks._distributed import mean_over_processes, world_size
from localparity.models.networks._loss_methods import LossMethod
from localparity.models.networks._losses import DPLoss
from localparity.models.networks._method import MethodOptions, ScoredBatch, cross_entropy
from localparity.models.networks._networks import Network, frozen_statistics


class DRAlign(LossMethod):
    """Cross-entropy plus `DPLoss`, less the cosines between the groups' unit importances.

    A unit's importance to a group is the sum, over its incoming weights, of the square of the weight times
    the gradient of that group's cross-entropy. The cosines are summed over the hidden layers and averaged
    over the pairs of groups; their weight is `alignment` at every strength.
    """

    name = "dralign"
    criteria = ("demographic_parity",)

    def __init__(self, strength: float, n_groups: int, options: MethodOptions) -> None:
        super().__init__(strength, n_groups, options)
        self.loss = DPLoss(from_logits=True, n_groups=n_groups)

    def penalty(self, network: Network, batch: ScoredBatch) -> Tensor:
        """The strength times the difference of mean scores, less the alignment."""
        layers = self._importances(network, batch)
        cosines = [
            torch.stack([cosine_similarity(layer[one], layer[other], dim=0) for layer in layers]).sum()
            for one, other in combinations(range(self.n_groups), 2)
        ]
        return super().penalty(network, batch) - self.options.alignment * torch.stack(cosines).mean()

    def _importances(self, network: Network, batch: ScoredBatch) -> list[Tensor]:
        """For each hidden layer, the unit importances of each group, shape (n_groups, units)."""
        weights = network.hidden_weights()

        def losses(weights: dict[str, Tensor]) -> Tensor:
            with batch.autocast:
                logits: Tensor = functional_call(network, weights, (batch.own.features,))
            logits = logits.to(batch.logits)
            return torch.stack([_share_of_loss(logits, batch, group) for group in range(self.n_groups)])

        with frozen_statistics(network):
            values, pull = torch.func.vjp(losses, weights)[:2]
            # One group after the other: convolutions of several at once are slow.
            units = torch.eye(self.n_groups, dtype=values.dtype, device=values.device)
            gradients = [pull(unit)[0] for unit in units]
        return [
            torch.stack([_importance(weight, gradient[name]) for gradient in gradients])
            for name, weight in weights.items()
        ]


def _importance(weight: Tensor, gradient: Tensor) -> Tensor:
    """The importance of each unit, by its incoming weights."""
    return (weight * mean_over_processes(gradient)).square().flatten(1).sum(1)


def _share_of_loss(logits: Tensor, batch: ScoredBatch, group: int) -> Tensor:
    """The process's share of the group's cross-entropy: the mean over processes is the whole."""
    own, whole = ((rows.weights * (rows.groups == group)).sum() for rows in (batch.own, batch.whole))
    share = own / whole.clamp_min(torch.finfo(whole.dtype).tiny) * world_size()
    return cross_entropy(logits, batch.own, batch.own.groups == group) * share
