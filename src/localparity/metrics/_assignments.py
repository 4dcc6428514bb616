"""Two groups and people whose group is not known: the largest MCDP over all ways to assign them.

Of the ways in which m of them join the first group, the one that takes the lowest scores makes the gap as
large as it can be at every threshold at once. So the largest MCDP with one sign takes one number, m, which is
searched by halving: the gap at each threshold, at the best m of a range, bounds all of the range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray, IntArray, ScoreRange
from localparity.counts._atoms import Atoms
from localparity.metrics._gap_curve import units_of
from localparity.metrics._profile import Runs, mcdp_of

_MOST_NODES = 400
_ROUNDING = 1e-12


class End(NamedTuple):
    """The smallest or the largest MCDP: a bound that holds, and whether an assignment attains it."""

    value: float
    exact: bool


@dataclass(frozen=True, eq=False)
class Unassigned:
    """Two groups, and people who may be of the one or the other.

    Attributes
    ----------
    knots : ndarray
        The distinct scores of all of them, ascending, as fractions of the score range.
    first, second, unknown : ndarray
        How many people, or how much weight, lie at or below each knot.
    neither : bool
        Whether an unknown person may also be of another group.
    whole : bool
        Whether everybody weighs 1.
    score_range, resolution : tuple of float, float
        As those of the counts.
    """

    knots: FloatArray
    first: NDArray[Any]
    second: NDArray[Any]
    unknown: NDArray[Any]
    neither: bool
    whole: bool
    score_range: ScoreRange
    resolution: float

    @classmethod
    def of(
        cls, sides: tuple[Atoms, Atoms, Atoms], *, neither: bool, score_range: ScoreRange, resolution: float
    ) -> Unassigned:
        """The scores of two groups and of the unknown, put together."""
        knots = np.unique(np.concatenate([side.scores for side in sides]))
        below = [side.below()[np.searchsorted(side.scores, knots, side="right")] for side in sides]
        whole = all(side.units is None for side in sides)
        counted = [np.asarray(each, dtype=np.int64 if whole else np.float64) for each in below]
        units = units_of(knots, score_range, resolution)
        first, second, unknown = counted
        return cls(units, first, second, unknown, neither, whole, score_range, resolution)

    @cached_property
    def swapped(self) -> Unassigned:
        """The same with the groups in the other order."""
        return replace(self, first=self.second, second=self.first)

    @property
    def at(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How many of the first group, of the second and of the unknown lie at each knot."""
        first, second, unknown = (
            np.diff(each, prepend=0) for each in (self.first, self.second, self.unknown)
        )
        return first, second, unknown

    def mcdp(self, gap: FloatArray, epsilon: float) -> float:
        """MCDP(epsilon) of a gap at the knots."""
        at = np.array([epsilon])
        return float(mcdp_of(self.knots, gap, at, self.resolution, self.score_range)[0])

    def highest(self, first: tuple[float, float], second: tuple[float, float]) -> FloatArray:
        """At each knot the largest signed gap, where as many join the first group as lie between two numbers.

        The lowest of the unknown join the first group, and the highest the second, as many as suit the knot.
        """
        joined = np.clip(self.unknown, *first)
        above = self.unknown[-1] - self.unknown
        left = np.clip(above, *second)
        shares = (self.first + np.minimum(self.unknown, joined)) / (self.first[-1] + joined)
        others = (self.second + np.maximum(left - above, 0)) / (self.second[-1] + left)
        return np.asarray(shares - others, dtype=np.float64)

    @property
    def everywhere(self) -> FloatArray:
        """At each knot the largest signed gap over all assignments."""
        everybody = (0.0, float(self.unknown[-1]))
        return self.highest(everybody, everybody)

    @property
    def largest_jump(self) -> float:
        """The most by which the gap can change at one score, over all assignments."""
        total = self.unknown[-1]
        jumps = [
            (a + u) / (sides.first[-1] + u) - b / (sides.second[-1] + total - u)
            for sides in (self, self.swapped)
            for a, b, u in [sides.at]
        ]
        return float(np.max(jumps))

    def window_ends(self, epsilon: float) -> IntArray:
        """For each knot the last knot of the shortest run from there that carries a window.

        Knots from which none does are the last ones, and have no number.
        """
        last = self.knots.size - 1
        if epsilon <= 0.0:
            return np.arange(last)
        at_bottom = self.knots[0] <= 0.0
        behind = np.searchsorted(self.knots, self.knots + 2.0 * epsilon, side="right")
        if at_bottom:
            behind[0] = np.searchsorted(self.knots, epsilon, side="right")
        while True:
            some = np.flatnonzero(behind <= last)
            runs = Runs(self._half_widths(some, behind[some]), np.ones(some.size), self.knots[some])
            carried = runs.half_widths - runs.rounding(self.resolution, self.score_range) > epsilon
            if carried.all():
                return np.asarray(behind[some] - 1)
            behind[some[~carried]] += 1

    def _half_widths(self, starts: IntArray, behind: IntArray) -> FloatArray:
        """The half-widths of the runs from some knots to others; all of the length where at the bottom."""
        lengths = self.knots[behind] - self.knots[starts]
        return np.where(self.knots[starts] <= 0.0, lengths, 0.5 * lengths)


