"""The gap between two groups' cumulative distributions, as a step function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from localparity._scale import fractions_of, rounding, threshold_reach
from localparity._text import pair_text
from localparity._types import Criterion, FloatArray, Group, IntArray, ScoreRange
from localparity._validation import InputError, as_epsilon, as_numbers, setting, unknown_name
from localparity.counts._comparison import EVERYONE, Comparison
from localparity.counts._kernels import merge_scores
from localparity.counts._rows import KeyedRows, sort_rows
from localparity.counts._score_counts import (
    Data,
    ScoreCounts,
    Stratum,
    as_counts,
    checked_data,
    strata_of,
    with_everyone,
)
from localparity.metrics._kernels import gap_of_pair, largest_gaps
from localparity.metrics._profile import A_FEW, McdpProfile, Runs, Window, mcdp_of, runs_of
from localparity.predictions import Predictions

if TYPE_CHECKING:
    from localparity.report import GapCurveDisplay


# What bounds the gap of a pair whose scores are only known by cells.


@dataclass(frozen=True, eq=False)
class CellGaps:
    """What is known of a gap curve below each of its knots."""

    lows: FloatArray  # where the cell begins that ends at the knot; the knot itself where there is none
    least: FloatArray  # the least and the greatest signed gap that there can be inside the cell
    most: FloatArray


def envelope_of(knots: FloatArray, gap: FloatArray, cells: CellGaps) -> tuple[FloatArray, ...]:
    """The steps that hold a gap between them: where they begin, the least and the greatest signed gap."""
    begins = cells.lows.copy()
    # The gap at a knot is known: a cell that begins there begins with the next float.
    begins[1:] = np.where(begins[1:] == knots[:-1], np.nextafter(begins[1:], np.inf), begins[1:])
    steps = np.column_stack([begins < knots, np.ones(knots.size, dtype=bool)])
    columns = (begins, knots), (cells.least, gap), (cells.most, gap)
    return tuple(np.column_stack(column)[steps] for column in columns)


def longest_run(knots: FloatArray, gap: FloatArray, value: float) -> tuple[int, int]:
    """The longest run whose least absolute gap is a value, the first of that length: its knot and the next.

    The knots lie in [0, 1], the gap is 0 at the last of them, and some run has the value.
    """
    size = np.abs(gap)
    turns = np.flatnonzero(np.diff(size >= value, prepend=False))  # runs start and end in turns
    starts, ends = turns[::2], turns[1::2]
    lengths = np.where(knots[starts] > 0.0, knots[ends] - knots[starts], 2.0 * knots[ends])
    lengths[np.minimum.reduceat(size, turns)[::2] > value] = -1.0
    longest = int(lengths.argmax())
    return int(starts[longest]), int(ends[longest])


# The one type for a number that lies between two ends.


@dataclass(frozen=True)
class Interval:
    """An estimate between its lower and its upper end.

    Attributes
    ----------
    low, estimate, high : float
        The ends and the estimate between them.
    confidence : float
        The probability that the interval holds the true value; 1 for bounds that always hold.

    Examples
    --------
    >>> Interval(0.2, 0.25, 0.3, confidence=0.95).low
    0.2
    """

    low: float
    estimate: float
    high: float
    confidence: float = 1.0

    def __repr__(self) -> str:
        ends = f"{self.low:.4g} to {self.high:.4g}"
        return f"{self.estimate:.4g} ({ends}, {100 * self.confidence:g}%)"


def worst_interval(intervals: Iterable[Interval]) -> Interval:
    """The interval of the largest of several numbers."""
    found = list(intervals)
    low, estimate, high = (max(getattr(each, end) for each in found) for end in ("low", "estimate", "high"))
    return Interval(low, estimate, high, found[0].confidence)


def units_of(scores: FloatArray, score_range: ScoreRange, resolution: float) -> FloatArray:
    """Scores, ascending, as fractions of the score range.

    A score of few bits that stands for an end of the range may lie beside it, and is at that end.
    """
    if score_range == (0.0, 1.0):
        return scores
    units = fractions_of(scores, score_range)
    bottom = threshold_reach(score_range[0], resolution, score_range)
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
    >>> groups = ["a", "a", "b", "b"]
    >>> rows = lp.Predictions.from_arrays(None, [0.2, 0.6, 0.4, 0.8], sensitive_features=groups)
    >>> curve = lp.gap_curve(rows)
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
            raise InputError(f"knots and gap do not make a curve on {setting('score_range')} ({low}, {high})")

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
        reach = threshold_reach(thresholds, self.resolution, self.score_range)
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
        value = self.mcdp(epsilon)
        low, high = self.score_range
        higher: Group | None = None
        lower: Group | None = None
        if value > 0.0:
            start, end = longest_run(self._unit_knots, self.gap, value)
            low, high = float(self.knots[start]), float(self.knots[end])
            positive = self.gap[start:end] > 0.0
            if positive.all() or not positive.any():  # the gap's sign does not turn inside
                lower, higher = self.groups if positive[0] else self.groups[::-1]
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

    def __repr__(self) -> str:
        return f"GapCurve({pair_text(self.groups)}: {self.worst_window()!r})"

    def _repr_html_(self) -> str:
        """The curve for a notebook."""
        from localparity.report.page._notebook import gap_html

        return gap_html(self)

    def abcc(self) -> float:
        """Return the exact area between the two distributions, as a fraction of the score range."""
        return float(np.sum(np.abs(self.gap[:-1]) * np.diff(self._unit_knots)))

    def mean_difference(self) -> float:
        """Return the mean score of group b minus that of group a, as a fraction of the score range."""
        return float(np.sum(self.gap[:-1] * np.diff(self._unit_knots)))

    def bounds(self) -> tuple[GapCurve, GapCurve]:
        """Return two exact curves: the absolute gap is nowhere below the first nor above the second.

        A metric of the absolute gap therefore lies between its values for the two. For an exact curve, both
        are the curve itself.
        """
        if self.cells is not None:
            knots, least, most = envelope_of(self.knots, self.gap, self.cells)
            lower = np.maximum(0.0, np.maximum(least, -most))
            upper = np.maximum(np.abs(least), np.abs(most))
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
        exact = replace(self, knots=knots, gap=lower, rank_error=0.0, cells=None)
        return exact, replace(exact, gap=upper)

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

    @property
    def widest_window(self) -> float:
        """The half-width of the widest window that the pair's scores could carry, whoever has which."""
        lowest, highest = float(self._unit_knots[0]), float(self._unit_knots[-1])
        return highest if lowest <= 0.0 else 0.5 * (highest - lowest)


