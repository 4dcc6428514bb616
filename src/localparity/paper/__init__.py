"""The reproduction of the paper: its data, grids, a store of runs, tables and figures."""

from localparity.paper._data import Split, paper_preprocessor, paper_split
from localparity.paper._images import load_celeba, load_utkface
from localparity.paper._runner import run_missing
from localparity.paper._runs import Run, grid
from localparity.paper._store import DamagedRunWarning, OutdatedRunWarning, PartScores, Record, Store

__all__ = [
    "DamagedRunWarning",
    "OutdatedRunWarning",
    "PartScores",
    "Record",
    "Run",
    "Split",
    "Store",
    "grid",
    "load_celeba",
    "load_utkface",
    "paper_preprocessor",
    "paper_split",
    "run_missing",
]
