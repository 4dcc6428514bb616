"""Boosted trees whose local disparity is penalised, or kept within a bound; needs the extra `boost`."""

from localparity.models.trees._lightgbm import LocalParityLGBMClassifier
from localparity.models.trees._objective import MCDPObjective
from localparity.models.trees._xgboost import LocalParityXGBClassifier

__all__ = ["LocalParityLGBMClassifier", "LocalParityXGBClassifier", "MCDPObjective"]
