"""How sure a measured disparity is: intervals, a test against parity, and what is expected under parity."""

from localparity.metrics._interval import Interval
from localparity.uncertainty._intervals import mcdp_interval
from localparity.uncertainty._noise_floor import NoiseFloor, noise_floor
from localparity.uncertainty._paired import PairedComparison, compare_scores
from localparity.uncertainty._permutation import TestResult, permutation_test
from localparity.uncertainty._power import Detectable, minimum_detectable, rows_needed
from localparity.uncertainty._worst_split import WorstSplit, worst_split

__all__ = [
    "Detectable",
    "Interval",
    "NoiseFloor",
    "PairedComparison",
    "TestResult",
    "WorstSplit",
    "compare_scores",
    "mcdp_interval",
    "minimum_detectable",
    "noise_floor",
    "permutation_test",
    "rows_needed",
    "worst_split",
]
