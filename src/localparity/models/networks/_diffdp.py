"""DiffDP: the difference between the groups' mean scores as the penalty."""

from __future__ import annotations

from localparity.models.networks._losses import DPLoss
from localparity.models.networks._method import LossMethod, MethodOptions


class DiffDP(LossMethod):
    """Cross-entropy plus `DPLoss`."""

    name = "diffdp"

    def __init__(self, strength: float, n_groups: int, options: MethodOptions) -> None:
        super().__init__(strength, n_groups, options)
        self.loss = DPLoss(criterion=options.criterion, from_logits=True, n_groups=n_groups)
