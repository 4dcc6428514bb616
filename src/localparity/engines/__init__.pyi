from localparity.engines import protocol as protocol
from localparity.engines._duckdb import from_duckdb as from_duckdb
from localparity.engines._ibis import from_ibis as from_ibis
from localparity.engines._spark import from_spark as from_spark
from localparity.engines._torch import from_torch as from_torch
