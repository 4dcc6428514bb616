"""The same metrics for data that is larger than memory, on a cluster, a stream or a GPU."""

from localparity.scale._disparity import LocalDisparity
from localparity.scale._duckdb import from_duckdb
from localparity.scale._grid import bounded, merge_bounded
from localparity.scale._monitor import Monitor, PeriodResult
from localparity.scale._sketch import ScoreSketch
from localparity.scale._spark import from_spark
from localparity.scale._torch import from_torch

__all__ = [
    "LocalDisparity",
    "Monitor",
    "PeriodResult",
    "ScoreSketch",
    "bounded",
    "from_duckdb",
    "from_spark",
    "from_torch",
    "merge_bounded",
]
