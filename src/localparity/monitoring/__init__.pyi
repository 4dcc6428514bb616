from localparity.monitoring._monitor import Monitor as Monitor
from localparity.monitoring._results import PeriodResult as PeriodResult
from localparity.monitoring._results import WindowResult as WindowResult
from localparity.monitoring._sketch import ScoreSketch as ScoreSketch
from localparity.monitoring._streaming import LocalDisparity as LocalDisparity
