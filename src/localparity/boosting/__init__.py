"""Boosted trees whose local disparity is penalised, or kept within a bound; needs the extra `boost`."""

from localparity._bound import BoundNotMetWarning, Trial
from localparity.boosting._lightgbm import LocalParityLGBMClassifier
from localparity.boosting._objective import MCDPObjective
from localparity.boosting._xgboost import LocalParityXGBClassifier

__all__ = [
    "BoundNotMetWarning",
    "LocalParityLGBMClassifier",
    "LocalParityXGBClassifier",
    "MCDPObjective",
    "Trial",
]
