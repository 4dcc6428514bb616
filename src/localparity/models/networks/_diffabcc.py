"""DiffABCC: the area between the groups' smoothed distributions as the penalty."""

from __future__ import annotations

from torch import Tensor

from localparity.counts._comparison import CRITERIA
from localparity.models.networks._losses import ABCCLoss
from localparity.models.networks._method import Method, MethodOptions, Scored
from localparity.models.networks._networks import Network


class DiffABCC(Method):
    """Cross-entropy plus `ABCCLoss`.

    Examples
    --------
    >>> DiffABCC(0.3, 2, MethodOptions()).name
    'diffabcc'
    """

    name = "diffabcc"
    criteria = CRITERIA

    def __init__(self, strength: float, n_groups: int, options: MethodOptions) -> None:
        super().__init__(strength, n_groups, options)
        self.loss = ABCCLoss(
            options.temperature, criterion=options.criterion, from_logits=True, n_groups=n_groups
        )

    def penalty(self, network: Network, batch: Scored) -> Tensor:
        """The batch's area between the distributions."""
        disparity: Tensor = self.loss(batch.logits, *batch.whole.compared())
        return self.strength * disparity
