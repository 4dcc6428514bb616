"""What all displays share: their axes, their colours, and where their data comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
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

# One style for every figure: Okabe and Ito's colours, which readers of all kinds of colour vision tell apart,
# open axes, names beside what they name, and percentages without decimals.


FIRST, SECOND, WINDOW, QUIET, INK = "#0072B2", "#D55E00", "#CC79A7", "#6B7280", "#1F2937"
COLOURS = (FIRST, SECOND, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
STYLE = {
    "font.size": 9.0,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.labelcolor": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}


def use_style() -> None:
    """Make matplotlib's further figures in this style."""
    matplotlib = require("matplotlib", extra="report")
    matplotlib.rcParams.update(STYLE | {"axes.prop_cycle": matplotlib.cycler(color=COLOURS)})


@contextmanager
def styled() -> Iterator[None]:
    """A context in which matplotlib makes figures in this style."""
    with require("matplotlib", extra="report").rc_context():
        use_style()
        yield


def finish(ax: Any, title: str = "") -> None:
    """Open axes, no boxes, a title on the left."""
    ax.spines[["top", "right"]].set_visible(False)
    if title:
        ax.set_title(title, fontsize="medium", loc="left")


def show_percent(axis: Any, label: str | None = None) -> None:
    """Few ticks, in percent, without trailing zeros."""
    ticker = require("matplotlib.ticker", extra="report")
    axis.set_major_locator(ticker.MaxNLocator(5, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{round(100 * value, 6):g}%"))
    if label is not None:
        axis.set_label_text(label)


def write_beside(
    ax: Any, at: tuple[float, float], text: str, *, colour: str = INK, move: tuple[float, float], **look: Any
) -> Any:
    """Write a text next to a point, moved by so many typographic points, legible over lines."""
    effects = require("matplotlib.patheffects", extra="report")
    halo = [effects.withStroke(linewidth=2.5, foreground="white")]
    place = {"ha": "right" if move[0] < 0 else "left" if move[0] > 0 else "center", "va": "center"}
    return ax.annotate(
        text,
        at,
        move,
        textcoords="offset points",
        color=colour,
        path_effects=halo,
        zorder=9,
        **(place | look),
    )


def point_to_better(ax: Any) -> None:
    """Say above the axes where models rank better and differ less."""
    ax.set_title("↖ better", loc="right", color=QUIET, fontsize="small")


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
            with styled():
                _, ax = require("matplotlib.pyplot", extra="report").subplots(layout="constrained")
        self._draw(ax)
        finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on axes."""


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
