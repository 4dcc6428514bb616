"""Figures on matplotlib axes, and a page that people can read; needs the extra `report`."""

from typing import TYPE_CHECKING

from localparity._lazy import lazy_names

if TYPE_CHECKING:
    from localparity.report._bundle import write_bundle
    from localparity.report.displays._curves import (
        GapCurveDisplay,
        GroupCdfDisplay,
        ImpactRatioDisplay,
        McdpProfileDisplay,
    )
    from localparity.report.displays._models import TradeOffDisplay
    from localparity.report.displays._over_time import McdpOverTimeDisplay
    from localparity.report.page._monitor import write_monitor_page
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
        "_bundle": ["write_bundle"],
        "displays._curves": [
            "GapCurveDisplay",
            "GroupCdfDisplay",
            "ImpactRatioDisplay",
            "McdpProfileDisplay",
        ],
        "displays._models": ["TradeOffDisplay"],
        "displays._over_time": ["McdpOverTimeDisplay"],
        "page._monitor": ["write_monitor_page"],
        "page._page": ["write_page"],
    },
)
