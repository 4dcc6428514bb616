"""Where two groups of people are treated most differently by a model's scores, and how sure that is."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from localparity import counts, datasets, engines, monitoring, report
from localparity._lazy import lazy_names
from localparity._types import Compare, Criterion
from localparity.audit import Audit, Finding, GroupSummary, LeftOut, PairSummary, Verdict, audit
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

try:
    __version__ = version("localparity")
except PackageNotFoundError:  # imported from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "Audit",
    "Compare",
    "Comparison",
    "Criterion",
    "Finding",
    "GapCurve",
    "GroupSummary",
    "Interval",
    "LeftOut",
    "McdpProfile",
    "NoiseFloor",
    "PairSummary",
    "Predictions",
    "ScoreCounts",
    "TestResult",
    "Verdict",
    "Window",
    "WorstSplit",
    "abcc",
    "abcc_bound",
    "audit",
    "counts",
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
