"""Metrics of the disparity between groups, all of them on `ScoreCounts` and `GapCurve`."""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
