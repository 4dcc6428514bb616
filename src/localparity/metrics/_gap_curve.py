"""The gap between two groups' cumulative distributions, as a step function."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._types import FloatArray, Group, ScoreRange
from localparity._validation import as_epsilon, as_numbers, fractions_of, reach_of, rounding
from localparity.metrics._envelope import CellGaps, Envelope, find_envelope
from localparity.metrics._interval import Interval
from localparity.metrics._kernels import longest_runs
from localparity.metrics._profile import A_FEW, McdpProfile, Runs, mcdp_of, runs_of
from localparity.metrics._window import Window

if TYPE_CHECKING:
    from localparity.report import GapCurveDisplay


def units_of(scores: FloatArray, score_range: ScoreRange, resolution: float) -> FloatArray:
    """Scores, ascending, as fractions of the score range.

    A score of few bits that stands for an end of the range may lie beside it, and is at that end.

    Examples
    --------
    >>> units_of(np.array([0.1, 0.6], dtype=np.float32).astype(np.float64), (0.1, 1.1), 4.8e-7).round(6)
    array([0. , 0.5])
    """
    if score_range == (0.0, 1.0):
        return scores
    units = fractions_of(scores, score_range)
    bottom = reach_of(score_range[0], resolution, score_range)
    units[: np.searchsorted(scores, bottom, side="right")] = 0.0
    return np.minimum(units, 1.0)


@dataclass(frozen=True, eq=False)
class GapCurve:
    """The signed gap between two groups' cumulative distributions, as a step function.

    The gap at a threshold y is F_a(y) - F_b(y), where F_g(y) is the share of group g with a score at or below
    y. It is 0 below the first knot and from the last one on.

    Attributes
    ----------
    knots : ndarray
        The distinct scores of the pair, ascending, in the scores' own units.
    gap : ndarray
        The signed gap from each knot up to the next.
    groups : tuple
        The pair (a, b).
    sizes : tuple of float
        How many rows each group has; with weights, how many equally weighted rows would be as precise.
    label : int or None
        The label of the people compared, None for everyone.
    score_range : tuple of float
        The range of the scores. Lengths, epsilon and areas are fractions of it.
    resolution : float
        Fractions of the range that differ by less count as equal; those of smaller scores are the finer.
    rank_error : float
        The most that either distribution may be off; 0 when the curve is exact.
    cells : CellGaps or None
        Where scores are only known by cells, the bounds of the gap inside each; the gap at a knot is exact.
    exchangeable : bool
        Whether all rows are independent and weigh 1, as intervals that hold at any size ask.
    ends_known : bool
        Whether nobody is below the lowest knot or above the highest one, also where the curve is not exact.

    Examples
    --------
    >>> import localparity as lp
    >>> curve = lp.gap_curve(None, [0.2, 0.6, 0.4, 0.8], sensitive_features=["a", "a", "b", "b"])
    >>> curve.knots, curve.gap
    (array([0.2, 0.4, 0.6, 0.8]), array([0.5, 0. , 0.5, 0. ]))
    >>> curve(0.65), curve.mcdp(0.05), curve.mcdp(0.1)
    (0.5, 0.5, 0.0)
    """

    knots: FloatArray
    gap: FloatArray
    groups: tuple[Group, Group]
    sizes: tuple[float, float]
    _: KW_ONLY
    label: int | None = None
    score_range: ScoreRange = (0.0, 1.0)
    resolution: float = 4.0 * float(np.finfo(np.float64).eps)
    rank_error: float = 0.0
    cells: CellGaps | None = None
    exchangeable: bool = True
    ends_known: bool = True

    def __post_init__(self) -> None:
        low, high = self.score_range
        slack = rounding(self.resolution, self.score_range)
        inside = self.knots.size > 0 and low - slack <= self.knots[0] <= self.knots[-1] <= high + slack
        if not inside or self.knots.size != self.gap.size:
            raise ValueError(f"knots and gap do not make a curve on score_range ({low}, {high})")

    @cached_property
    def _unit_knots(self) -> FloatArray:
        """The knots as fractions of the score range."""
        return units_of(self.knots, self.score_range, self.resolution)

    @cached_property
    def _runs(self) -> Runs:
        return runs_of(self._unit_knots, self.gap)

    @cached_property
    def whole(self) -> bool:
        """Whether all scores are known to be whole numbers, on a range wider than 1.

        On [0, 1] they would be 0 and 1, between which thresholds lie that matter.
        """
        low, high = self.score_range
        if self.cells is not None or high - low <= 1.0 or max(-low, high) > 2.0**53:
            return False
        # Most scores are not, and show it at once.
        return not np.any(self.knots[:100] % 1.0) and not np.any(self.knots % 1.0)

    def __call__(self, threshold: Any) -> Any:
        """Return the signed gap at thresholds.

        Parameters
        ----------
        threshold : float or array-like
            In the scores' own units.

        Returns
        -------
        float or ndarray
            A float for a number, an array for an array.
        """
        thresholds = as_numbers(np.atleast_1d(threshold), "threshold")
        reach = reach_of(thresholds, self.resolution, self.score_range)
        found = np.concatenate([[0.0], self.gap])[np.searchsorted(self.knots, reach, side="right")]
        return found if np.ndim(threshold) else float(found[0])

    def mcdp(self, epsilon: float = 0.0) -> float:
        """Return MCDP(epsilon): the largest, over windows, of the smallest absolute gap in the window.

        Parameters
        ----------
        epsilon : float
            The half-width of the windows, as a fraction of the score range.

        Returns
        -------
        float
            A fraction in [0, 1].
        """
        return float(self.mcdp_at(np.array([as_epsilon(epsilon)]))[0])

    def mcdp_at(self, epsilons: FloatArray) -> FloatArray:
        """Return MCDP at several epsilons, for less than a profile costs.

        Parameters
        ----------
        epsilons : ndarray
            Half-widths of windows, not checked.

        Returns
        -------
        ndarray
            MCDP at each epsilon.
        """
        if "_runs" in self.__dict__ or epsilons.size > A_FEW:
            return self._runs.mcdp_at(epsilons, self.resolution, self.score_range)
        return mcdp_of(self._unit_knots, self.gap, epsilons, self.resolution, self.score_range)

    def profile(self) -> McdpProfile:
        """Return MCDP at every epsilon."""
        return McdpProfile([self])

    def worst_window(self, epsilon: float = 0.0) -> Window:
        """Return the longest run of thresholds on which the gap is nowhere below MCDP(epsilon).

        Parameters
        ----------
        epsilon : float
            The half-width of the windows, as a fraction of the score range.

        Returns
        -------
        Window
        """
        return self.worst_windows(np.array([as_epsilon(epsilon)]))[0]

    def worst_windows(self, epsilons: FloatArray) -> list[Window]:
        """Return the worst windows at several epsilons, for little more than one costs.

        Parameters
        ----------
        epsilons : ndarray
            Half-widths of windows, not checked.

        Returns
        -------
        list of Window
        """
        values, place = np.unique(self.mcdp_at(epsilons), return_inverse=True)
        starts, ends = longest_runs(self._unit_knots, self.gap, values)
        turns = np.concatenate([[0], np.cumsum((self.gap[1:] > 0.0) != (self.gap[:-1] > 0.0))])
        windows = [
            self._window(float(value), int(start), int(end), bool(turns[end - 1] > turns[start]))
            for value, start, end in zip(values, starts, ends, strict=True)
        ]
        return [windows[i] for i in place]

    def _window(self, value: float, start: int, end: int, turns: bool) -> Window:
        """The run from the knot `start` up to the knot `end`, in which the gap's sign may turn."""
        if value == 0.0:
            low, high = self.score_range
            return Window(low, high, 0.0, None, None, self.groups, self.label, self.whole)
        first, second = self.groups
        higher, lower = (second, first) if self.gap[start] > 0.0 else (first, second)
        if turns:
            higher = lower = None
        low, high = float(self.knots[start]), float(self.knots[end])
        return Window(low, high, value, higher, lower, self.groups, self.label, self.whole)

    def plot(self, ax: Any = None, *, confidence: float = 0.95, epsilon: float = 0.0) -> GapCurveDisplay:
        """Draw the curve with its confidence band and its worst window.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure by default.
        confidence : float
            The probability that the band holds the true gap everywhere.
        epsilon : float
            The half-width of the window that is shaded.

        Returns
        -------
        GapCurveDisplay
        """
        from localparity.report import GapCurveDisplay

        return GapCurveDisplay(self, confidence=confidence, epsilon=epsilon).plot(ax)

    def abcc(self) -> float:
        """Return the exact area between the two distributions, as a fraction of the score range."""
        return float(np.sum(np.abs(self.gap[:-1]) * np.diff(self._unit_knots)))

    def mean_difference(self) -> float:
        """Return the mean score of group b minus that of group a, as a fraction of the score range."""
        return float(np.sum(self.gap[:-1] * np.diff(self._unit_knots)))

    @cached_property
    def _envelope(self) -> Envelope:
        """The bounds of the absolute gap, step by step, of a curve with cells."""
        assert self.cells is not None
        return find_envelope(self.knots, self.gap, self.cells)

    def bounds(self) -> tuple[GapCurve, GapCurve]:
        """Return two exact curves: the absolute gap is nowhere below the first nor above the second.

        A metric of the absolute gap therefore lies between its values for the two. For an exact curve, both
        are the curve itself.
        """
        if self.cells is not None:
            knots, lower, upper = self._envelope.knots, self._envelope.lower, self._envelope.upper
        elif self.rank_error > 0.0:
            # Outside of the lowest and the highest score, where these are known, there is no gap.
            ends = () if self.ends_known else self.score_range
            knots = np.union1d(self.knots, ends)
            size = np.zeros(knots.size)
            size[np.searchsorted(knots, self.knots)] = np.abs(self.gap)
            reach = 2.0 * self.rank_error * (np.arange(knots.size) < knots.size - 1)
            lower, upper = np.maximum(size - reach, 0.0), np.minimum(size + reach, 1.0)
        else:
            return self, self
        return self._known(knots, lower), self._known(knots, upper)

    def mcdp_bounds(self, epsilon: float = 0.0) -> Interval:
        """Return MCDP(epsilon) and the bounds that always hold it, equal for an exact curve.

        Parameters
        ----------
        epsilon : float
            The half-width of the windows, as a fraction of the score range.

        Returns
        -------
        Interval
        """
        low, high = (curve.mcdp(epsilon) for curve in self.bounds())
        return Interval(low, self.mcdp(epsilon), high)

    def abcc_bounds(self) -> Interval:
        """Return ABCC and the bounds that always hold it."""
        low, high = (curve.abcc() for curve in self.bounds())
        return Interval(low, self.abcc(), high)

    def mean_difference_bounds(self) -> Interval:
        """Return the mean difference and the bounds that always hold it."""
        value = self.mean_difference()
        if self.cells is None:
            reach = 2.0 * self.rank_error * (self._spread if self.ends_known else 1.0)
            return Interval(value - reach, value, value + reach)
        ends = (self._known(self._envelope.knots, gap) for gap in (self._envelope.least, self._envelope.most))
        low, high = (end.mean_difference() for end in ends)
        return Interval(low, value, high)

    @property
    def widest_window(self) -> float:
        """The half-width of the widest window that the pair's scores could carry, whoever has which."""
        lowest = self._unit_knots[0]
        return float(self._unit_knots[-1]) if lowest <= 0.0 else 0.5 * self._spread

    @property
    def _spread(self) -> float:
        """The distance from the lowest score of the pair to the highest, as a fraction of the score range."""
        return float(self._unit_knots[-1] - self._unit_knots[0])

    def _known(self, knots: FloatArray, gap: FloatArray) -> GapCurve:
        """A curve of the same pair that is exact."""
        return replace(self, knots=knots, gap=gap, rank_error=0.0, cells=None)
