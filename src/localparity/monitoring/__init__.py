"""Local disparity over time: sketches of a stream, a monitor of periods, and a streaming metric."""

from typing import TYPE_CHECKING

from localparity._lazy import lazy_names
from localparity.monitoring._monitor import Monitor
from localparity.monitoring._results import PeriodResult, WindowResult
from localparity.monitoring._sketch import ScoreSketch

if TYPE_CHECKING:
    from localparity.monitoring._streaming import LocalDisparity

__all__ = ["LocalDisparity", "Monitor", "PeriodResult", "ScoreSketch", "WindowResult"]

__getattr__, __dir__ = lazy_names(__name__, {"_streaming": ["LocalDisparity"]})  # which imports torch
