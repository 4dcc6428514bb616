"""What all displays share: their axes, their colours, and where their data comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from localparity._types import Criterion, Group
from localparity._validation import require
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._inputs import as_counts, as_data
from localparity.metrics import GapCurve, Window
from localparity.metrics._gap_curves import curve_of_pair, gap_curves

# Okabe and Ito's colours, which readers of all kinds of colour vision tell apart.
FIRST, SECOND, WINDOW, QUIET = "#0072B2", "#D55E00", "#CC79A7", "#6B7280"
COLOURS = (FIRST, SECOND, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"


class Display(ABC):
    """A figure that can be drawn on any axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes that were drawn on last.
    figure_ : matplotlib.figure.Figure
        Their figure.
    """

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure without it.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        Display
            This display, which now has `ax_` and `figure_`.
        """
        if ax is None:
            _, ax = require("matplotlib.pyplot", extra="report").subplots(layout="constrained")
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on axes."""


class PredictionsDisplay(Display):
    """A display of the scores of one model."""

    @classmethod
    @abstractmethod
    def from_predictions(
        cls, y_true: Any, y_score: Any, *, sensitive_features: Any, ax: Any = None, **options: Any
    ) -> Self:
        """Draw scores."""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sensitive_features: Any, ax: Any = None, **options: Any
    ) -> Self:
        """Draw the scores that a classifier gives, its probability of label 1.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `predict_proba`.
        X : array-like
            The features.
        y : array-like or None
            The labels; None where the criterion does not need them.
        sensitive_features : array-like
            The group of each row.
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        **options
            Those of `from_predictions`.

        Returns
        -------
        Display
            The display, drawn.
        """
        scores = scores_of(estimator, X)
        return cls.from_predictions(y, scores, sensitive_features=sensitive_features, ax=ax, **options)


class CountsDisplay(PredictionsDisplay):
    """A display that needs no more than the counts of scores."""

    @classmethod
    @abstractmethod
    def from_counts(cls, *counts: Any, **options: Any) -> Self:
        """Draw counts, wherever they were made; takes `criterion` and `ax` at the least."""

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_score: Any,
        *,
        sensitive_features: Any,
        criterion: Criterion = "demographic_parity",
        sample_weight: Any = None,
        score_range: tuple[float, float] = (0.0, 1.0),
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw scores.

        Parameters
        ----------
        y_true : array-like or None
            Labels 0 and 1; None where the criterion does not need them.
        y_score : array-like
            Scores inside `score_range`.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row. Of several columns, the groups are the combinations that occur.
        criterion : str
            Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
            "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
        sample_weight : array-like, optional
            Weights that are not negative.
        score_range : tuple of float
            The lowest and the highest score there can be.
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        **options
            Those of `from_counts`.

        Returns
        -------
        Display
            The display, drawn.
        """
        data = as_data(
            Comparison(criterion),
            y_true,
            y_score,
            sensitive_features,
            sample_weight=sample_weight,
            score_range=score_range,
        )
        return cls.from_counts(as_counts(data), criterion=criterion, ax=ax, **options)


def scores_of(estimator: Any, X: Any) -> Any:
    """The probability of label 1 that a classifier gives."""
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(f"estimator must have predict_proba, got {estimator!r}")
    return estimator.predict_proba(X)[:, 1]


def chosen_curve(
    counts: ScoreCounts, comparison: Comparison, groups: tuple[Group, Group] | None, epsilon: float
) -> GapCurve:
    """The curve of the pair asked for, or of the worst pair at `epsilon`."""
    if groups is not None:
        return curve_of_pair(counts, groups, comparison)
    return max(gap_curves(counts, comparison), key=lambda curve: curve.mcdp(epsilon))


def shown_name(name: str) -> str:
    r"""A name as matplotlib shows it: a dollar sign starts no formula, an underscore hides nothing.

    Examples
    --------
    >>> print(shown_name("$5 and more"))
    \$5 and more
    """
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def shade_window(ax: Any, window: Window) -> None:
    """Shade the worst window; its edges make the narrowest visible."""
    if window.gap > 0.0:
        ax.axvspan(window.low, window.high, facecolor=WINDOW, alpha=0.3, lw=0, label="worst window")
        for edge in {window.low, window.high}:
            ax.axvline(edge, color=WINDOW, lw=0.8)


def show_percent(axis: Any) -> None:
    """Label an axis of fractions in percent."""
    ticker = require("matplotlib.ticker", extra="report")
    axis.set_major_formatter(ticker.PercentFormatter(1.0))


def finish_trade_off(ax: Any, epsilon: float, names: Sequence[str], *, part: str = "") -> None:
    """The axes of average precision against MCDP, measured on a part of the data, and the names above."""
    ax.set_xlim(0.0, None)
    ax.margins(y=0.15)
    ax.set_xlabel(f"MCDP({epsilon:g}){part}")
    ax.set_ylabel(f"average precision{part}")
    show_percent(ax.xaxis)
    show_percent(ax.yaxis)
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    legend_above(ax, names)


def legend_above(ax: Any, names: Sequence[str]) -> None:
    """A legend above the axes, where it hides nothing; in columns as long as the names are short."""
    longest = max(map(len, names), default=0)
    width = ax.figure.get_figwidth() * ax.get_position().width * 72.0
    columns = max(1, min(len(ax.get_legend_handles_labels()[1]), int(width / (26.0 + 4.8 * longest))))
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2, "ncols": columns}
    ax.legend(
        **place, frameon=False, fontsize="small", handlelength=1.6, handletextpad=0.5, columnspacing=1.0
    )


def finish_scores(ax: Any, score_range: tuple[float, float], label: int | None) -> None:
    """The axis of thresholds."""
    ax.set_xlim(*score_range)
    ax.set_xlabel("threshold" if label is None else f"threshold, among people with label {label}")
    ax.spines[["top", "right"]].set_visible(False)