def largest_mcdp(sides: Unassigned, epsilon: float) -> End:
    """The largest MCDP over all assignments, or what it does not exceed.

    It is exact at epsilon 0. At others it is, unless so many people have one score that the gap could change
    its sign there without coming near 0, or there are weights, of which parts are assigned.
    """
    if epsilon <= 0.0:
        return End(float(max(sides.everywhere.max(), sides.swapped.everywhere.max())), exact=True)
    one_sign = [_largest_of_one_sign(each, epsilon) for each in (sides, sides.swapped)]
    value = max(end.value for end in one_sign)
    exact = all(end.exact for end in one_sign)
    half = 0.5 * sides.largest_jump
    if half > value:
        envelope = np.maximum(sides.everywhere, sides.swapped.everywhere)
        of_both = min(half, sides.mcdp(envelope, epsilon))
        if of_both > value + _ROUNDING:
            return End(of_both, exact=False)
    return End(value, exact)


class _Node(NamedTuple):
    """How many of the unknown join the first group, and how many the second: between two numbers each."""

    first: tuple[float, float]
    second: tuple[float, float]

    def halves(self, whole: bool, total: float, neither: bool) -> list[_Node]:
        """The two halves of the longer side; none of a single assignment."""
        sides = [self.first, self.second]
        longer = int(neither and np.ptp(self.second) > np.ptp(self.first))
        low, high = sides[longer]
        middle = (low + high) // 2 if whole else 0.5 * (low + high)
        found = []
        for half in ((low, middle), (middle + 1 if whole else middle, high)):
            sides[longer] = half
            second = sides[1] if neither else (total - half[1], total - half[0])
            node = _Node(sides[0], second)
            if half[0] <= half[1] and sides[0][0] + second[0] <= total and node != self:
                found.append(node)
        return found


def _largest_of_one_sign(sides: Unassigned, epsilon: float) -> End:
    """The largest MCDP where the first group's distribution is the higher one in all of the window."""
    total = float(sides.unknown[-1])

    def value(node: _Node) -> float:
        return sides.mcdp(np.maximum(sides.highest(*node), 0.0), epsilon)

    def point(node: _Node) -> _Node:
        """An assignment of a node, or near it."""
        first = (node.first[0] + node.first[1]) // 2
        second = (
            min((node.second[0] + node.second[1]) // 2, total - first) if sides.neither else total - first
        )
        return _Node((first, first), (second, second))

    root = _Node((0.0, total), (0.0, total))
    best, found = 0.0, value(root)
    number, nodes = count(), [(-found, -1, root)]
    tolerance = _ROUNDING if sides.whole else 1e-9
    for _ in range(_MOST_NODES):
        bound, _, node = heappop(nodes)
        best = max(best, value(point(node)))
        for half in node.halves(sides.whole, total, sides.neither):
            heappush(nodes, (max(bound, -value(half)), next(number), half))
        found = max(best, -nodes[0][0]) if nodes else best
        if found <= best + tolerance:
            return End(found, exact=sides.whole)
    return End(found, exact=False)
