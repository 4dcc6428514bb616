"""The difference of selection rates at every threshold."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from localparity._types import ArrayLike, Criterion, Group, Groups, ScoreRange
from localparity.counts._inputs import Data
from localparity.metrics import GapCurve
from localparity.report._thin import thin_thresholds
from localparity.report.displays._display import (
    FIRST,
    SECOND,
    PairDisplay,
    chosen_curve,
    counts_of,
    shown_name,
)


class SelectionRateDisplay(PairDisplay):
    """How far the selection rates of a pair are apart at every threshold, and where they are farthest.

    A score above the threshold is selected. Make one with `from_predictions` or `from_estimator`.

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
    def from_predictions(
        cls,
        y_true: ArrayLike | Data | None,
        y_score: ArrayLike | None = None,
        *,
        sensitive_features: Groups | None = None,
        groups: tuple[Group, Group] | None = None,
        criterion: Criterion = "demographic_parity",
        sample_weight: ArrayLike | None = None,
        score_range: ScoreRange = (0.0, 1.0),
        ax: Any = None,
    ) -> Self:
        """Draw the selection rates of a pair of groups.

        Parameters
        ----------
        y_true, y_score, sensitive_features, sample_weight, score_range : array-like
            The rows, as in `localparity.mcdp`; `y_true` may be Predictions or ScoreCounts instead.
        groups : tuple, optional
            The pair, of which the second may be ``"everyone"``; by default the worst.
        criterion : str
            Which people are compared, as in `localparity.mcdp`.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        SelectionRateDisplay
            The display, drawn.
        """
        options = {"sample_weight": sample_weight, "score_range": score_range}
        counts = counts_of(criterion, y_true, y_score, sensitive_features, **options)
        return cls(chosen_curve(counts, criterion, groups)).plot(ax)

    def _draw(self, ax: Any) -> None:
        thresholds = thin_thresholds(self.curve)
        difference = -self.curve(thresholds)
        more = [f"{shown_name(group)} selected more" for group in self.curve.groups]
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
        self._show_percent(ax.yaxis, "difference of rates")
        self._show_thresholds(ax, thresholds, self.curve.label)
        self._add_legend(ax, [*more, where])
