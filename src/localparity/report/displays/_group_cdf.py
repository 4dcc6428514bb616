"""Two groups' cumulative distributions, the gap between them and the worst window."""

from __future__ import annotations

from typing import Any, Self

from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, ScoreRange
from localparity.counts import Comparison
from localparity.counts._comparison import EVERYONE
from localparity.counts._inputs import Data
from localparity.counts._score_counts import strata_of, with_everyone
from localparity.metrics import Window
from localparity.report._thin import thin_thresholds
from localparity.report.displays._display import (
    FIRST,
    QUIET,
    SECOND,
    PairDisplay,
    chosen_curve,
    counts_of,
    shown_name,
)


class GroupCdfDisplay(PairDisplay):
    """Two groups' cumulative distributions with the gap and the worst window shaded.

    Make one with `from_predictions` or `from_estimator`.

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
    def from_predictions(
        cls,
        y_true: ArrayLike | Data | None,
        y_score: ArrayLike | None = None,
        *,
        sensitive_features: Groups | None = None,
        groups: tuple[Group, Group] | None = None,
        epsilon: float = 0.0,
        criterion: Criterion = "demographic_parity",
        sample_weight: ArrayLike | None = None,
        score_range: ScoreRange = (0.0, 1.0),
        ax: Any = None,
    ) -> Self:
        """Draw the cumulative distributions of a pair of groups.

        Parameters
        ----------
        y_true, y_score, sensitive_features, sample_weight, score_range : array-like
            The rows, as in `localparity.mcdp`; `y_true` may be Predictions or ScoreCounts instead.
        groups : tuple, optional
            The pair, of which the second may be ``"everyone"``; by default the worst.
        epsilon : float
            The half-width of the window that is shaded.
        criterion : str
            Which people are compared, as in `localparity.mcdp`.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        GroupCdfDisplay
            The display, drawn.
        """
        options = {"sample_weight": sample_weight, "score_range": score_range}
        counts = counts_of(criterion, y_true, y_score, sensitive_features, **options)
        curve = chosen_curve(counts, criterion, groups, epsilon)
        stratum = strata_of(counts, Comparison(criterion))[curve.label]
        sides = with_everyone(stratum) if EVERYONE in curve.groups else stratum
        thresholds = thin_thresholds(curve)
        first, second = (sides[group].shares_at_or_below(thresholds) for group in curve.groups)
        return cls(thresholds, (first, second), curve.worst_window(epsilon)).plot(ax)

    def _draw(self, ax: Any) -> None:
        names = [shown_name(group) for group in self.window.groups]
        self._shade_window(ax, self.window)
        ax.fill_between(self.thresholds, *self.shares, step="post", color=QUIET, alpha=0.2, lw=0, label="gap")
        for share, name, colour, style in zip(self.shares, names, (FIRST, SECOND), ("-", "--"), strict=True):
            ax.step(self.thresholds, share, where="post", color=colour, ls=style, label=name)
        ax.set_ylim(0.0, 1.0)
        self._show_percent(ax.yaxis, "share at or below")
        self._show_thresholds(ax, self.thresholds, self.window.label)
        self._add_legend(ax, [*names, "worst window"])
