"""Boosted trees, plain or with a local disparity that is penalised or bounded; needs the extra `boost`."""

from localparity.models.trees._boosters import LocalParityLGBMClassifier, LocalParityXGBClassifier
from localparity.models.trees._objective import MCDPObjective
from localparity.models.trees._stock import TableClassifier

__all__ = [
    "LocalParityLGBMClassifier",
    "LocalParityXGBClassifier",
    "MCDPObjective",
    "TableClassifier",
]
