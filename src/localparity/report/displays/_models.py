"""Average precision against MCDP, for several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from localparity._types import ArrayLike, Groups, Rows
from localparity.metrics import Interval
from localparity.models._frontier import Frontier
from localparity.models._outcomes import ModelComparison, Outcome
from localparity.report.displays._base import COLOURS, MARKERS, QUIET, ModelsDisplay, scores_of, shown_name
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


# The frontier: a line with its band.


_LINE = "#1F2937"


class FrontierDisplay(ModelsDisplay):
    """The best average precision that group-blind scores reach at each bound, with its band.

    Parameters
    ----------
    frontier : Frontier
        What `frontier` found.

    Examples
    --------
    >>> import localparity as lp
    >>> measured = (0.02, 0.1), (0.7, 0.78), (0.68, 0.76), (0.72, 0.8)
    >>> found = lp.results.Frontier((0.0, 0.1), *measured, 0.02, 0.0, "demographic_parity", 0.95, 2000)
    >>> FrontierDisplay(found).plot().ax_.get_xlabel()
    'MCDP(0)'
    """

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier

    def draw_line(self, ax: Any) -> list[str]:
        """Draw the line and its band on axes, and return their names."""
        disparity, best, low, high = self.frontier.envelope()
        names = ["frontier", f"{100.0 * self.frontier.confidence:g}% band of the frontier"]
        ax.plot(disparity, best, color=_LINE, lw=1.8, zorder=2, label=names[0])
        ax.fill_between(disparity, low, high, color=_LINE, alpha=0.12, lw=0.0, zorder=1, label=names[1])
        return names

    def _draw(self, ax: Any) -> None:
        names = self.draw_line(ax)
        floor = self.frontier.noise_floor
        ax.axvline(floor, color=QUIET, lw=1.0, ls=":", zorder=0, label="expected under parity")
        self._show_axes(ax, self.frontier.epsilon, names)


# Average precision against MCDP, of every method at every setting.


class ComparisonDisplay(ModelsDisplay):
    """Average precision against MCDP of the test part: up and to the left is better.

    A method has one colour and marker, hollow where its scores are repaired. Large markers, with their
    interval, are the settings that were chosen; small ones are the others. The line is the
    frontier, which repaired scores, as they look at the group, may lie beyond.

    Parameters
    ----------
    comparison : ModelComparison
        What `compare` found.

    Examples
    --------
    >>> import localparity as lp
    >>> interval = lp.results.Interval(0.1, 0.2, 0.3, 0.95)
    >>> measured = lp.results.Measured(1, 0.8, 0.2, interval, 0.01)
    >>> outcome = lp.results.Outcome("ERM", False, "", measured, False, measured, ((0.2, 0.8),))
    >>> found = lp.results.ModelComparison(
    ...     (outcome,), 0.05, 0.0, "demographic_parity", (2, 1, 1), {}
    ... )
    >>> ComparisonDisplay(found).plot().ax_.get_xlabel()
    'MCDP(0) on test data'
    """

    def __init__(self, comparison: ModelComparison) -> None:
        self.comparison = comparison

    def _draw(self, ax: Any) -> None:
        found = self.comparison
        methods = list(dict.fromkeys(outcome.method for outcome in found.outcomes))
        names = [outcome.name for outcome in found.outcomes]
        if found.frontier is not None:
            names += FrontierDisplay(found.frontier).draw_line(ax)
        for outcome in found.outcomes:
            self._draw_outcome(ax, outcome, methods.index(outcome.method))
        ax.axvline(found.max_mcdp, color=QUIET, lw=1.0, ls="--", zorder=0, label="the bound")
        floor = found.recommended.test.noise_floor
        ax.axvline(floor, color=QUIET, lw=1.0, ls=":", zorder=0, label="expected under parity")
        self._show_axes(ax, found.epsilon, names, part=" on test data")

    def _draw_outcome(self, ax: Any, outcome: Outcome, place: int) -> None:
        colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        look: dict[str, Any] = {"color": colour, "mfc": "white" if outcome.repaired else colour}
        ax.plot(*zip(*outcome.settings, strict=True), marker, ms=3.0, alpha=0.55, zorder=2, **look)
        look |= {"fmt": marker, "ms": 7.5, "lw": 1.2, "zorder": 3, "label": shown_name(outcome.name)}
        assert outcome.test.interval is not None
        self._add_model(ax, outcome.test.interval, outcome.test.average_precision, **look)
