"""Networks trained with a penalty on the disparity between groups; needs the extra `train`."""

from localparity._validation import require

require("torch", extra="train")

from localparity.models.networks._batches import TensorRows  # noqa: E402
from localparity.models.networks._classifier import LocalParityClassifier  # noqa: E402
from localparity.models.networks._losses import gather_rows  # noqa: E402
from localparity.models.networks._methods import (  # noqa: E402
    METHODS,
    Method,
    ScoredBatch,
    TrainingSettings,
)
from localparity.models.networks._networks import Network  # noqa: E402

__all__ = [
    "METHODS",
    "LocalParityClassifier",
    "Method",
    "Network",
    "ScoredBatch",
    "TensorRows",
    "TrainingSettings",
    "gather_rows",
]
