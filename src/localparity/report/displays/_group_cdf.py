"""Two groups' cumulative distributions, the gap between them and the worst window."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from localparity._types import Criterion, FloatArray, Group
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._comparison import EVERYONE, group_text
from localparity.counts._score_counts import strata_of, with_everyone
from localparity.metrics import Window
from localparity.report._thin import thin_steps
from localparity.report.displays._display import (
    FIRST,
    QUIET,
    SECOND,
    CountsDisplay,
    chosen_curve,
    finish_scores,
    legend_above,
    shade_window,
    show_percent,
    shown_name,
)


class GroupCdfDisplay(CountsDisplay):
    """Two groups' cumulative distributions with the gap and the worst window shaded.

    Make one with `from_predictions`, `from_estimator` or `from_counts`.

    Parameters
    ----------
    thresholds : ndarray
        Where the shares step, ascending, from one end of the score range to the other.
    shares : tuple of ndarray
        The share of each group at or below each threshold.
    window : Window
        The worst window, which names the groups and the label.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> sex = census.sensitive_features
    >>> display = lp.report.GroupCdfDisplay.from_predictions(
    ...     None, census.score, sensitive_features=sex, epsilon=0.05
    ... )
    >>> display.ax_.get_xlabel()
    'threshold'
    """

    def __init__(self, thresholds: FloatArray, shares: tuple[FloatArray, FloatArray], window: Window) -> None:
        self.thresholds = thresholds
        self.shares = shares
        self.window = window

    @classmethod
    def from_counts(
        cls,
        counts: ScoreCounts,
        *,
        criterion: Criterion = "demographic_parity",
        ax: Any = None,
        groups: tuple[Group, Group] | None = None,
        epsilon: float = 0.0,
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
        epsilon : float
            The half-width of the window that is shaded.

        Returns
        -------
        GroupCdfDisplay
            The display, drawn.
        """
        curve = chosen_curve(counts, Comparison(criterion), groups, epsilon)
        stratum = strata_of(counts, Comparison(criterion))[curve.label]
        sides = with_everyone(stratum) if EVERYONE in curve.groups else stratum
        kept = curve.knots[thin_steps(curve.knots, curve.gap)]
        thresholds = np.union1d(kept, curve.score_range)
        first, second = (sides[group].shares_at_or_below(thresholds) for group in curve.groups)
        return cls(thresholds, (first, second), curve.worst_window(epsilon)).plot(ax)

    def _draw(self, ax: Any) -> None:
        names = [shown_name(group_text(group)) for group in self.window.groups]
        shade_window(ax, self.window)
        ax.fill_between(self.thresholds, *self.shares, step="post", color=QUIET, alpha=0.2, lw=0, label="gap")
        for share, name, colour, style in zip(self.shares, names, (FIRST, SECOND), ("-", "--"), strict=True):
            ax.step(self.thresholds, share, where="post", color=colour, ls=style, label=name)
        ax.set_ylim(0.0, 1.0)
        ax.set_ylabel("share at or below")
        show_percent(ax.yaxis)
        finish_scores(ax, (self.thresholds[0], self.thresholds[-1]), self.window.label)
        legend_above(ax, [*names, "worst window"])
