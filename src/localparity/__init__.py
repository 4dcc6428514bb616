"""Where two groups of people are treated most differently by a model's scores, and how sure that is."""

from importlib import import_module
from typing import Any

from localparity import datasets, report, scale
from localparity._audit import Audit, audit
from localparity.metrics import (
    GapCurve,
    McdpProfile,
    ScoreCounts,
    Window,
    abcc,
    abcc_bound,
    delta_dp,
    gap_curve,
    mcdp,
    mcdp_approximate,
    mcdp_profile,
    mcdp_scorer,
    p_rule,
    spdd,
)
from localparity.predictions import Predictions
from localparity.uncertainty import (
    Interval,
    NoiseFloor,
    TestResult,
    WorstSplit,
    mcdp_interval,
    noise_floor,
    permutation_test,
    worst_split,
)

__version__ = "0.2.0"

__all__ = [
    "Audit",
    "GapCurve",
    "Interval",
    "McdpProfile",
    "NoiseFloor",
    "Predictions",
    "ScoreCounts",
    "TestResult",
    "Window",
    "WorstSplit",
    "abcc",
    "abcc_bound",
    "audit",
    "datasets",
    "delta_dp",
    "gap_curve",
    "mcdp",
    "mcdp_approximate",
    "mcdp_interval",
    "mcdp_profile",
    "mcdp_scorer",
    "noise_floor",
    "p_rule",
    "permutation_test",
    "report",
    "scale",
    "spdd",
    "worst_split",
]

_LAZY = ("boosting", "comparison", "experiments", "postprocessing", "training")


def __getattr__(name: str) -> Any:
    """The parts that import torch, numba or scikit-learn, on first use."""
    if name in _LAZY:
        return import_module(f"localparity.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
