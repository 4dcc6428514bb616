"""Metrics of the disparity between groups, all of them on `ScoreCounts` and `GapCurve`."""

from localparity.metrics._approximate import mcdp_approximate
from localparity.metrics._gap_curve import GapCurve, Interval, gap_curve
from localparity.metrics._mcdp import mcdp, mcdp_bounds, mcdp_profile, mcdp_scorer
from localparity.metrics._profile import McdpProfile
from localparity.metrics._rates import abcc, abcc_bound, delta_dp, p_rule, spdd
from localparity.metrics._scoring_rates import CategoryRate, CategoryTable, ScoringRates, scoring_rates
from localparity.metrics._unknown_groups import Breakdown, GroupBounds, UnknownGroups, unknown_groups
from localparity.metrics._window import Window

__all__ = [
    "Breakdown",
    "CategoryRate",
    "CategoryTable",
    "GapCurve",
    "GroupBounds",
    "Interval",
    "McdpProfile",
    "ScoringRates",
    "UnknownGroups",
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
    "scoring_rates",
    "spdd",
    "unknown_groups",
]