# The gap curves of rows that weigh 1, from one sort of all of them.


@dataclass(frozen=True, eq=False)
class SortedRows:
    """The rows of some people under one label, sorted by score."""

    predictions: Predictions
    label: int | None  # of those who are compared
    scores: NDArray[Any]
    codes: NDArray[Any]  # the group and label of each row
    group_of: IntArray  # the group of each code; -1 for those who are not compared
    sizes: IntArray  # how many rows each group has, and everyone last
    sole: bool  # whether one curve is all that is made of them, and may take the place of the scores

    @classmethod
    def strata(cls, predictions: Predictions, comparison: Comparison) -> Iterator[SortedRows]:
        """The rows that are compared, for each label; a group that is too small is an error."""
        rows = KeyedRows.of(predictions)
        scores, codes = sort_rows(rows.scores, rows.codes)
        sole = len(comparison.labels) * len(comparison.pair_places(predictions.groups)) == 1
        for label, group_of, sizes in rows.strata(comparison):
            yield cls(predictions, label, scores, codes, group_of, np.append(sizes, sizes.sum()), sole)

    def largest_gaps(self, pairs: IntArray) -> FloatArray:
        """The largest absolute gap of each pair, up to rounding."""
        return largest_gaps(self.scores, self.codes, self.group_of, self.sizes, pairs)

    def curve(self, pair: IntArray) -> GapCurve:
        """The curve of a pair."""
        first, second = pair.tolist()
        everyone = self.sizes.size - 1
        in_second = self.group_of == second if second < everyone else self.group_of >= 0
        sides = np.column_stack([[self.group_of == first, in_second], self.sizes[pair]])
        most = min(self.scores.size, int(self.sizes[pair].sum()))
        # Numpy's own arrays take less time to touch for the first time than those that a loop makes.
        in_place = self.sole and self.scores.dtype == np.float64
        knots, gap = self.scores if in_place else np.empty(most), np.empty(most)
        found = gap_of_pair(self.scores, self.codes, sides, knots, gap)
        names: tuple[Group, ...] = (*self.predictions.groups, EVERYONE)
        return GapCurve(
            knots[:found],
            gap[:found],
            (names[first], names[second]),
            (float(self.sizes[first]), float(self.sizes[second])),
            label=self.label,
            score_range=self.predictions.score_range,
            resolution=self.predictions.resolution,
        )


# From predictions or counts to the gap curves that every metric works on.


Pair = tuple[Group, Group]

_MOST_KEPT = 64
_MOST_KNOTS = 2**23
_kept: WeakKeyDictionary[ScoreCounts, dict[tuple[Pair, int | None], GapCurve]] = WeakKeyDictionary()
"""The first curves of counts, unless they are large, so that an audit and its page, say, share them."""


def gap_curves(data: Data, comparison: Comparison) -> list[GapCurve]:
    """The curves of all pairs that are compared."""
    return list(each_gap_curve(data, comparison))


def each_gap_curve(data: Data, comparison: Comparison) -> Iterator[GapCurve]:
    """The curves of all pairs that are compared, one at a time where there are too many to keep."""
    if isinstance(data, Predictions) and data.exchangeable:
        for rows in SortedRows.strata(data, comparison):
            yield from map(rows.curve, comparison.pair_places(data.groups))
        return
    counts = as_counts(data)
    if len(counts.groups) < 2:
        named = ", ".join(map(repr, counts.groups)) or "none"
        raise ValueError(f"at least two groups are needed, got {named}")
    for label, stratum in strata_of(counts, comparison).items():
        sides = with_everyone(stratum) if comparison.compare == "to_overall" else stratum
        for pair in comparison.pairs(list(stratum)):
            yield curve_between(counts, sides, pair, label)


