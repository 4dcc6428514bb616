"""Engines that count scores where they are: DuckDB, Spark, a warehouse or a GPU."""

from localparity.engines import protocol
from localparity.engines._arrays import from_arrays
from localparity.engines._duckdb import from_duckdb
from localparity.engines._ibis import from_ibis
from localparity.engines._spark import from_spark
from localparity.engines._torch import from_torch

__all__ = [
    "from_arrays",
    "from_duckdb",
    "from_ibis",
    "from_spark",
    "from_torch",
    "protocol",
]
