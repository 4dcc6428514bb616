"""Boosted trees whose local disparity is penalised or bounded; needs the extra `boost`."""

from localparity.models.trees._boosters import LocalParityLGBMClassifier, LocalParityXGBClassifier
from localparity.models.trees._objective import MCDPObjective

__all__ = ["LocalParityLGBMClassifier", "LocalParityXGBClassifier", "MCDPObjective"]
