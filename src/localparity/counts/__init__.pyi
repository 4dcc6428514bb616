from localparity.counts._coarsen import bounded as bounded
from localparity.counts._coarsen import merge_bounded as merge_bounded
from localparity.counts._comparison import Comparison as Comparison
from localparity.counts._disclosure import disclosed as disclosed
from localparity.counts._score_counts import ScoreCounts as ScoreCounts
