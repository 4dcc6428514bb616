"""Figures on matplotlib axes, and a page that people can read; needs the extra `report`."""

from localparity.report._gap_curve_display import GapCurveDisplay
from localparity.report._group_cdf_display import GroupCdfDisplay
from localparity.report._mcdp_profile_display import McdpProfileDisplay
from localparity.report._over_time_display import McdpOverTimeDisplay
from localparity.report._page import write_page
from localparity.report._selection_rate_display import SelectionRateDisplay
from localparity.report._trade_off_display import TradeOffDisplay

__all__ = [
    "GapCurveDisplay",
    "GroupCdfDisplay",
    "McdpOverTimeDisplay",
    "McdpProfileDisplay",
    "SelectionRateDisplay",
    "TradeOffDisplay",
    "write_page",
]
