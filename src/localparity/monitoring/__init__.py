"""Local disparity over time: sketches of a stream, a monitor of periods, and a streaming metric."""

from localparity.monitoring._monitor import Monitor
from localparity.monitoring._results import PeriodResult, WindowResult
from localparity.monitoring._sketch import ScoreSketch
from localparity.monitoring._streaming import LocalDisparity

__all__ = ["LocalDisparity", "Monitor", "PeriodResult", "ScoreSketch", "WindowResult"]
