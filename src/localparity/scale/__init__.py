"""The same metrics for data that is larger than memory, on a cluster, a stream or a GPU."""

from localparity.scale._duckdb import from_duckdb
from localparity.scale._grid import bounded, merge_bounded

__all__ = ["bounded", "from_duckdb", "merge_bounded"]
