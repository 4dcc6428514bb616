"""DiffMCDP: the maximal local disparity as the penalty."""

from __future__ import annotations

from localparity.models.networks._losses import MCDPLoss
from localparity.models.networks._method import LossMethod, MethodOptions
from localparity.models.networks._networks import Network
from localparity.models.networks._rows import TensorRows


class DiffMCDP(LossMethod):
    """Cross-entropy plus `MCDPLoss`.

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
