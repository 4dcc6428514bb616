"""Repair without the group: the best scores under a bound that look at features alone."""

from localparity.models.repair.blind._classifier import GroupBlindClassifier
from localparity.models.repair.blind._repair import GroupBlindRepair

__all__ = ["GroupBlindClassifier", "GroupBlindRepair"]
