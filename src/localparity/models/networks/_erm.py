"""ERM: cross-entropy and nothing else."""

from __future__ import annotations

from localparity._validation import as_strength
from localparity.counts._comparison import CRITERIA
from localparity.models.networks._method import Method, MethodOptions


class ERM(Method):
    """Empirical risk minimisation; its strength is 0 whatever it is given."""

    name = "erm"
    criteria = CRITERIA

    def __init__(self, strength: float, n_groups: int, options: MethodOptions) -> None:
        super().__init__(0.0 * as_strength(strength), n_groups, options)
