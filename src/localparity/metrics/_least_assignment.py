"""The smallest MCDP of two groups over all ways to assign people whose group is not known.

Where m of them join the first group, the number X of those at or below a threshold sets the gap there: it is
alpha X - beta, with alpha and beta that m decides. MCDP is at most t where X passes within t of beta in every
window, from 0 to m, moving up by no more than the unknown at each score. Any two windows say how large t must
be: half of how far beta falls from the first to the second, or rises beyond the unknown between them. What
falls gets less with m and what rises gets more, so the best m is found by halving.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from localparity._types import FloatArray, IntArray
from localparity.metrics._assignments import End, Unassigned
from localparity.metrics._gap_curves import gap_between

_ROUNDING = 1e-12
_MOST_TRIED = 2000
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class LeastSearch:
    """The search for the smallest MCDP(epsilon) of two groups."""

    sides: Unassigned
    epsilon: float

    @cached_property
    def _ends(self) -> IntArray:
        return self.sides.window_ends(self.epsilon)

    def terms(self, joined: float) -> tuple[float, FloatArray]:
        """Return alpha and beta, of which the gap is made, where so many join the first group."""
        sides = self.sides
        first = sides.first[-1] + joined
        second = sides.second[-1] + sides.unknown[-1] - joined
        return 1.0 / first + 1.0 / second, (sides.second + sides.unknown) / second - sides.first / first

    def falls_and_rises(self, joined: float) -> tuple[float, float]:
        """Return what MCDP is at least since beta falls, and since it rises, where so many join the first."""
        alpha, beta = self.terms(joined)
        unknown, starts = self.sides.unknown, np.arange(self._ends.size)
        if not starts.size:
            return 0.0, 0.0
        above = beta - alpha * unknown  # what is left of beta where all of the unknown up to there join
        low, high = -window_max(-beta, starts, self._ends), window_max(beta, starts, self._ends)
        low_above, high_above = -window_max(-above, starts, self._ends), window_max(above, starts, self._ends)
        # A window before each, if there is one, whose knots are all before its own.
        before = np.searchsorted(self._ends, starts, side="left") - 1
        later, before = starts[before >= 0], before[before >= 0]
        falls = np.maximum.accumulate(low)[before] - high[later]
        rises = low_above[later] - np.minimum.accumulate(high_above)[before]
        # At both ends of the range the gap is 0: there X is 0, and all that join.
        fall = max(-high.min(), low.max() - alpha * joined, 0.5 * falls.max(initial=0.0))
        left = alpha * (unknown[-1] - joined)
        rise = max(low_above.max(), -high_above.min() - left, 0.5 * rises.max(initial=0.0))
        return max(fall, 0.0), max(rise, 0.0)

    def least(self) -> tuple[float, float]:
        """Return how many join the first group where MCDP is bounded by least, and that bound for all."""
        low, high = 0.0, float(self.sides.unknown[-1])
        step = 1.0 if self.sides.whole else 0.0
        for _ in range(_HALVINGS):
            if high - low <= step:
                break
            middle = (low + high) // 2 if self.sides.whole else 0.5 * (low + high)
            fall, rise = self.falls_and_rises(middle)
            low, high = (middle, high) if fall > rise else (low, middle)
        ends = [self.falls_and_rises(low), self.falls_and_rises(high)]
        values = [max(end) for end in ends]
        best = low if values[0] <= values[1] else high
        if self.sides.whole:
            return best, min(values)
        # Between the two, falls are no less than at the upper one and rises no less than at the lower one.
        return best, min(*values, max(ends[1][0], ends[0][1]))

    def whole_least(self) -> End:
        """Return the smallest MCDP(0) over assignments of whole people: all with a better bound are tried."""
        start, bound = self.least()
        everybody = int(self.sides.unknown[-1])
        value = self._whole_least_of(int(start))
        lower = _first(lambda joined: self.falls_and_rises(joined)[0] < value - _ROUNDING, everybody)
        upper = _first(lambda joined: self.falls_and_rises(joined)[1] >= value - _ROUNDING, everybody)
        if upper - lower > _MOST_TRIED:
            return End(float(bound), exact=False)
        for joined in range(lower, upper):
            if self._path(joined, value - _ROUNDING) is not None:
                value = self._whole_least_of(joined)
        return End(value, exact=True)

    def _whole_least_of(self, joined: int) -> float:
        """The smallest MCDP(0) where so many join the first group."""
        alpha, _ = self.terms(joined)
        low = max(self.falls_and_rises(joined))
        high = low + alpha  # enough to round every number of the best path down
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._path(joined, middle) is not None else (middle, high)
        path = self._path(joined, high)
        assert path is not None
        return float(np.abs(self.gap(path)).max())

    def gap(self, path: IntArray) -> FloatArray:
        """Return the signed gap at the knots, where so many of the unknown up to each join the first."""
        sides = self.sides
        first, second = sides.first + path, sides.second + sides.unknown - path
        return gap_between(first, second, first[-1], second[-1])

    def _path(self, joined: int, most: float) -> IntArray | None:
        """How many of the unknown up to each knot join so that the gap is nowhere larger; None if none."""
        alpha, beta = self.terms(joined)
        unknown = self.sides.unknown
        least = np.ceil((beta - most) / alpha - 1e-9).astype(np.int64)
        greatest = np.floor((beta + most) / alpha + 1e-9).astype(np.int64)
        least = np.maximum(least, np.maximum(0, joined - (unknown[-1] - unknown)))
        greatest = np.minimum(greatest, np.minimum(unknown, joined))
        reached = np.maximum.accumulate(least)
        if np.any(reached > unknown + np.minimum.accumulate(greatest - unknown)):
            return None
        return np.asarray(unknown + np.maximum.accumulate((reached - unknown)[::-1])[::-1])


def _first(holds: Callable[[int], bool], last: int) -> int:
    """The first number from 0 on for which something holds, as it does for all more; last + 1 if for none."""
    low, high = -1, last + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def window_max(values: FloatArray, starts: IntArray, ends: IntArray) -> FloatArray:
    """The largest value from each start to its end, both included, from maxima over powers of two.

    Examples
    --------
    >>> window_max(np.array([3.0, 1.0, 2.0, 5.0]), np.array([0, 1, 2]), np.array([1, 2, 3]))
    array([3., 2., 5.])
    """
    found = np.empty(starts.size)
    level = np.frexp(ends - starts + 1)[1] - 1
    maxima, width = values, 1
    for power in range(int(level.max(initial=-1)) + 1):
        some = np.flatnonzero(level == power)
        found[some] = np.maximum(maxima[starts[some]], maxima[ends[some] - width + 1])
        maxima = np.maximum(maxima[:-width], maxima[width:])
        width *= 2
    return found


def smallest_mcdp(sides: Unassigned, epsilon: float) -> End:
    """The smallest MCDP over all assignments, or what it does not fall below.

    With two groups and no weights it is exact at epsilon 0, and at others where the assignment that is best
    at epsilon 0 attains the bound. With weights, parts of people are assigned. Of more groups, an unknown
    person may be of neither of the two, which leaves what each threshold by itself says.
    """
    if sides.neither:
        closest = [-each.everywhere for each in (sides, sides.swapped)]
        return End(sides.mcdp(np.maximum(np.maximum(*closest), 0.0), epsilon), exact=False)
    search = LeastSearch(sides, epsilon)
    if sides.whole and epsilon <= 0.0:
        return search.whole_least()
    return End(float(search.least()[1]), exact=False)
