"""MCDP as a function of epsilon, and the worst windows: where each is, and how to say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from localparity._scale import rounding_of, score_resolution
from localparity._text import capitalised, cutoffs_text, group_text, people_named, points_text
from localparity._types import FloatArray, Group, HigherIs, IntArray, ScoreRange
from localparity._validation import as_epsilon, as_epsilons, as_higher_is
from localparity.counts._comparison import EVERYONE
from localparity.metrics._kernels import highest_runs, profile_runs

if TYPE_CHECKING:
    from localparity.metrics._gap_curve import GapCurve
    from localparity.report import McdpProfileDisplay

A_FEW = 8
"""So many epsilons are looked up sooner than all runs are found or sorted."""

_SHORTEST = float(np.finfo(np.float64).smallest_subnormal)
_EPSILON = float(np.finfo(np.float64).eps)


class Runs(NamedTuple):
    """Runs of a gap curve: half-widths as fractions of the score range, values, and where they start."""

    half_widths: FloatArray
    values: FloatArray
    starts: FloatArray

    def at(self, places: Any) -> Runs:
        """Some of the runs."""
        return Runs(self.half_widths[places], self.values[places], self.starts[places])

    def mcdp_at(self, epsilons: FloatArray, resolution: float, score_range: ScoreRange) -> FloatArray:
        """MCDP at each epsilon: the highest run that is longer by more than rounding.

        Any run carries a window of half-width 0, also one that is too short a fraction of the range for a
        float.
        """

        def highest(epsilon: float) -> float:
            longer = np.flatnonzero(self.half_widths > epsilon)
            if epsilon <= 0.0 or not longer.size:
                return float(self.values.max(initial=0.0)) if epsilon <= 0.0 else 0.0
            at = longer[self.values[longer].argmax()]
            # For most epsilons one run settles it.
            if self.half_widths[at] > epsilon + most_rounding(resolution):
                return float(self.values[at])
            near = self.at(longer)
            carried = near.half_widths - near.rounding(resolution, score_range)
            return float(near.values[carried > epsilon].max(initial=0.0))

        return np.array([highest(epsilon) for epsilon in epsilons.ravel()]).reshape(epsilons.shape)

    def steps(self, resolution: float, score_range: ScoreRange) -> IntArray:
        """The places of the leading runs, each longer than the one before by more than rounding."""
        places = leading_runs(self.half_widths, self.values)
        gains = np.diff(self.half_widths[places])
        close = np.flatnonzero(gains <= most_rounding(resolution))
        longer = np.ones(places.size, dtype=bool)
        longer[1 + close] = gains[close] > self.at(places[1 + close]).rounding(resolution, score_range)
        return places[longer]

    def rounding(self, resolution: float, score_range: ScoreRange) -> FloatArray:
        """By how much the half-widths may be off, by the scores that the runs start and end at."""
        at_bottom = self.starts <= 0.0
        ends = self.half_widths + np.where(at_bottom, 0.0, self.starts + self.half_widths)
        of_starts, of_ends = (rounding_of(at, resolution, score_range) for at in (self.starts, ends))
        # Of a run that starts at the bottom of the range, the half-width is all of its length.
        return np.where(at_bottom, 1.0, 0.5) * (of_starts + of_ends)


def most_rounding(resolution: float) -> float:
    """What no half-width is off by more than, wherever its run lies."""
    return resolution + 4.0 * _EPSILON


def runs_of(unit_knots: FloatArray, gap: FloatArray) -> Runs:
    """The runs of a gap curve, few of the dominated ones among them."""
    # Numpy's own arrays take less time to touch for the first time than those that a loop makes.
    runs = np.empty((3, unit_knots.size))
    return Runs(*runs[:, : profile_runs(unit_knots, gap, runs)])


def reach_bounds(epsilons: FloatArray, resolution: float) -> FloatArray:
    """The half-widths that runs must exceed: to carry a window whatever the rounding, and at all.

    Any run at all carries a window of half-width 0.
    """
    reach = np.array([epsilons + most_rounding(resolution), epsilons])
    reach[:, epsilons <= 0.0] = -1.0
    return reach


def mcdp_of(
    unit_knots: FloatArray, gap: FloatArray, epsilons: FloatArray, resolution: float, score_range: ScoreRange
) -> FloatArray:
    """MCDP of a gap curve at a few epsilons, for less than all of its runs cost."""
    reach = reach_bounds(epsilons, resolution)
    found = highest_runs(unit_knots, gap, reach.ravel()).reshape(reach.shape)
    if (found[0] == found[1]).all():
        return np.asarray(found[0])
    # A run ties with an epsilon: how much its length may be off depends on where it lies.
    return runs_of(unit_knots, gap).mcdp_at(epsilons, resolution, score_range)


def leading_runs(half_widths: FloatArray, values: FloatArray) -> IntArray:
    """The places of the runs that no longer and at least as high run dominates, the highest first."""
    order = np.argsort(-values, kind="stable")
    ordered = half_widths[order]
    longest = np.maximum.accumulate(ordered)
    leads = np.ones(values.size, dtype=bool)
    np.greater(ordered[1:], longest[:-1], out=leads[1:])
    places = order[leads]
    values = values[places]
    last_of_value = np.ones(values.size, dtype=bool)
    np.less(values[1:], values[:-1], out=last_of_value[:-1])
    return np.asarray(places[last_of_value])


class McdpProfile:
    """MCDP at every epsilon at once, exactly.

    The profile falls in steps: it is ``values[i]`` from ``epsilons[i]`` up to, but not at,
    ``epsilons[i + 1]``, and 0 from the last step on. Of several curves (several pairs of groups, or the two
    labels of equalized odds) it is the worst.

    Parameters
    ----------
    curves : sequence of GapCurve
        The curves whose worst the profile is.

    Attributes
    ----------
    epsilons, values : ndarray
        The steps, as above: `epsilons` ascends from 0, `values` falls to 0.
    curves : tuple of GapCurve
        The curves it was made from.

    Examples
    --------
    >>> import localparity as lp
    >>> profile = lp.mcdp_profile(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"])
    >>> profile.epsilons, profile.values
    (array([0. , 0.1, 0.4]), array([1. , 0.5, 0. ]))
    >>> profile(0.25)
    0.5
    """

    def __init__(self, curves: Sequence[GapCurve]) -> None:
        self.curves = tuple(curves)
        self._resolution = max(curve.resolution for curve in curves)
        self._score_range = curves[0].score_range
        runs = [curve._runs for curve in curves]
        self._runs = runs[0] if len(runs) == 1 else Runs(*map(np.concatenate, zip(*runs, strict=True)))

    @cached_property
    def _steps(self) -> tuple[FloatArray, FloatArray]:
        places = self._runs.steps(
            score_resolution(np.dtype(np.float64), self._score_range), self._score_range
        )
        half_widths = np.maximum(self._runs.half_widths[places], _SHORTEST)
        return np.concatenate([[0.0], half_widths]), np.concatenate([self._runs.values[places], [0.0]])

    @cached_property
    def _carried_steps(self) -> tuple[FloatArray, FloatArray]:
        """The steps as epsilons meet them: a run that ties with an epsilon does not carry its window."""
        runs = self._runs
        carried = runs.half_widths - runs.rounding(self._resolution, self._score_range)
        places = leading_runs(carried, runs.values)
        return carried[places], np.append(runs.values[places], 0.0)

    @property
    def epsilons(self) -> FloatArray:
        """Where the steps begin, from 0 on."""
        return self._steps[0]

    @property
    def values(self) -> FloatArray:
        """MCDP from each step on, down to 0."""
        return self._steps[1]

    @overload
    def __call__(self, epsilon: float) -> float: ...

    @overload
    def __call__(self, epsilon: Sequence[float] | FloatArray) -> FloatArray: ...

    def __call__(self, epsilon: Any) -> float | FloatArray:
        """Return MCDP(epsilon).

        Parameters
        ----------
        epsilon : float or array-like
            The half-width of the windows, as a fraction of the score range.

        Returns
        -------
        float or ndarray
            A float for a number, an array for an array.
        """
        epsilons = as_epsilons(epsilon)
        if epsilons.size <= A_FEW:
            values = self._runs.mcdp_at(epsilons, self._resolution, self._score_range)
            return values if epsilons.ndim else float(values)
        carried, values = self._carried_steps
        return values[np.where(epsilons > 0.0, np.searchsorted(carried, epsilons, side="right"), 0)]

    def worst_window(self, epsilon: float = 0.0) -> Window:
        """Return the run that carries the worst window of half-width `epsilon`, of the worst curve.

        Parameters
        ----------
        epsilon : float
            The half-width, as a fraction of the score range.

        Returns
        -------
        Window
            Its ends are in the scores' own units.
        """
        epsilon = as_epsilon(epsilon)
        worst = max(self.curves, key=lambda curve: curve.mcdp(epsilon))
        return worst.worst_window(epsilon)

    def plot(self, ax: Any = None, *, confidence: float = 0.95) -> McdpProfileDisplay:
        """Draw the profile with its confidence band.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure by default.
        confidence : float
            The probability that the band holds the whole true profile.

        Returns
        -------
        McdpProfileDisplay
        """
        from localparity.report import McdpProfileDisplay

        return McdpProfileDisplay(self, confidence=confidence).plot(ax)

    def __repr__(self) -> str:
        told = [f"MCDP({epsilon:g}) {100 * self(epsilon):.1f}" for epsilon in (0.0, 0.05, 0.1)]
        return f"McdpProfile({', '.join(told)} points)"

    def _repr_html_(self) -> str:
        """The profile for a notebook."""
        from localparity.report.page._notebook import profile_html

        return profile_html(self)


def carried_half_widths(epsilons: FloatArray, resolution: float) -> FloatArray:
    """The half-width that a run, wherever it lies, must exceed to carry a window of half-width epsilon.

    Lengths within the scores' resolution count as equal, so a run must be longer by more than that; any
    run at all carries a window of half-width 0. `Runs.rounding` knows better where a run lies.
    """
    return np.where(epsilons > 0.0, epsilons + 0.5 * resolution, 0.0)


@dataclass(frozen=True)
class Window:
    """Where the gap stays large: the run of thresholds on which it is nowhere below `gap`.

    Attributes
    ----------
    low, high : float
        The run's ends in the scores' own units: the gap is at least `gap` from `low` up to, but not at,
        `high`. It holds a whole window of the half-width that was asked for.
    gap : float
        The least absolute gap in the run, which is MCDP at that half-width.
    higher, lower : hashable or None
        The group more likely to score above a threshold of the run, and the group more likely to score at
        or below it; None where the gap is 0, or where it changes its sign inside the run. Which of them is
        better off depends on what a high score means; `sentence_for` says so.
    groups : tuple
        The pair that is compared.
    label : int or None
        The label of the people compared, None for everyone.
    whole : bool
        Whether the scores are whole numbers, such as deciles, on a range wider than 1.

    Examples
    --------
    >>> print(Window(2.0, 6.0, 0.25, higher="m", lower="f", groups=("f", "m"), whole=True).sentence)
    At every cutoff from 2 to 5, people of group m are at least 25 points more likely than people of
    group f to score above it.
    """

    low: float
    high: float
    gap: float
    higher: Group | None
    lower: Group | None
    groups: tuple[Group, Group]
    label: int | None = None
    whole: bool = False

    def __repr__(self) -> str:
        names = [group_text(group) for group in (self.higher, self.lower) if group is not None]
        ahead = f", {' ahead of '.join(names)}" if names else ""
        first, last = f"{self.low:.4g}", f"{self.high - 1.0 if self.whole else self.high:.4g}"
        run = f"cutoff {first}" if first == last else f"cutoffs {first} to {last}"
        return f"{100 * self.gap:.1f} points, {run}{ahead}"

    @property
    def sentence(self) -> str:
        """The window in words that a reader can check against the data, whatever a high score means."""
        return self.sentence_for()

    def sentence_for(self, higher_is: HigherIs | None = None) -> str:
        """The window in words that say which group has the better or the worse outcome.

        Parameters
        ----------
        higher_is : {"better", "worse"}, optional
            What a score above the threshold means for the person scored; None does not say.

        Returns
        -------
        str

        Examples
        --------
        >>> window = Window(2.0, 6.0, 0.25, "m", "f", ("f", "m"), whole=True)
        >>> print(window.sentence_for("worse"))
        At every cutoff from 2 to 5, people of group m are at least 25 points more likely than people
        of group f to score above it, which is the worse outcome.
        """
        among = "" if self.label is None else f"among people with label {self.label}, "
        if self.gap == 0.0:
            first, second = map(group_text, self.groups)
            return capitalised(f"{among}no window of this width has a gap between {first} and {second}.")
        points = points_text(self.gap)
        where = capitalised(f"{among}at {cutoffs_text(self.low, self.high, whole=self.whole)}, ")
        if self.higher is None or self.lower is None:
            first, second = map(group_text, self.groups)
            return f"{where}{first} and {second} differ by {points}, in a direction that changes inside."
        higher, lower = self._people(self.higher), self._people(self.lower)
        if as_higher_is(higher_is) is None:
            return f"{where}{higher} are {points} more likely than {lower} to score above it."
        # Whoever fares worse is named first.
        compared = f"{lower} are {points} less likely than {higher}"
        if higher_is == "worse":
            compared = f"{higher} are {points} more likely than {lower}"
        return f"{where}{compared} to score above it, which is the {higher_is} outcome."

    def _people(self, group: Group) -> str:
        return "people overall" if group == EVERYONE == self.groups[1] else people_named(group_text(group))
