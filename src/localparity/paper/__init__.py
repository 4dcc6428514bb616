"""The reproduction of the paper: its runs, and the store that tables and figures are made from."""

from localparity.paper._runner import run_missing
from localparity.paper._runs import Run, grid
from localparity.paper._store import Store

__all__ = ["Run", "Store", "grid", "run_missing"]
