"""Figures on matplotlib axes, and a page that people can read; needs the extra `report`."""

from localparity.report._page import notebook_summary, write_page

__all__ = [
    "notebook_summary",
    "write_page",
]
