"""Where two groups of people are treated most differently by a model's scores, and how sure that is."""

from importlib.metadata import version
from typing import TYPE_CHECKING

from localparity import datasets, engines, monitoring, report
from localparity._lazy import lazy_names
from localparity.audit import Audit, audit
from localparity.counts import Comparison, ScoreCounts
from localparity.metrics import (
    GapCurve,
    Interval,
    McdpProfile,
    Window,
    abcc,
    abcc_bound,
    delta_dp,
    gap_curve,
    mcdp,
    mcdp_approximate,
    mcdp_bounds,
    mcdp_profile,
    mcdp_scorer,
    p_rule,
    spdd,
)
from localparity.predictions import Predictions
from localparity.uncertainty import (
    NoiseFloor,
    TestResult,
    WorstSplit,
    mcdp_interval,
    noise_floor,
    permutation_test,
    worst_split,
)

if TYPE_CHECKING:
    from localparity import losses, models, paper
    from localparity.models import load

__version__ = version("localparity")

__all__ = [
    "Audit",
    "Comparison",
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
    "engines",
    "gap_curve",
    "load",
    "losses",
    "mcdp",
    "mcdp_approximate",
    "mcdp_bounds",
    "mcdp_interval",
    "mcdp_profile",
    "mcdp_scorer",
    "models",
    "monitoring",
    "noise_floor",
    "p_rule",
    "paper",
    "permutation_test",
    "report",
    "spdd",
    "worst_split",
]

# What imports torch, numba or scikit-learn.
__getattr__, __dir__ = lazy_names(
    __name__, {"losses": [], "models": [], "models._folder": ["load"], "paper": []}
)
