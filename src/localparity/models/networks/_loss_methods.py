"""DiffDP, DiffABCC and DiffMCDP: methods whose penalty is one of the losses."""

from __future__ import annotations

from torch import Tensor, nn

from localparity.counts._comparison import CRITERIA
from localparity.models.networks._losses import ABCCLoss, DPLoss, MCDPLoss
from localparity.models.networks._method import Method, MethodOptions, ScoredBatch
from localparity.models.networks._networks import Network
from localparity.models.networks._rows import TensorRows


class LossMethod(Method):
    """Cross-entropy plus a loss of the whole batch's logits."""

    criteria = CRITERIA
    loss: nn.Module

    def penalty(self, network: Network, batch: ScoredBatch) -> Tensor:
        """The strength times the loss."""
        rows = batch.whole
        disparity: Tensor = self.loss(batch.logits, rows.groups, rows.labels, rows.weights)
        return self.strength * disparity


class DiffDP(LossMethod):
    """Cross-entropy plus `DPLoss`, the difference between the groups' mean scores."""

    name = "diffdp"

    def __init__(self, strength: float, n_groups: int, options: MethodOptions) -> None:
        super().__init__(strength, n_groups, options)
        self.loss = DPLoss(criterion=options.criterion, from_logits=True, n_groups=n_groups)


class DiffABCC(LossMethod):
    """Cross-entropy plus `ABCCLoss`, the area between the groups' smoothed distributions."""

    name = "diffabcc"

    def __init__(self, strength: float, n_groups: int, options: MethodOptions) -> None:
        super().__init__(strength, n_groups, options)
        self.loss = ABCCLoss(
            options.temperature, criterion=options.criterion, from_logits=True, n_groups=n_groups
        )


class DiffMCDP(LossMethod):
    """Cross-entropy plus `MCDPLoss`, the maximal local disparity of the groups' smoothed distributions.

    With ``search="frozen"`` the threshold is the share of label 1 in the training rows, where the published
    code for tables started its solver and in effect stayed.
    """

    name = "diffmcdp"
    loss: MCDPLoss

    def __init__(self, strength: float, n_groups: int, options: MethodOptions) -> None:
        super().__init__(strength, n_groups, options)
        self.loss = MCDPLoss(
            options.temperature,
            options.epsilon,
            search=options.search,
            threshold=0.5 if options.search == "frozen" else None,
            sharpness=options.sharpness,
            memory=options.memory,
            criterion=options.criterion,
            from_logits=True,
            n_groups=n_groups,
        )

    def prepare(self, training: TensorRows, network: Network) -> None:
        """Freeze the threshold at the share of label 1."""
        if self.options.search == "frozen":
            self.loss.threshold = training.labels.mean()
