"""Where two groups of people are treated most differently by a model's scores, and how sure that is."""

from typing import TYPE_CHECKING

from localparity._lazy import lazy_names

if TYPE_CHECKING:
    from localparity import counts, datasets, engines, losses, models, monitoring, paper, report
    from localparity._types import Compare, Criterion
    from localparity._version import __version__ as __version__
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
    from localparity.models import load
    from localparity.predictions import Predictions
    from localparity.uncertainty import (
        NoiseFloor,
        PairedComparison,
        TestResult,
        WorstSplit,
        compare_scores,
        mcdp_interval,
        noise_floor,
        permutation_test,
        worst_split,
    )

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
    "PairedComparison",
    "Predictions",
    "ScoreCounts",
    "TestResult",
    "Verdict",
    "Window",
    "WorstSplit",
    "abcc",
    "abcc_bound",
    "audit",
    "compare_scores",
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_types": ["Compare", "Criterion"],
        "_version": ["__version__"],
        "audit": ["Audit", "Finding", "GroupSummary", "LeftOut", "PairSummary", "Verdict", "audit"],
        "counts": [],
        "counts._comparison": ["Comparison"],
        "counts._score_counts": ["ScoreCounts"],
        "datasets": [],
        "engines": [],
        "losses": [],
        "metrics": [
            "GapCurve",
            "Interval",
            "McdpProfile",
            "Window",
            "abcc",
            "abcc_bound",
            "delta_dp",
            "gap_curve",
            "mcdp",
            "mcdp_approximate",
            "mcdp_bounds",
            "mcdp_profile",
            "mcdp_scorer",
            "p_rule",
            "spdd",
        ],
        "models": [],
        "models._folder": ["load"],
        "monitoring": [],
        "paper": [],
        "predictions": ["Predictions"],
        "report": [],
        "uncertainty": [
            "NoiseFloor",
            "PairedComparison",
            "TestResult",
            "WorstSplit",
            "compare_scores",
            "mcdp_interval",
            "noise_floor",
            "permutation_test",
            "worst_split",
        ],
    },
)
