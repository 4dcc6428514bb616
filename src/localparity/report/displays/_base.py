"""What all displays share: their axes, their colours, and where their data comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from localparity._text import group_text
from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, IntArray, Rows
from localparity._validation import InputError, require
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._score_counts import Data, as_counts, checked_data
from localparity.metrics import GapCurve
from localparity.metrics._gap_curve import curve_of_pair, gap_curves
from localparity.predictions import Predictions

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
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on axes."""

    @staticmethod
    def _show_percent(axis: Any, label: str) -> None:
        """Name an axis of fractions, and number it in percent."""
        ticker = require("matplotlib.ticker", extra="report")
        axis.set_major_formatter(ticker.PercentFormatter(1.0))
        axis.set_label_text(label)

    @staticmethod
    def _add_legend(ax: Any, names: Sequence[str]) -> None:
        """A legend above the axes, where it hides nothing; in columns as long as the names are short."""
        longest = max(map(len, names), default=0)
        width = ax.figure.get_figwidth() * ax.get_position().width * 72.0
        columns = max(1, min(len(ax.get_legend_handles_labels()[1]), int(width / (26.0 + 4.8 * longest))))
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2, "ncols": columns}
        sizes = {"fontsize": "small", "handlelength": 1.6, "handletextpad": 0.5, "columnspacing": 1.0}
        ax.legend(**place, **sizes, frameon=False)


class PredictionsDisplay(Display):
    """A display of the scores of one model."""

    @classmethod
    @abstractmethod
    def from_predictions(cls, *data: Any, **options: Any) -> Self:
        """Draw scores."""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Rows,
        y: ArrayLike | None,
        *,
        sensitive_features: Groups,
        sample_weight: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Draw the scores that a classifier gives, its probability of label 1.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `predict_proba`.
        X : array-like or data frame
            The features.
        y : array-like or None
            The labels; None where the criterion does not need them.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row.
        sample_weight : array-like, optional
            Weights that are not negative.
        **options
            The keyword arguments of `from_predictions`.

        Returns
        -------
        Display
            The display, drawn.
        """
        people = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        return cls.from_predictions(
            Predictions.from_arrays(y, positive_scores(estimator, X), **people), **options
        )


def positive_scores(estimator: Any, X: Rows) -> Any:
    """The probability of label 1 that a classifier gives."""
    if not hasattr(estimator, "predict_proba"):
        raise InputError(f"must have predict_proba, got {estimator!r}", "estimator")
    return estimator.predict_proba(X)[:, 1]


def counts_and_curve(
    data: Data, criterion: Criterion, groups: tuple[Group, Group] | None, epsilon: float
) -> tuple[ScoreCounts, GapCurve]:
    """The counts of a display, and the curve of the pair asked for, or of the worst at `epsilon`."""
    comparison = Comparison(criterion)
    counts = as_counts(checked_data(data, comparison))
    if groups is not None:
        return counts, curve_of_pair(counts, groups, comparison)
    return counts, max(gap_curves(counts, comparison), key=lambda curve: curve.mcdp(epsilon))


def shown_name(group: Group) -> str:
    r"""A group as matplotlib shows it: a dollar sign starts no formula, an underscore hides nothing.

    Examples
    --------
    >>> print(shown_name("$5 and more"))
    \$5 and more
    """
    name = group_text(group).replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


# Few points of a long step function, its extremes among them.


MOST_POINTS = 2000


def thin_steps(knots: FloatArray, values: FloatArray, most: int = MOST_POINTS) -> IntArray:
    """The places of at most `most` knots, ascending, that show a step function as all of them would.

    The stretch between the first and the last knot is cut into equal parts; of each part the lowest and the
    highest value stay, and so do the two ends. No extreme is lost, however narrow it is.
    """
    if knots.size <= most:
        return np.arange(knots.size)
    edges = np.linspace(knots[0], knots[-1], (most - 2) // 2 + 1)[1:-1]
    bounds = np.concatenate([[0], np.searchsorted(knots, edges), [knots.size]])
    places = {0, knots.size - 1}
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if start < end:
            part = values[start:end]
            places |= {start + int(part.argmin()), start + int(part.argmax())}
    return np.array(sorted(places), dtype=np.int64)


def thin_thresholds(curve: GapCurve) -> FloatArray:
    """The thresholds at which a curve is drawn: few of its knots, and both ends of the score range."""
    return np.union1d(curve.knots[thin_steps(curve.knots, curve.gap)], curve.score_range)
