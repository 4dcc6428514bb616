"""Training: disparities as losses, seven methods, one loop, and an estimator."""

from localparity._optional import require

require("torch", extra="train")

from localparity.training._losses import ABCCLoss, DPLoss, MCDPLoss  # noqa: E402

__all__ = ["ABCCLoss", "DPLoss", "MCDPLoss"]
