"""Average precision against MCDP, for several models."""

from __future__ import annotations

from typing import Any

from localparity.metrics import Interval
from localparity.models._frontier import Frontier
from localparity.models._outcomes import ModelComparison, Outcome
from localparity.report.displays._base import (
    COLOURS,
    INK,
    MARKERS,
    QUIET,
    Display,
    point_to_better,
    show_percent,
    shown_name,
    write_beside,
)


class ModelsDisplay(Display):
    """A display of average precision against MCDP, for several models."""

    @staticmethod
    def _add_model(ax: Any, interval: Interval, average_precision: float, name: str, **look: Any) -> None:
        """A model at its MCDP and average precision, with the interval of the former and its name."""
        ends = [[interval.estimate - interval.low], [interval.high - interval.estimate]]
        ax.errorbar(interval.estimate, average_precision, xerr=ends, capsize=3, **look)
        at = (interval.estimate, average_precision)
        write_beside(ax, at, shown_name(name).strip(), colour=look["color"], move=(3.0, 9.0))

    def _show_axes(self, ax: Any, epsilon: float, *, part: str = "") -> None:
        """The two axes, measured on a part of the data."""
        ax.set_xlim(0.0, None)
        ax.margins(y=0.15)
        show_percent(ax.xaxis, f"MCDP({epsilon:g}){part}")
        show_percent(ax.yaxis, f"average precision{part}")
        point_to_better(ax)

    @staticmethod
    def _add_rule(ax: Any, value: float, name: str, style: str) -> None:
        """A line across, with its name along it."""
        ax.axvline(value, color=QUIET, lw=1.0, ls=style, zorder=0)
        look = {"xycoords": ax.get_xaxis_transform(), "rotation": 90, "va": "bottom"}
        write_beside(ax, (value, 0.02), name, colour=QUIET, move=(-3.0, 0.0), **look)


# The frontier: a line with its band.


class FrontierDisplay(ModelsDisplay):
    """The best average precision that group-blind scores reach at each bound, with its band."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier

    def draw_line(self, ax: Any) -> None:
        """Draw the line and its band on axes."""
        disparity, best, low, high = self.frontier.envelope()
        ax.plot(disparity, best, color=INK, lw=1.8, zorder=2)
        ax.fill_between(disparity, low, high, color=INK, alpha=0.12, lw=0.0, zorder=1)
        place = len(disparity) // 2
        name = f"frontier ({100.0 * self.frontier.confidence:g}% band)"
        write_beside(ax, (disparity[place], best[place]), name, move=(6.0, -9.0))

    def _draw(self, ax: Any) -> None:
        self.draw_line(ax)
        self._add_rule(ax, self.frontier.noise_floor, "expected under parity", ":")
        self._show_axes(ax, self.frontier.epsilon)


# Average precision against MCDP, of every method at every setting.


class ComparisonDisplay(ModelsDisplay):
    """Average precision against MCDP of the test part: up and to the left is better.

    A method has one colour and marker, hollow where its scores are repaired. Large markers, with their
    interval, are the settings that were chosen; small ones are the others. The line is the
    frontier, which repaired scores, as they look at the group, may lie beyond.
    """

    def __init__(self, comparison: ModelComparison) -> None:
        self.comparison = comparison

    def _draw(self, ax: Any) -> None:
        found = self.comparison
        methods = list(dict.fromkeys(outcome.method for outcome in found.outcomes))
        if found.frontier is not None:
            FrontierDisplay(found.frontier).draw_line(ax)
        for outcome in found.outcomes:
            self._draw_outcome(ax, outcome, methods.index(outcome.method))
        self._add_rule(ax, found.max_mcdp, "bound", "--")
        if found.recommended.test.noise_floor is not None:
            self._add_rule(ax, found.recommended.test.noise_floor, "expected under parity", ":")
        self._show_axes(ax, found.epsilon, part=" on test data")

    def _draw_outcome(self, ax: Any, outcome: Outcome, place: int) -> None:
        colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        look: dict[str, Any] = {"color": colour, "mfc": "white" if outcome.repaired else colour}
        ax.plot(*zip(*outcome.settings, strict=True), marker, ms=3.0, alpha=0.55, zorder=2, **look)
        look |= {"fmt": marker, "ms": 7.5, "lw": 1.2, "zorder": 3}
        assert outcome.test.interval is not None
        self._add_model(ax, outcome.test.interval, outcome.test.average_precision, outcome.name, **look)
