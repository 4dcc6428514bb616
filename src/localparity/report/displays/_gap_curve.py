"""The gap curve with its band."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from localparity._types import Criterion, Group
from localparity._validation import as_probability
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._comparison import EVERYONE, group_text
from localparity.metrics import GapCurve
from localparity.metrics._gap_curves import gap_curves
from localparity.report._thin import thin_steps
from localparity.report.displays._display import (
    QUIET,
    CountsDisplay,
    chosen_curve,
    finish_scores,
    legend_above,
    shade_window,
    show_percent,
    shown_name,
)
from localparity.uncertainty._bands import as_interval_method, band_radii, dkw_radii
from localparity.uncertainty._resampling import Draws


class GapCurveDisplay(CountsDisplay):
    """The gap of a pair at every threshold, with a band that holds the whole true curve.

    Make one with `from_predictions`, `from_estimator` or `from_counts`; `GapCurve.plot` is short for it.

    Parameters
    ----------
    curve : GapCurve
        The curve.
    confidence : float
        The probability with which the band holds the true gap everywhere.
    epsilon : float
        The half-width of the window that is shaded.
    radius : float, optional
        How far the true gap may be from the curve; without it, that of Dvoretzky, Kiefer and Wolfowitz for
        this pair alone, or no band where rows have weights or clusters.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> curve = lp.gap_curve(None, census.score, sensitive_features=census.sensitive_features)
    >>> lp.report.GapCurveDisplay(curve, epsilon=0.05).plot().ax_.get_ylabel()
    'gap, Female less Male'
    """

    def __init__(
        self, curve: GapCurve, *, confidence: float = 0.95, epsilon: float = 0.0, radius: float | None = None
    ) -> None:
        self.curve = curve
        self.confidence = as_probability(confidence)
        self.epsilon = epsilon
        if radius is None and curve.exchangeable:
            radius = float(dkw_radii([curve], self.confidence)[0])
        self.radius = None if radius is None else radius + 2.0 * curve.rank_error

    @classmethod
    def from_counts(
        cls,
        counts: ScoreCounts,
        *,
        criterion: Criterion = "demographic_parity",
        ax: Any = None,
        groups: tuple[Group, Group] | None = None,
        epsilon: float = 0.0,
        confidence: float = 0.95,
        n_resamples: int = 1000,
        random_state: Any = None,
    ) -> Self:
        """Draw counts.

        The band holds for all pairs together, since the one drawn may have been chosen for what it shows.

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
        confidence : float
            The probability with which the band holds the true gap everywhere.
        n_resamples : int
            How many resamples find the band where rows have weights or clusters.
        random_state : int, Generator or None
            The same seed gives the same result.

        Returns
        -------
        GapCurveDisplay
            The display, drawn.
        """
        curve = chosen_curve(counts, Comparison(criterion), groups, epsilon)
        compared = Comparison(criterion, "to_overall" if EVERYONE in curve.groups else "between_groups")
        curves = gap_curves(counts, compared)
        radii = band_radii(
            counts,
            compared,
            curves,
            confidence=confidence,
            method=as_interval_method(None, counts),
            draws=Draws(n_resamples, random_state),
        )
        shown = {
            (each.label, frozenset(each.groups)): radius for each, radius in zip(curves, radii, strict=True)
        }
        radius = float(shown[curve.label, frozenset(curve.groups)])
        return cls(curve, confidence=confidence, epsilon=epsilon, radius=radius).plot(ax)

    def _draw(self, ax: Any) -> None:
        low, high = self.curve.score_range
        kept = self.curve.knots[thin_steps(self.curve.knots, self.curve.gap)]
        thresholds = np.union1d(kept, [low, high])
        gap = self.curve(thresholds)
        shade_window(ax, self.curve.worst_window(self.epsilon))
        if self.radius is not None:
            below, above = np.maximum(gap - self.radius, -1.0), np.minimum(gap + self.radius, 1.0)
            band = f"{100 * self.confidence:g}% band"
            ax.fill_between(thresholds, below, above, step="post", color=QUIET, alpha=0.25, lw=0, label=band)
        ax.axhline(0.0, color=QUIET, lw=0.8)
        ax.step(thresholds, gap, where="post", color="black", lw=1.2, label="gap")
        first, second = (shown_name(group_text(group)).strip() for group in self.curve.groups)
        ax.set_ylabel(f"gap, {first} less {second}")
        show_percent(ax.yaxis)
        finish_scores(ax, (low, high), self.curve.label)
        legend_above(ax, ["worst window"])
