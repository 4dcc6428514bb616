"""The difference of selection rates at every threshold."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from localparity._types import Criterion, Group
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._comparison import group_text
from localparity.metrics import GapCurve
from localparity.report._thin import thin_steps
from localparity.report.displays._display import (
    FIRST,
    SECOND,
    CountsDisplay,
    chosen_curve,
    finish_scores,
    legend_above,
    show_percent,
    shown_name,
)


class SelectionRateDisplay(CountsDisplay):
    """How far the selection rates of a pair are apart at every threshold, and where they are farthest.

    A score above the threshold is selected. Make one with `from_predictions`, `from_estimator` or
    `from_counts`.

    Parameters
    ----------
    curve : GapCurve
        The pair's curve; the difference of the selection rates is the gap with its sign turned.

    Examples
    --------
    >>> import localparity as lp
    >>> display = lp.report.SelectionRateDisplay.from_predictions(
    ...     None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"]
    ... )
    >>> display.ax_.get_ylabel()
    'difference of rates'
    """

    def __init__(self, curve: GapCurve) -> None:
        self.curve = curve

    @classmethod
    def from_counts(
        cls,
        counts: ScoreCounts,
        *,
        criterion: Criterion = "demographic_parity",
        ax: Any = None,
        groups: tuple[Group, Group] | None = None,
    ) -> Self:
        """Draw counts.

        Parameters
        ----------
        counts : ScoreCounts
            The counts.
        criterion : str
            Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
            "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        groups : tuple, optional
            The pair; the worst one without it.

        Returns
        -------
        SelectionRateDisplay
            The display, drawn.
        """
        return cls(chosen_curve(counts, Comparison(criterion), groups, 0.0)).plot(ax)

    def _draw(self, ax: Any) -> None:
        kept = self.curve.knots[thin_steps(self.curve.knots, self.curve.gap)]
        thresholds = np.union1d(kept, self.curve.score_range)
        difference = -self.curve(thresholds)
        names = [shown_name(group_text(group)) for group in self.curve.groups]
        more = [f"{name} selected more" for name in names]
        sides = ((np.maximum(difference, 0.0), FIRST, None), (np.minimum(difference, 0.0), SECOND, "///"))
        for name, (side, colour, hatch) in zip(more, sides, strict=True):
            if side.any():
                shown = {"facecolor": colour, "alpha": 0.35, "hatch": hatch, "lw": 0, "label": name}
                ax.fill_between(thresholds, side, step="post", **shown)
        ax.axhline(0.0, color="black", lw=0.8)
        ax.step(thresholds, difference, where="post", color="black", lw=1.0)
        worst = int(np.argmax(np.abs(difference)))
        where = f"largest: {100 * abs(difference[worst]):.1f} points at {thresholds[worst]:.3g}"
        ax.plot(thresholds[worst], difference[worst], "o", color="black", ms=4, label=where)
        ax.set_ylabel("difference of rates")
        show_percent(ax.yaxis)
        finish_scores(ax, self.curve.score_range, self.curve.label)
        legend_above(ax, [*more, where])
