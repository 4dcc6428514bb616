"""Figures on matplotlib axes, and a page that people can read; needs the extra `report`."""

from typing import TYPE_CHECKING

from localparity._lazy import lazy_names

if TYPE_CHECKING:
    from localparity.report._bundle import write_bundle
    from localparity.report.displays._gap_curve import GapCurveDisplay
    from localparity.report.displays._group_cdf import GroupCdfDisplay
    from localparity.report.displays._impact_ratio import ImpactRatioDisplay
    from localparity.report.displays._over_time import McdpOverTimeDisplay
    from localparity.report.displays._profile import McdpProfileDisplay
    from localparity.report.displays._trade_off import TradeOffDisplay
    from localparity.report.page._monitor_page import write_monitor_page
    from localparity.report.page._page import write_page

__all__ = [
    "GapCurveDisplay",
    "GroupCdfDisplay",
    "ImpactRatioDisplay",
    "McdpOverTimeDisplay",
    "McdpProfileDisplay",
    "TradeOffDisplay",
    "write_bundle",
    "write_monitor_page",
    "write_page",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "displays._gap_curve": ["GapCurveDisplay"],
        "displays._group_cdf": ["GroupCdfDisplay"],
        "displays._impact_ratio": ["ImpactRatioDisplay"],
        "displays._over_time": ["McdpOverTimeDisplay"],
        "displays._profile": ["McdpProfileDisplay"],
        "displays._trade_off": ["TradeOffDisplay"],
        "_bundle": ["write_bundle"],
        "page._monitor_page": ["write_monitor_page"],
        "page._page": ["write_page"],
    },
)
