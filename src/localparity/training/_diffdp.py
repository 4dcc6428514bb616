"""DiffDP: the difference of the groups' mean scores as the penalty."""

from __future__ import annotations

from torch import Tensor

from localparity.metrics._criteria import CRITERIA
from localparity.training._losses import DPLoss
from localparity.training._method import Method, MethodOptions, Scored
from localparity.training._networks import Network


class DiffDP(Method):
    """Cross-entropy plus `DPLoss`.

    Examples
    --------
    >>> DiffDP(0.3, 2, MethodOptions()).name
    'diffdp'
    """

    name = "diffdp"
    criteria = CRITERIA

    def __init__(self, strength: float, n_groups: int, options: MethodOptions) -> None:
        super().__init__(strength, n_groups, options)
        self.loss = DPLoss(criterion=options.criterion, from_logits=True, n_groups=n_groups)

    def penalty(self, network: Network, batch: Scored) -> Tensor:
        """The batch's difference of mean scores."""
        disparity: Tensor = self.loss(batch.logits, *batch.whole.compared())
        return self.strength * disparity
