"""DiffMCDP: the maximal local disparity as the penalty."""

from __future__ import annotations

from torch import Tensor

from localparity.counts._comparison import CRITERIA
from localparity.models.networks._losses import MCDPLoss
from localparity.models.networks._method import Method, MethodOptions, Scored
from localparity.models.networks._networks import Network
from localparity.models.networks._rows import Rows


class DiffMCDP(Method):
    """Cross-entropy plus `MCDPLoss`.

    With ``search="frozen"`` the threshold is the training rows' positive rate, where the published code
    for tables started its solver and in effect stayed.

    Examples
    --------
    >>> DiffMCDP(0.3, 2, MethodOptions()).name
    'diffmcdp'
    """

    name = "diffmcdp"
    criteria = CRITERIA

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

    def prepare(self, training: Rows, network: Network) -> None:
        """Freeze the threshold at the positive rate."""
        if self.options.search == "frozen":
            self.loss.threshold = training.labels.mean()

    def penalty(self, network: Network, batch: Scored) -> Tensor:
        """The batch's maximal local disparity."""
        disparity: Tensor = self.loss(batch.logits, *batch.whole.compared())
        return self.strength * disparity
