"""DiffABCC: the area between the groups' smoothed distributions as the penalty."""

from __future__ import annotations

from localparity.models.networks._losses import ABCCLoss
from localparity.models.networks._method import LossMethod, MethodOptions


class DiffABCC(LossMethod):
    """Cross-entropy plus `ABCCLoss`."""

    name = "diffabcc"

    def __init__(self, strength: float, n_groups: int, options: MethodOptions) -> None:
        super().__init__(strength, n_groups, options)
        self.loss = ABCCLoss(
            options.temperature, criterion=options.criterion, from_logits=True, n_groups=n_groups
        )
