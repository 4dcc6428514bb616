"""The gap curve with its band."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from localparity._docs import documented
from localparity._validation import Group, as_level
from localparity.metrics import GapCurve, ScoreCounts
from localparity.metrics._groups import group_text
from localparity.report._display import (
    QUIET,
    CountsDisplay,
    chosen_curve,
    finish_scores,
    legend_above,
    shade_window,
    show_percent,
    shown_name,
)
from localparity.report._thin import thin_steps
from localparity.uncertainty._dkw import dkw_radius


class GapCurveDisplay(CountsDisplay):
    """The gap of a pair at every threshold, with a band that holds the whole true curve.

    Make one with `from_predictions`, `from_estimator` or `from_counts`; `GapCurve.plot` is short for it.

    Parameters
    ----------
    curve : GapCurve
        The curve.
    level : float
        The probability with which the band (Dvoretzky, Kiefer and Wolfowitz) holds the true gap everywhere.
    epsilon : float
        The half-width of the window that is shaded.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> curve = lp.gap_curve(None, census.score, sensitive_features=census.sensitive_features)
    >>> lp.report.GapCurveDisplay(curve, epsilon=0.05).plot().ax_.get_ylabel()
    'gap, Female less Male'
    """

    def __init__(self, curve: GapCurve, *, level: float = 0.95, epsilon: float = 0.0) -> None:
        self.curve = curve
        self.level = as_level(level)
        self.epsilon = epsilon

    @classmethod
    @documented
    def from_counts(
        cls,
        counts: ScoreCounts,
        *,
        criterion: str = "demographic_parity",
        ax: Any = None,
        groups: tuple[Group, Group] | None = None,
        epsilon: float = 0.0,
        level: float = 0.95,
    ) -> Self:
        """Draw counts.

        Parameters
        ----------
        epsilon : float
            The half-width of the window that is shaded.
        level : float
            The probability with which the band holds the true gap everywhere.

        Returns
        -------
        GapCurveDisplay
            The display, drawn.
        """
        return cls(chosen_curve(counts, criterion, groups, epsilon), level=level, epsilon=epsilon).plot(ax)

    @property
    def radius(self) -> float:
        """How far the true gap may be from the curve, anywhere."""
        level_of_each = 0.5 + 0.5 * self.level
        return sum(dkw_radius(size, level_of_each) + self.curve.rank_error for size in self.curve.sizes)

    def _draw(self, ax: Any) -> None:
        low, high = self.curve.score_range
        kept = self.curve.knots[thin_steps(self.curve.knots, self.curve.gap)]
        thresholds = np.union1d(kept, [low, high])
        gap = self.curve(thresholds)
        below, above = np.maximum(gap - self.radius, -1.0), np.minimum(gap + self.radius, 1.0)
        shade_window(ax, self.curve.worst_window(self.epsilon))
        band = f"{100 * self.level:g}% band"
        ax.fill_between(thresholds, below, above, step="post", color=QUIET, alpha=0.25, lw=0, label=band)
        ax.axhline(0.0, color=QUIET, lw=0.8)
        ax.step(thresholds, gap, where="post", color="black", lw=1.2, label="gap")
        first, second = (shown_name(group_text(group)).strip() for group in self.curve.groups)
        ax.set_ylabel(f"gap, {first} less {second}")
        show_percent(ax.yaxis)
        finish_scores(ax, (low, high), self.curve.label)
        legend_above(ax, ["worst window"])
