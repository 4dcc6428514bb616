"""Repair: any model's scores, moved until their local disparity is within a bound."""

from localparity.models.repair._repaired_classifier import RepairedClassifier
from localparity.models.repair._score_map import ScoreMap
from localparity.models.repair._score_repair import ScoreRepair
from localparity.models.repair.blind import GroupBlindClassifier, GroupBlindRepair

__all__ = ["GroupBlindClassifier", "GroupBlindRepair", "RepairedClassifier", "ScoreMap", "ScoreRepair"]
