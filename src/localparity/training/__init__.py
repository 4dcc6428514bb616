"""Training: disparities as losses, seven methods, one loop, and an estimator."""

from localparity._optional import require

require("torch", extra="train")

from localparity._bound import BoundNotMetWarning, Trial  # noqa: E402
from localparity.training._distributed import gather_rows  # noqa: E402
from localparity.training._estimator import LocalParityClassifier  # noqa: E402
from localparity.training._losses import ABCCLoss, DPLoss, MCDPLoss  # noqa: E402
from localparity.training._method import Method, MethodOptions  # noqa: E402
from localparity.training._methods import METHODS  # noqa: E402
from localparity.training._networks import Network  # noqa: E402
from localparity.training._rows import Rows  # noqa: E402
from localparity.training._split_loss import SplitMCDPLoss  # noqa: E402
from localparity.training._trainer import Plan, Trainer  # noqa: E402

__all__ = [
    "METHODS",
    "ABCCLoss",
    "BoundNotMetWarning",
    "DPLoss",
    "LocalParityClassifier",
    "MCDPLoss",
    "Method",
    "MethodOptions",
    "Network",
    "Plan",
    "Rows",
    "SplitMCDPLoss",
    "Trainer",
    "Trial",
    "gather_rows",
]
