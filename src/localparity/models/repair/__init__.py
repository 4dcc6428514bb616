"""Repair: any model's scores, moved until their local disparity is within a bound."""

from localparity.models.repair._group_blind import GroupBlindClassifier, GroupBlindRepair
from localparity.models.repair._maps import ScoreMap
from localparity.models.repair._repaired_classifier import RepairedClassifier
from localparity.models.repair._score_repair import ScoreRepair

__all__ = ["GroupBlindClassifier", "GroupBlindRepair", "RepairedClassifier", "ScoreMap", "ScoreRepair"]
