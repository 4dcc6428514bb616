"""Average precision against MCDP, for several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from localparity.metrics import Interval
from localparity.report.displays._display import (
    COLOURS,
    MARKERS,
    Display,
    finish_trade_off,
    scores_of,
    shown_name,
)
from localparity.uncertainty import mcdp_interval


class TradeOffDisplay(Display):
    """How well models rank people and how large their local disparity is: up and to the left is better.

    Make one with `from_predictions` or `from_estimators`.

    Parameters
    ----------
    names : sequence of str
        The models.
    average_precision : sequence of float
        The average precision of each.
    intervals : sequence of Interval
        MCDP of each with its interval.
    epsilon : float
        The half-width of the windows.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> scores = {"the model": census.score, "its square": census.score**2}
    >>> display = lp.report.TradeOffDisplay.from_predictions(
    ...     census.target, scores, sensitive_features=census.sensitive_features
    ... )
    >>> display.ax_.get_xlabel()
    'MCDP(0)'
    """

    def __init__(
        self,
        names: Sequence[str],
        average_precision: Sequence[float],
        intervals: Sequence[Interval],
        *,
        epsilon: float = 0.0,
    ) -> None:
        self.names = list(names)
        self.average_precision = list(average_precision)
        self.intervals = list(intervals)
        self.epsilon = epsilon

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_scores: Mapping[str, Any],
        *,
        sensitive_features: Any,
        epsilon: float = 0.0,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the scores of several models on the same people.

        Parameters
        ----------
        y_true : array-like
            The labels, 0 and 1.
        y_scores : mapping
            The scores of each model, by the model's name.
        sensitive_features : array-like
            The group of each row.
        epsilon : float
            The half-width of the windows.
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        **options
            Those of `localparity.mcdp_interval`.

        Returns
        -------
        TradeOffDisplay
            The display, drawn.
        """
        from sklearn.metrics import average_precision_score

        weights = options.get("sample_weight")
        intervals = [
            mcdp_interval(y_true, score, sensitive_features=sensitive_features, epsilon=epsilon, **options)
            for score in y_scores.values()
        ]
        precision = [
            float(average_precision_score(y_true, score, sample_weight=weights))
            for score in y_scores.values()
        ]
        return cls(list(y_scores), precision, intervals, epsilon=epsilon).plot(ax)

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], X: Any, y: Any, *, sensitive_features: Any, **options: Any
    ) -> Self:
        """Draw the scores that several fitted classifiers give.

        Parameters
        ----------
        estimators : mapping
            The classifiers by their names.
        X, y : array-like
            The features and the labels.
        sensitive_features : array-like
            The group of each row.
        **options
            Those of `from_predictions`.

        Returns
        -------
        TradeOffDisplay
            The display, drawn.
        """
        scores = {name: scores_of(estimator, X) for name, estimator in estimators.items()}
        return cls.from_predictions(y, scores, sensitive_features=sensitive_features, **options)

    def _draw(self, ax: Any) -> None:
        for i, (name, precision, interval) in enumerate(
            zip(self.names, self.average_precision, self.intervals, strict=True)
        ):
            ends = [[interval.estimate - interval.low], [interval.high - interval.estimate]]
            look = {"fmt": MARKERS[i % len(MARKERS)], "color": COLOURS[i % len(COLOURS)]}
            ax.errorbar(interval.estimate, precision, xerr=ends, capsize=3, label=shown_name(name), **look)
        finish_trade_off(ax, self.epsilon, self.names)
