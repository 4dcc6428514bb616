"""How sure a measured disparity is: intervals, a test against parity, and what is expected under parity."""

from localparity.metrics._gap_curve import Interval
from localparity.uncertainty._impact import (
    CutoffRange,
    ImpactRatio,
    ImpactRatioCurve,
    SafeCutoffs,
    impact_ratio_curve,
)
from localparity.uncertainty._intervals import mcdp_interval
from localparity.uncertainty._noise_floor import NoiseFloor, noise_floor
from localparity.uncertainty._paired import PairedComparison, compare_scores
from localparity.uncertainty._permutation import TestResult, permutation_test
from localparity.uncertainty._power import Detectable, minimum_detectable, rows_needed
from localparity.uncertainty._soft_groups import SoftBounds, SoftGroups, soft_groups
from localparity.uncertainty._splits import WorstSplit, worst_split
from localparity.uncertainty._strata import StratumSummary, WithinStrata, within_strata

__all__ = [
    "CutoffRange",
    "Detectable",
    "ImpactRatio",
    "ImpactRatioCurve",
    "Interval",
    "NoiseFloor",
    "PairedComparison",
    "SafeCutoffs",
    "SoftBounds",
    "SoftGroups",
    "StratumSummary",
    "TestResult",
    "WithinStrata",
    "WorstSplit",
    "compare_scores",
    "impact_ratio_curve",
    "mcdp_interval",
    "minimum_detectable",
    "noise_floor",
    "permutation_test",
    "rows_needed",
    "soft_groups",
    "within_strata",
    "worst_split",
]
