"""Impact ratios at every cutoff, with their bands and the cutoffs that are safe."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from localparity._types import ArrayLike, Groups, IntArray
from localparity._validation import as_fraction
from localparity.counts._inputs import Data
from localparity.report._thin import thin_steps
from localparity.report.displays._display import COLOURS, QUIET, PredictionsDisplay, shown_name
from localparity.uncertainty import ImpactRatioCurve, impact_ratio_curve

_SAFE = "#009E73"
_MOST_DRAWN = 600
_HIGHEST = 2.0


class ImpactRatioDisplay(PredictionsDisplay):
    """The ratio of each group's selection rate to the reference's at every cutoff, with its band.

    Cutoffs at which the band of every group lies at or above `min_ratio` are shaded; without bands, those at
    which every ratio does. Make one with `from_predictions` or `from_estimator`; `ImpactRatioCurve.plot`
    draws a curve that you have.

    Parameters
    ----------
    curve : ImpactRatioCurve
        The curve.
    min_ratio : float
        The least ratio that is safe.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> display = lp.report.ImpactRatioDisplay.from_predictions(
    ...     None, census.score, sensitive_features=census.sensitive_features
    ... )
    >>> display.ax_.get_ylabel()
    'ratio to the best-off group'
    """

    def __init__(self, curve: ImpactRatioCurve, *, min_ratio: float = 0.8) -> None:
        self.curve = curve
        self.min_ratio = as_fraction(min_ratio, "min_ratio")

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | Data | None,
        y_score: ArrayLike | None = None,
        *,
        sensitive_features: Groups | None = None,
        min_ratio: float = 0.8,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the impact ratios of scores.

        Parameters
        ----------
        y_true, y_score, sensitive_features : array-like
            The rows, as in `localparity.impact_ratio_curve`; `y_true` may be Predictions or ScoreCounts
            instead.
        min_ratio : float
            The least ratio that is safe.
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        **options
            Further arguments of `localparity.impact_ratio_curve`, such as ``reference`` or ``confidence``.

        Returns
        -------
        ImpactRatioDisplay
            The display, drawn.
        """
        curve = impact_ratio_curve(y_true, y_score, sensitive_features=sensitive_features, **options)
        return cls(curve, min_ratio=min_ratio).plot(ax)

    def _draw(self, ax: Any) -> None:
        curve = self.curve
        safe = self._shade_safe(ax)
        places = self._places()
        at = np.append(curve.cutoffs[places], curve.score_range[1])
        names = []
        for row, group in enumerate(curve.groups):
            if group == curve.reference:
                continue
            colour = COLOURS[row % len(COLOURS)]
            names.append(shown_name(group))
            ax.step(at, _extended(curve.ratios[row, places]), where="post", color=colour, label=names[-1])
            if curve.confidence is not None:
                low, high = (_extended(end[row, places]) for end in curve.ratio_bands)
                ax.fill_between(at, low, high, step="post", color=colour, alpha=0.15, lw=0)
        ax.axhline(self.min_ratio, color=QUIET, lw=1.0, ls="--", label=f"ratio {self.min_ratio:g}")
        top = np.nanmax(curve.ratios, initial=1.0, where=np.isfinite(curve.ratios))
        ax.set_ylim(0.0, min(1.05 * top, _HIGHEST))
        ax.set_xlim(*curve.score_range)
        among = "" if curve.label is None else f", among people with label {curve.label}"
        ax.set_xlabel(f"cutoff{among}")
        reference = "the best-off group" if curve.reference is None else shown_name(curve.reference)
        ax.set_ylabel(f"ratio to {reference}")
        self._add_legend(ax, [*names, *safe, f"ratio {self.min_ratio:g}"])

    def _shade_safe(self, ax: Any) -> list[str]:
        found = self.curve.safe_cutoffs(self.min_ratio)
        ranges = found.by_estimate if found.by_band is None else found.by_band
        sure = "" if found.confidence is None else f" with {100.0 * found.confidence:g}% confidence"
        names = [f"safe{sure}"] if ranges else []
        for place, each in enumerate(ranges):
            ax.axvspan(each.low, each.high, color=_SAFE, alpha=0.12, lw=0, label=None if place else names[0])
        return names

    def _places(self) -> IntArray:
        """Few cutoffs, the extremes of every group's ratio among them."""
        curve = self.curve
        ratios = np.nan_to_num(curve.ratios, posinf=_HIGHEST)
        most = max(_MOST_DRAWN // len(curve.groups), 50)
        return np.unique(np.concatenate([thin_steps(curve.cutoffs, row, most) for row in ratios]))


def _extended(values: Any) -> Any:
    """Steps up to the top of the score range."""
    return np.append(values, values[-1])
