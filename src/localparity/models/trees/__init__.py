"""Boosted trees, plain or with a local disparity that is penalised or bounded; needs the extra `boost`."""

from localparity.models.trees._lightgbm import LocalParityLGBMClassifier
from localparity.models.trees._objective import MCDPObjective
from localparity.models.trees._tables import TableClassifier
from localparity.models.trees._xgboost import LocalParityXGBClassifier

__all__ = [
    "LocalParityLGBMClassifier",
    "LocalParityXGBClassifier",
    "MCDPObjective",
    "TableClassifier",
]
