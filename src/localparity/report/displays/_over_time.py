"""MCDP over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from localparity._types import ArrayLike, BoolArray, Criterion, Groups, ScoreRange
from localparity._validation import InputError, check_indexes, check_rows
from localparity.counts import Comparison
from localparity.counts._score_counts import Data, as_data
from localparity.metrics import Interval
from localparity.predictions import Predictions
from localparity.report.displays._base import FIRST, SECOND, PredictionsDisplay
from localparity.uncertainty import mcdp_interval

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit
    from localparity.monitoring import PeriodResult


class McdpOverTimeDisplay(PredictionsDisplay):
    """MCDP of one period after the other with its interval, the bound that it should keep, and alarms.

    Make one with `from_predictions`, `from_estimator`, `from_audits` or `from_periods`.

    Parameters
    ----------
    times : sequence
        The periods: dates, numbers or names, in order.
    intervals : sequence of Interval or None
        MCDP in each period with its interval; None where there is nothing to compare.
    epsilon : float
        The half-width of the windows.
    max_mcdp : float, optional
        The most that MCDP may be.
    alarms : sequence of bool, optional
        Whether each period raises an alarm.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(3000, random_state=0)
    >>> month = [f"2024-{1 + row % 3:02d}" for row in range(3000)]
    >>> display = lp.report.McdpOverTimeDisplay.from_predictions(
    ...     None, census.score, sensitive_features=census.sensitive_features, times=month, max_mcdp=0.2
    ... )
    >>> display.times
    ['2024-01', '2024-02', '2024-03']
    """

    def __init__(
        self,
        times: Sequence[Any],
        intervals: Sequence[Interval | None],
        *,
        epsilon: float = 0.0,
        max_mcdp: float | None = None,
        alarms: Sequence[bool] | None = None,
    ) -> None:
        self.times = list(times)
        self.intervals = list(intervals)
        self.epsilon = epsilon
        self.max_mcdp = max_mcdp
        self.alarms = [False] * len(self.times) if alarms is None else list(alarms)

    @classmethod
    def from_periods(
        cls,
        periods: Sequence[PeriodResult],
        *,
        epsilon: float = 0.0,
        max_mcdp: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw what `Monitor.series` gives, with its alarms.

        Parameters
        ----------
        periods : sequence of PeriodResult
            The periods, in order.
        epsilon : float
            The epsilon of the series.
        max_mcdp : float, optional
            The bound of the series.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        McdpOverTimeDisplay
            The display, drawn; a period without an interval leaves a gap.
        """
        times, intervals = [one.period for one in periods], [one.interval for one in periods]
        alarms = [one.alarm is not None for one in periods]
        return cls(times, intervals, epsilon=epsilon, max_mcdp=max_mcdp, alarms=alarms).plot(ax)

    @classmethod
    def from_audits(
        cls,
        times: Sequence[Any],
        audits: Sequence[Audit],
        *,
        epsilon: float = 0.0,
        max_mcdp: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw one audit for each period.

        Parameters
        ----------
        times : sequence
            The periods, in order.
        audits : sequence of Audit
            The audit of each.
        epsilon : float
            One of the audits' epsilons.
        max_mcdp : float, optional
            The most that MCDP may be.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        McdpOverTimeDisplay
            The display, drawn.
        """
        intervals = [audit.finding(epsilon).interval for audit in audits]
        return cls(times, intervals, epsilon=epsilon, max_mcdp=max_mcdp).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | Data | None,
        y_score: ArrayLike | None = None,
        *,
        sensitive_features: Groups | None = None,
        times: ArrayLike = None,
        epsilon: float = 0.0,
        max_mcdp: float | None = None,
        criterion: Criterion = "demographic_parity",
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        score_range: ScoreRange = (0.0, 1.0),
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw scores, each row of which has its period.

        Parameters
        ----------
        y_true, y_score, sensitive_features, sample_weight, cluster, score_range : array-like
            The rows, as in `localparity.mcdp_interval`; `y_true` may be Predictions instead.
        times : array-like
            The period of each row; periods are drawn in sorted order.
        epsilon : float
            The half-width of the windows.
        max_mcdp : float, optional
            The most that MCDP may be.
        criterion : str
            Which people are compared, as in `localparity.mcdp`.
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        **options
            Further arguments of `localparity.mcdp_interval`, such as ``compare`` or ``confidence``.

        Returns
        -------
        McdpOverTimeDisplay
            The display, drawn.
        """
        rows: dict[str, Any] = {
            "sample_weight": sample_weight,
            "cluster": cluster,
            "score_range": score_range,
        }
        data = as_data(Comparison(criterion), y_true, y_score, sensitive_features, **rows)
        if not isinstance(data, Predictions):
            raise InputError("must be labels or Predictions, got ScoreCounts, which have no rows", "y_true")
        if times is None:
            raise InputError("must be the period of each row, got None", "times")
        check_indexes({"y_score": y_score, "sensitive_features": sensitive_features, "times": times})
        check_rows("times", len(times), len(data))
        periods, place = np.unique(np.asarray(times), return_inverse=True)
        options |= {"epsilon": epsilon, "criterion": criterion}
        parts = [_rows_of(data, place == period) for period in range(periods.size)]
        intervals = [mcdp_interval(part, score_range=part.score_range, **options) for part in parts]
        return cls(periods.tolist(), intervals, epsilon=epsilon, max_mcdp=max_mcdp).plot(ax)

    def _draw(self, ax: Any) -> None:
        known = [interval for interval in self.intervals if interval is not None]
        ends = [(each.low, each.estimate, each.high) if each else (np.nan,) * 3 for each in self.intervals]
        low, estimate, high = np.array(ends).T
        confidence = f"{100 * known[0].confidence:g}% interval" if known else "interval"
        ax.fill_between(self.times, low, high, color=FIRST, alpha=0.2, lw=0, label=confidence)
        ax.plot(self.times, estimate, "o-", color=FIRST, ms=4, label=f"MCDP({self.epsilon:g})")
        if self.max_mcdp is not None:
            ax.axhline(self.max_mcdp, color=SECOND, ls="--", label=f"bound of {100 * self.max_mcdp:g}%")
        if any(self.alarms):
            alarmed = np.where(self.alarms, estimate, np.nan)
            ax.plot(self.times, alarmed, "X", color=SECOND, ms=9, label="alarm")
        ax.set_ylim(0.0, None)
        self._show_percent(ax.yaxis, f"MCDP({self.epsilon:g})")
        ax.tick_params(axis="x", rotation=30 if len(self.times) > 4 else 0)
        self._add_legend(ax, [confidence])


def _rows_of(data: Predictions, rows: BoolArray) -> Predictions:
    """Some rows of predictions, with the groups that occur among them."""
    present, codes = np.unique(data.codes[rows], return_inverse=True)
    return replace(
        data,
        scores=data.scores[rows],
        codes=codes.astype(data.codes.dtype),
        groups=tuple(data.groups[code] for code in present),
        labels=None if data.labels is None else data.labels[rows],
        weights=None if data.weights is None else data.weights[rows],
        clusters=None if data.clusters is None else data.clusters[rows],
    )
