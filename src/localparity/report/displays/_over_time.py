"""MCDP over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from localparity._validation import as_groups, check_indexes
from localparity.metrics import Interval
from localparity.report.displays._display import FIRST, SECOND, PredictionsDisplay, legend_above, show_percent
from localparity.uncertainty import mcdp_interval

if TYPE_CHECKING:
    from localparity.audit._audit import Audit


class McdpOverTimeDisplay(PredictionsDisplay):
    """MCDP of one period after the other with its interval, and the bound that it should keep.

    Make one with `from_audits`, `from_predictions` or `from_estimator`.

    Parameters
    ----------
    times : sequence
        The periods: dates, numbers or names, in order.
    intervals : sequence of Interval
        MCDP in each period with its interval.
    epsilon : float
        The half-width of the windows.
    max_mcdp : float, optional
        The most that MCDP may be.

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
        intervals: Sequence[Interval],
        *,
        epsilon: float = 0.0,
        max_mcdp: float | None = None,
    ) -> None:
        self.times = list(times)
        self.intervals = list(intervals)
        self.epsilon = epsilon
        self.max_mcdp = max_mcdp

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
        """Draw one audit a period.

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
        y_true: Any,
        y_score: Any,
        *,
        sensitive_features: Any,
        ax: Any = None,
        times: Any = None,
        epsilon: float = 0.0,
        max_mcdp: float | None = None,
        **options: Any,
    ) -> Self:
        """Draw scores, each row of which has its period.

        Parameters
        ----------
        y_true, y_score, sensitive_features : array-like
            Labels (or None), scores and groups, as in `localparity.mcdp`.
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        times : array-like
            The period of each row; periods are drawn in sorted order.
        epsilon : float
            The half-width of the windows.
        max_mcdp : float, optional
            The most that MCDP may be.
        **options
            Those of `localparity.mcdp_interval`.

        Returns
        -------
        McdpOverTimeDisplay
            The display, drawn.
        """
        given = {"y_true": y_true, "y_score": y_score, "sensitive_features": sensitive_features}
        check_indexes(given | {"times": times, "sample_weight": options.get("sample_weight")})
        scores = np.asarray(y_score)
        grouping = as_groups(sensitive_features, len(scores))
        names = np.empty(len(grouping.names), dtype=object)
        names[:] = grouping.names
        groups = names[grouping.codes]
        labels = None if y_true is None else np.asarray(y_true)
        if times is None or len(times) != len(scores):
            came = "None" if times is None else f"{len(times)} rows"
            raise ValueError(f"times has {came} where y_score has {len(scores)} rows")
        periods, place = np.unique(np.asarray(times), return_inverse=True)
        weights = options.pop("sample_weight", None)
        intervals = []
        for period in range(periods.size):
            rows = place == period
            part = options | ({} if weights is None else {"sample_weight": np.asarray(weights)[rows]})
            interval = mcdp_interval(
                None if labels is None else labels[rows],
                scores[rows],
                sensitive_features=groups[rows],
                epsilon=epsilon,
                **part,
            )
            intervals.append(interval)
        return cls(periods.tolist(), intervals, epsilon=epsilon, max_mcdp=max_mcdp).plot(ax)

    def _draw(self, ax: Any) -> None:
        low, estimate, high = np.array([(i.low, i.estimate, i.high) for i in self.intervals]).T
        confidence = f"{100 * self.intervals[0].confidence:g}% interval"
        ax.fill_between(self.times, low, high, color=FIRST, alpha=0.2, lw=0, label=confidence)
        ax.plot(self.times, estimate, "o-", color=FIRST, ms=4, label=f"MCDP({self.epsilon:g})")
        if self.max_mcdp is not None:
            ax.axhline(self.max_mcdp, color=SECOND, ls="--", label=f"bound of {100 * self.max_mcdp:g}%")
        ax.set_ylim(0.0, None)
        ax.set_ylabel(f"MCDP({self.epsilon:g})")
        show_percent(ax.yaxis)
        ax.tick_params(axis="x", rotation=30 if len(self.times) > 4 else 0)
        ax.spines[["top", "right"]].set_visible(False)
        legend_above(ax, [confidence])
