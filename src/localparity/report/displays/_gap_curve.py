"""The gap curve with its band."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from localparity._types import ArrayLike, Criterion, Group, Groups, ScoreRange, Seed
from localparity._validation import as_probability
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._comparison import EVERYONE
from localparity.counts._inputs import Data
from localparity.metrics import GapCurve
from localparity.metrics._gap_curves import gap_curves
from localparity.report._thin import thin_thresholds
from localparity.report.displays._display import QUIET, PairDisplay, chosen_curve, counts_of, shown_name
from localparity.uncertainty._bands import as_interval_method, band_radii, finite_sample_radii
from localparity.uncertainty._resampling import Draws


class GapCurveDisplay(PairDisplay):
    """The gap of a pair at every threshold, with a band that holds the whole true curve.

    Make one with `from_predictions` or `from_estimator`; `GapCurve.plot` draws a curve that you have.

    Parameters
    ----------
    curve : GapCurve
        The curve.
    confidence : float
        The probability with which the band holds the true gap everywhere.
    epsilon : float
        The half-width of the window that is shaded.
    radius : float, optional
        How far the true gap may be from the curve; without it, one that holds at any sample size for this
        pair alone, or no band where rows have weights or clusters.

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
            radius = float(finite_sample_radii([curve], self.confidence)[0])
        self.radius = None if radius is None else radius + 2.0 * curve.rank_error

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | Data | None,
        y_score: ArrayLike | None = None,
        *,
        sensitive_features: Groups | None = None,
        groups: tuple[Group, Group] | None = None,
        epsilon: float = 0.0,
        criterion: Criterion = "demographic_parity",
        confidence: float = 0.95,
        n_resamples: int = 1000,
        random_state: Seed = None,
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        score_range: ScoreRange = (0.0, 1.0),
        ax: Any = None,
    ) -> Self:
        """Draw the gap of a pair of groups.

        The band holds for all pairs together, since the one drawn may have been chosen for what it shows.

        Parameters
        ----------
        y_true, y_score, sensitive_features, sample_weight, cluster, score_range : array-like
            The rows, as in `localparity.mcdp_interval`; `y_true` may be Predictions or ScoreCounts instead.
        groups : tuple, optional
            The pair, of which the second may be ``"everyone"``; by default the worst.
        epsilon : float
            The half-width of the window that is shaded.
        criterion : str
            Which people are compared, as in `localparity.mcdp`.
        confidence : float
            The probability with which the band holds the true gap everywhere.
        n_resamples : int
            How many resamples the band takes where rows have weights or clusters.
        random_state : int, Generator or None
            The same seed gives the same band.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        GapCurveDisplay
            The display, drawn.
        """
        options = {"sample_weight": sample_weight, "cluster": cluster, "score_range": score_range}
        counts = counts_of(criterion, y_true, y_score, sensitive_features, **options)
        curve = chosen_curve(counts, criterion, groups, epsilon)
        radius = _radius(counts, criterion, curve, confidence, Draws(n_resamples, random_state))
        return cls(curve, confidence=confidence, epsilon=epsilon, radius=radius).plot(ax)

    def _draw(self, ax: Any) -> None:
        thresholds = thin_thresholds(self.curve)
        gap = self.curve(thresholds)
        self._shade_window(ax, self.curve.worst_window(self.epsilon))
        if self.radius is not None:
            below, above = np.maximum(gap - self.radius, -1.0), np.minimum(gap + self.radius, 1.0)
            band = f"{100 * self.confidence:g}% band"
            ax.fill_between(thresholds, below, above, step="post", color=QUIET, alpha=0.25, lw=0, label=band)
        ax.axhline(0.0, color=QUIET, lw=0.8)
        ax.step(thresholds, gap, where="post", color="black", lw=1.2, label="gap")
        first, second = (shown_name(group).strip() for group in self.curve.groups)
        self._show_percent(ax.yaxis, f"gap, {first} less {second}")
        self._show_thresholds(ax, thresholds, self.curve.label)
        self._add_legend(ax, ["worst window"])


def _radius(
    counts: ScoreCounts, criterion: Criterion, curve: GapCurve, confidence: float, draws: Draws
) -> float:
    """The radius of one pair's band among those of all pairs, which hold together."""
    compared = Comparison(criterion, "to_overall" if EVERYONE in curve.groups else "between_groups")
    curves = gap_curves(counts, compared)
    method = as_interval_method(None, counts)
    radii = band_radii(counts, compared, curves, confidence=confidence, method=method, draws=draws)
    who = [(each.label, frozenset(each.groups)) for each in curves]
    return float(radii[who.index((curve.label, frozenset(curve.groups)))])
