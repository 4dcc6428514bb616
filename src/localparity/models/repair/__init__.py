"""Postprocessing: any model's scores, repaired until their local disparity is within a bound."""

from localparity.models.repair._score_repair import ScoreRepair

__all__ = ["ScoreRepair"]
