"""For each group and label the distinct scores and the weight at each: all that the metrics need."""

from localparity.counts._coarsen import bounded, merge_bounded
from localparity.counts._comparison import Comparison
from localparity.counts._disclosure import disclosed
from localparity.counts._score_counts import ScoreCounts

__all__ = ["Comparison", "ScoreCounts", "bounded", "disclosed", "merge_bounded"]