def curve_between(counts: ScoreCounts, sides: Stratum, pair: Pair, label: int | None) -> GapCurve:
    """The curve of a pair of the groups of a stratum."""
    kept = _kept.setdefault(counts, {})
    if (pair, label) not in kept:
        curve = _merge_sides(counts, sides, pair, label)
        if len(kept) >= _MOST_KEPT or sum(other.knots.size for other in kept.values()) >= _MOST_KNOTS:
            return curve
        kept[pair, label] = curve
    return kept[pair, label]


def _merge_sides(counts: ScoreCounts, sides: Stratum, pair: Pair, label: int | None) -> GapCurve:
    first, second = (sides[group] for group in pair)
    knots, in_first, in_second = merge_scores(first.scores, second.scores)
    below_first, below_second = first.below(), second.below()

    def gap(at_first: IntArray, at_second: IntArray) -> FloatArray:
        ends = below_first[-1], below_second[-1]
        return gap_between(below_first[at_first], below_second[at_second], *ends)

    known_below = None
    if counts.cells is not None:
        before_first, before_second = (np.append(0, places[:-1]) for places in (in_first, in_second))
        least, most = gap(before_first, in_second), gap(in_first, before_second)
        known_below = CellGaps(counts.cells.lows_of(knots), least, most)
    return GapCurve(
        knots,
        gap(in_first, in_second),
        pair,
        (first.effective_size, second.effective_size),
        label=label,
        score_range=counts.score_range,
        resolution=counts.resolution,
        rank_error=counts.rank_error,
        cells=known_below,
        exchangeable=counts.exchangeable,
        ends_known=counts.ends_known,
    )


def gap_between(first: NDArray[Any], second: NDArray[Any], in_first: Any, in_second: Any) -> FloatArray:
    """The signed gap, given the weight of two groups below each knot and in all."""
    size = float(in_first) * float(in_second)
    if first.dtype.kind == second.dtype.kind == "i" and size < 2.0**62:
        # Whole numbers over one denominator: equal gaps are equal floats.
        gap = np.asarray((first * in_second - second * in_first) / size)
    else:
        gap = np.asarray(first / in_first - second / in_second, dtype=np.float64)
    if not np.abs(gap).max(initial=0.0) <= 1.0:
        raise AssertionError(f"a gap must be between -1 and 1, got {np.abs(gap).max()}")
    return gap


def gap_curve(
    data: Data,
    *,
    groups: tuple[Group, Group] | None = None,
    criterion: Criterion = "demographic_parity",
    min_group_size: int = 1,
) -> GapCurve:
    """The signed gap F_a - F_b between two groups' cumulative distributions.

    Parameters
    ----------
    data : Predictions or ScoreCounts
        The people, as `Predictions.from_arrays` makes them.
    groups : tuple, optional
        The pair (a, b), of which b may be ``"everyone"``. With two groups it may be left out.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1) or
        "predictive_equality" (label 0).
    min_group_size : int
        A group with fewer rows among the people compared is an error.

    Returns
    -------
    GapCurve
        Its knots are in the scores' own units.

    Examples
    --------
    >>> import localparity as lp
    >>> sex = ["f", "f", "m", "m"]
    >>> rows = lp.Predictions.from_arrays(None, [0.2, 0.4, 0.4, 0.8], sensitive_features=sex)
    >>> lp.gap_curve(rows, groups=("f", "m")).gap
    array([0.5, 0.5, 0. ])
    """
    comparison = Comparison(criterion, min_group_size=min_group_size)
    counts = as_counts(checked_data(data, comparison))
    if groups is None and len(counts.groups) > 2:
        raise InputError(f"must be a pair of the {len(counts.groups)} groups, got None", "groups")
    return curve_of_pair(counts, counts.groups if groups is None else groups, comparison)


def curve_of_pair(counts: ScoreCounts, pair: tuple[Group, ...], comparison: Comparison) -> GapCurve:
    """The curve of one pair of groups, under the one label that a criterion compares."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InputError(f"must be a pair (a, b), got {pair!r}", argument="groups")
    strata = strata_of(counts, comparison)
    if len(strata) > 1:
        raise InputError(
            f"{setting(criterion=comparison.criterion)} compares two labels and has no single curve; "
            "use 'equal_opportunity' or 'predictive_equality'"
        )
    ((label, sides),) = strata.items()
    if EVERYONE in pair:
        sides = with_everyone(sides)
        pair = (pair[0], EVERYONE) if pair[1] == EVERYONE else (EVERYONE, pair[1])
    for group in pair:
        if group not in sides:
            raise unknown_name("group", group, sides)
    return curve_between(counts, sides, pair, label)
