"""Disparities between groups as losses for PyTorch; needs the extra `train`."""

from localparity.models.networks._losses import ABCCLoss, DPLoss, MCDPLoss

__all__ = ["ABCCLoss", "DPLoss", "MCDPLoss"]
