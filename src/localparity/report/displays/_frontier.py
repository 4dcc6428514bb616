"""The frontier: a line with its band."""

from __future__ import annotations

from typing import Any

from localparity.models._frontier import Frontier
from localparity.report.displays._display import QUIET, ModelsDisplay

_LINE = "#1F2937"


class FrontierDisplay(ModelsDisplay):
    """The best average precision that group-blind scores reach at each bound, with its band.

    Parameters
    ----------
    frontier : Frontier
        What `frontier` found.

    Examples
    --------
    >>> import localparity as lp
    >>> measured = (0.02, 0.1), (0.7, 0.78), (0.68, 0.76), (0.72, 0.8)
    >>> found = lp.models.Frontier((0.0, 0.1), *measured, 0.02, 0.0, "demographic_parity", 0.95, 2000)
    >>> FrontierDisplay(found).plot().ax_.get_xlabel()
    'MCDP(0)'
    """

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier

    def draw_line(self, ax: Any) -> list[str]:
        """Draw the line and its band on axes, and return their names."""
        disparity, best, low, high = self.frontier.envelope()
        names = ["frontier", f"{100.0 * self.frontier.confidence:g}% band of the frontier"]
        ax.plot(disparity, best, color=_LINE, lw=1.8, zorder=2, label=names[0])
        ax.fill_between(disparity, low, high, color=_LINE, alpha=0.12, lw=0.0, zorder=1, label=names[1])
        return names

    def _draw(self, ax: Any) -> None:
        names = self.draw_line(ax)
        floor = self.frontier.noise_floor
        ax.axvline(floor, color=QUIET, lw=1.0, ls=":", zorder=0, label="expected under parity")
        self._show_axes(ax, self.frontier.epsilon, names)
