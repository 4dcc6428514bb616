"""The paper's figures from a store, each drawn by a function that takes axes."""

from localparity.paper.figures._cdfs import draw_cdfs
from localparity.paper.figures._profiles import draw_profiles
from localparity.paper.figures._trade_offs import draw_temperatures, draw_trade_off
from localparity.paper.figures._windows import draw_windows
from localparity.paper.figures._write import write_figures

__all__ = [
    "draw_cdfs",
    "draw_profiles",
    "draw_temperatures",
    "draw_trade_off",
    "draw_windows",
    "write_figures",
]
