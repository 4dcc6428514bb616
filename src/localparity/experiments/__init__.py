"""The paper's experiments: grids as data, a store that survives, tables and figures."""

from localparity.experiments._run import Run, grid
from localparity.experiments._runner import run_missing
from localparity.experiments._store import DamagedRunWarning, OutdatedRunWarning, Record, Store

__all__ = ["DamagedRunWarning", "OutdatedRunWarning", "Record", "Run", "Store", "grid", "run_missing"]
