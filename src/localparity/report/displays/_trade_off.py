"""Average precision against MCDP, for several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from localparity._types import ArrayLike, Groups, Rows
from localparity.metrics import Interval
from localparity.report.displays._display import COLOURS, MARKERS, ModelsDisplay, scores_of, shown_name
from localparity.uncertainty import mcdp_interval


class TradeOffDisplay(ModelsDisplay):
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
        y_true: ArrayLike,
        y_scores: Mapping[str, ArrayLike],
        *,
        sensitive_features: Groups,
        epsilon: float = 0.0,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the scores of several models on the same people.

        Parameters
        ----------
        y_true : array-like
            Labels 0 and 1.
        y_scores : mapping
            The scores of each model, by the model's name.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row. Of several columns, the groups are the combinations that occur.
        epsilon : float
            The half-width of the windows.
        sample_weight : array-like, optional
            Weights that are not negative.
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        **options
            Further arguments of `localparity.mcdp_interval`, such as ``criterion`` or ``confidence``.

        Returns
        -------
        TradeOffDisplay
            The display, drawn.
        """
        from sklearn.metrics import average_precision_score

        options |= {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        intervals, precision = [], []
        for score in y_scores.values():
            intervals.append(mcdp_interval(y_true, score, epsilon=epsilon, **options))
            precision.append(float(average_precision_score(y_true, score, sample_weight=sample_weight)))
        return cls(list(y_scores), precision, intervals, epsilon=epsilon).plot(ax)

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any],
        X: Rows,
        y: ArrayLike,
        *,
        sensitive_features: Groups,
        **options: Any,
    ) -> Self:
        """Draw the scores that several fitted classifiers give.

        Parameters
        ----------
        estimators : mapping
            Fitted classifiers with `predict_proba`, by their names.
        X : array-like or data frame
            The features.
        y : array-like
            Labels 0 and 1.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row.
        **options
            The keyword arguments of `from_predictions`.

        Returns
        -------
        TradeOffDisplay
            The display, drawn.
        """
        scores = {name: scores_of(estimator, X) for name, estimator in estimators.items()}
        return cls.from_predictions(y, scores, sensitive_features=sensitive_features, **options)

    def _draw(self, ax: Any) -> None:
        found = zip(self.names, self.average_precision, self.intervals, strict=True)
        for i, (name, precision, interval) in enumerate(found):
            look = {"fmt": MARKERS[i % len(MARKERS)], "color": COLOURS[i % len(COLOURS)]}
            self._add_model(ax, interval, precision, label=shown_name(name), **look)
        self._show_axes(ax, self.epsilon, self.names)
