"""Engines that count scores where they lie: DuckDB, Spark, or a GPU."""

from localparity.engines._duckdb import from_duckdb
from localparity.engines._spark import from_spark
from localparity.engines._torch import from_torch

__all__ = ["from_duckdb", "from_spark", "from_torch"]
