from localparity.monitoring._monitor import Monitor as Monitor
from localparity.monitoring._planning import periods_needed as periods_needed
from localparity.monitoring._sketch import ScoreSketch as ScoreSketch
from localparity.monitoring._streaming import LocalDisparity as LocalDisparity
from localparity.monitoring._watch import PeriodResult as PeriodResult
from localparity.monitoring._watch import Watch as Watch
from localparity.monitoring._watch import WindowResult as WindowResult
