"""Average precision against MCDP, of every method at every setting."""

from __future__ import annotations

from typing import Any

from localparity.models._outcomes import ModelComparison, Outcome
from localparity.report.displays._display import COLOURS, MARKERS, QUIET, ModelsDisplay, shown_name
from localparity.report.displays._frontier import FrontierDisplay


class ComparisonDisplay(ModelsDisplay):
    """Average precision against MCDP of the test part: up and to the left is better.

    A method has one colour and marker, hollow where its scores are repaired. Large markers, with their
    interval, are the settings that were chosen; small ones are the others. The line is the
    frontier, which repaired scores, as they look at the group, may lie beyond.

    Parameters
    ----------
    comparison : ModelComparison
        What `compare` found.

    Examples
    --------
    >>> import localparity as lp
    >>> outcome = lp.models.Outcome(
    ...     "ERM", False, "", 0.8, 0.2, False, 0.8, lp.Interval(0.1, 0.2, 0.3, 0.95), 0.01, ((0.2, 0.8),)
    ... )
    >>> found = lp.models.ModelComparison(
    ...     (outcome,), 0.05, 0.0, "demographic_parity", (2, 1, 1), {}
    ... )
    >>> ComparisonDisplay(found).plot().ax_.get_xlabel()
    'MCDP(0) on test data'
    """

    def __init__(self, comparison: ModelComparison) -> None:
        self.comparison = comparison

    def _draw(self, ax: Any) -> None:
        found = self.comparison
        methods = list(dict.fromkeys(outcome.method for outcome in found.outcomes))
        names = [outcome.name for outcome in found.outcomes]
        if found.frontier is not None:
            names += FrontierDisplay(found.frontier).draw_line(ax)
        for outcome in found.outcomes:
            self._draw_outcome(ax, outcome, methods.index(outcome.method))
        ax.axvline(found.max_mcdp, color=QUIET, lw=1.0, ls="--", zorder=0, label="the bound")
        floor = found.recommended.noise_floor
        ax.axvline(floor, color=QUIET, lw=1.0, ls=":", zorder=0, label="expected under parity")
        self._show_axes(ax, found.epsilon, names, part=" on test data")

    def _draw_outcome(self, ax: Any, outcome: Outcome, place: int) -> None:
        colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        look: dict[str, Any] = {"color": colour, "mfc": "white" if outcome.repaired else colour}
        ax.plot(*zip(*outcome.settings, strict=True), marker, ms=3.0, alpha=0.55, zorder=2, **look)
        look |= {"fmt": marker, "ms": 7.5, "lw": 1.2, "zorder": 3, "label": shown_name(outcome.name)}
        self._add_model(ax, outcome.interval, outcome.average_precision, **look)
