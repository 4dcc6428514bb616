"""People whose group is not known: what MCDP can be whatever it is, and how few could change a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import combinations, count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import ArrayLike, BoolArray, Criterion, FloatArray, Groups, IntArray, ScoreRange
from localparity._validation import NO_GROUP, Blanks, as_epsilons, as_fraction, as_texts
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import Data, ScoreCounts, input_counts, strata_of
from localparity.metrics._gap_curve import gap_between, gap_curves, units_of
from localparity.metrics._profile import Runs, mcdp_of
from localparity.metrics._window import percent
from localparity.metrics._within import allowed, within_bound

# Two groups and people whose group is not known: the largest MCDP over all ways to assign them.
#
# Of the ways in which m of them join the first group, the one that takes the lowest scores makes the gap as
# large as it can be at every threshold at once. So the largest MCDP with one sign takes one number, m, which
# is searched by halving: the gap at each threshold, at the best m of a range, bounds all of the range.


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


# How few people, in the wrong group or without one, could change whether MCDP(0) is within a bound.
#
# A threshold and a direction say who must move for the gap there to grow: people at or below it into the
# first group, people above it into the second. The best way to share a number of moves between the two is
# found at an end, or by thirds where the gap is concave.


_MOST_WORK = 20_000

Gaps = Callable[[IntArray, IntArray], FloatArray]
"""The gap at each knot, where so many move at or below it and so many above it."""


class Moves(NamedTuple):
    """How many people at least, and whether so many are known to be enough."""

    people: int
    exact: bool


def _best_shares(gaps: Gaps, below: IntArray, above: IntArray, moves: int) -> FloatArray:
    """The largest gap at each knot for so many moves, of people at or below it and above it."""
    total = np.minimum(moves, below + above)
    low, high = np.maximum(total - above, 0), np.minimum(total, below)
    best = np.maximum(gaps(low, total - low), gaps(high, total - high))
    while np.any(high - low > 2):
        third = (high - low) // 3
        one, other = low + third, high - third
        rises = gaps(one, total - one) < gaps(other, total - other)
        low, high = np.where(rises, one, low), np.where(rises, high, other)
    for step in range(3):
        middle = np.minimum(low + step, high)
        best = np.maximum(best, gaps(middle, total - middle))
    return best


def _fewest(holds: Callable[[int], bool], most: int) -> int | None:
    """The fewest moves for which something holds, which it does for all more; None where it never does."""
    if not holds(most):
        return None
    low, high = -1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def wrong_to_exceed(sides: Unassigned, max_mcdp: float) -> int | None:
    """The fewest people of two groups in the wrong one that could hide an MCDP(0) above a bound."""
    found = [_wrong_one_way(each, max_mcdp) for each in (sides, sides.swapped)]
    return min((each for each in found if each is not None), default=None)


def _wrong_one_way(sides: Unassigned, max_mcdp: float) -> int | None:
    first, second = sides.first, sides.second

    def gaps(below: IntArray, above: IntArray) -> FloatArray:
        in_first, in_second = first[-1] + below - above, second[-1] - below + above
        with np.errstate(invalid="ignore", divide="ignore"):
            found = (first + below) / in_first - (second - below) / in_second
        return np.where((in_first > 0) & (in_second > 0), found, -1.0)

    below, above = second, first[-1] - first
    return _fewest(
        lambda moves: not within_bound(_best_shares(gaps, below, above, moves).max(), max_mcdp),
        int((below + above).max()),
    )


def added_to_exceed(sides: Unassigned, max_mcdp: float) -> int | None:
    """The fewest unknown people who, in groups that suit, make MCDP(0) exceed a bound, the others out."""
    found = [_added_one_way(each, max_mcdp) for each in (sides, sides.swapped)]
    return min((each for each in found if each is not None), default=None)


def _added_one_way(sides: Unassigned, max_mcdp: float) -> int | None:
    first, second, unknown = sides.first, sides.second, sides.unknown

    def gaps(below: IntArray, above: IntArray) -> FloatArray:
        return np.asarray((first + below) / (first[-1] + below) - second / (second[-1] + above))

    return _fewest(
        lambda moves: (
            not within_bound(_best_shares(gaps, unknown, unknown[-1] - unknown, moves).max(), max_mcdp)
        ),
        int(unknown[-1]),
    )


def wrong_to_keep(sides: Unassigned, max_mcdp: float) -> int | None:
    """The fewest people in the wrong group without whom MCDP(0) would be within a bound.

    Where M people are of the first group, as many of them must lie up to each knot as keep the gap within the
    bound: a tube, through which the number of people moved so far goes by moving only when it must. No tube
    widens or narrows by more than the people at a knot, so those moves can be made.
    """
    everybody, first = sides.first + sides.second, sides.first
    total, size = int(everybody[-1]), int(first[-1])
    reach = 32
    while True:
        sizes = np.arange(max(1, size - reach), min(total - 1, size + reach) + 1)
        moves = _moves_within(everybody, first, sizes, max_mcdp)
        fewest = moves.min()
        if fewest <= reach or sizes.size == total - 1:
            return int(fewest) if np.isfinite(fewest) else None
        reach = min(4 * reach, total)


def _moves_within(everybody: IntArray, first: IntArray, sizes: IntArray, max_mcdp: float) -> FloatArray:
    """The fewest moves that keep the gap within a bound, for each size of the first group."""
    total = everybody[-1]
    radius = max_mcdp * sizes * (total - sizes) / total
    at, moves = np.zeros(sizes.size, dtype=np.int64), np.zeros(sizes.size)

    def fits(number: FloatArray, people: int) -> BoolArray:
        gap = number / sizes - (people - number) / (total - sizes)
        return np.asarray(np.abs(gap) <= allowed(max_mcdp))

    for people, known in zip(everybody.tolist(), first.tolist(), strict=True):
        centre = people * sizes / total
        # Which whole numbers fit is decided as everywhere; the ends of the tube may be one off by rounding.
        least, most = np.round(centre - radius), np.round(centre + radius)
        least += np.where(fits(least, people), 0, 1)
        most -= np.where(fits(most, people), 0, 1)
        least = np.maximum(least, np.maximum(0, sizes - (total - people))) - known
        most = np.minimum(most, np.minimum(people, sizes)) - known
        moved = np.clip(at, least, most)
        moves += np.where(least <= most, np.abs(moved - at), np.inf)
        at = moved
    return moves


def added_to_keep(sides: Unassigned, max_mcdp: float) -> Moves | None:
    """The fewest unknown people who, in groups that suit, bring MCDP(0) within a bound, the others left out.

    Of few people all ways are tried. Of more, each threshold says how many it takes there, which is no more
    than are needed. None where not even all of them could.
    """
    bounds = [_closing_one_way(each, max_mcdp) for each in (sides, sides.swapped)]
    if None in bounds:
        return None
    least = max(each for each in bounds if each is not None)
    total = int(sides.unknown[-1])
    if sides.neither or sides.knots.size * (total + 1) ** 4 > _MOST_WORK:
        return Moves(least, exact=False)
    ways = (joined for joined in range(least, total + 1) if _can_keep(sides, joined, max_mcdp))
    fewest = next(ways, None)
    return None if fewest is None else Moves(fewest, exact=True)


def _closing_one_way(sides: Unassigned, max_mcdp: float) -> int | None:
    """What each threshold takes where the first group's distribution is too high."""
    first, second, unknown = sides.first, sides.second, sides.unknown

    def closeness(below: IntArray, above: IntArray) -> FloatArray:
        return np.asarray((second + below) / (second[-1] + below) - first / (first[-1] + above))

    return _fewest(
        lambda moves: within_bound(
            -_best_shares(closeness, unknown, unknown[-1] - unknown, moves).min(), max_mcdp
        ),
        int(unknown[-1]),
    )


def _can_keep(sides: Unassigned, joined: int, max_mcdp: float) -> bool:
    """Whether some of the ways in which so many join the groups keep the gap within a bound everywhere."""
    at = np.diff(sides.unknown, prepend=0).tolist()
    knots = list(zip(sides.first.tolist(), sides.second.tolist(), at, strict=True))
    for to_first in range(joined + 1):
        in_first, in_second = knots[-1][0] + to_first, knots[-1][1] + joined - to_first
        most, reached = allowed(max_mcdp), {(0, 0)}
        for first, second, people in knots:
            reached = {
                (one + a, other + b)
                for one, other in reached
                for a in range(people + 1)
                for b in range(people + 1 - a)
                if abs((first + one + a) / in_first - (second + other + b) / in_second) <= most
            }
        if (to_first, joined - to_first) in reached:
            return True
    return False


# The smallest and the largest MCDP over all assignments of few people, window by window.
#
# The numbers of the unknown up to a knot that may have joined the first group are the bits of an integer:
# those that the last knot leaves, spread by the people at this one, of which some make the gap large, or
# small, enough. No rounding, no sign and no tie is taken for granted.


def is_small(sides: Unassigned) -> bool:
    """Whether there are two groups, everybody weighs 1, and there are few enough assignments to try."""
    few = sides.knots.size * (int(sides.unknown[-1]) + 1) ** 2 <= _MOST_WORK
    return sides.whole and not sides.neither and few


class _Joined(NamedTuple):
    """Where so many of the unknown join the first group: the numbers that may have up to each knot."""

    least: IntArray
    gaps: list[FloatArray]

    @classmethod
    def of(cls, sides: Unassigned, joined: int) -> _Joined:
        """The absolute gap at each knot for each number that may have joined up to there."""
        unknown = sides.unknown
        least = np.maximum(0, joined - (unknown[-1] - unknown))
        most = np.minimum(unknown, joined)
        totals = sides.first[-1] + joined, sides.second[-1] + unknown[-1] - joined
        gaps = []
        for place, (low, high) in enumerate(zip(least.tolist(), most.tolist(), strict=True)):
            numbers = np.arange(low, high + 1)
            first, second = sides.first[place] + numbers, sides.second[place] + unknown[place] - numbers
            gaps.append(np.abs(gap_between(first, second, *totals)))
        return cls(least, gaps)

    def bits(self, suits: Callable[[FloatArray], BoolArray]) -> list[int]:
        """The numbers at each knot whose gap suits, as bits."""
        return [
            sum(1 << (low + place) for place in np.flatnonzero(suits(gaps)).tolist())
            for low, gaps in zip(self.least.tolist(), self.gaps, strict=True)
        ]


def spread(bits: int, by: int) -> int:
    """Numbers that may have grown by up to so much.

    Examples
    --------
    >>> bin(spread(0b1001, 1)), bin(spread(0b1, 3))
    ('0b11011', '0b1111')
    """
    step = 1
    while by > 0:
        step = min(step, by)
        bits |= bits << step
        by -= step
        step *= 2
    return bits


def every_assignment(sides: Unassigned, epsilon: float) -> tuple[End, End]:
    """The smallest and the largest MCDP(epsilon), exactly."""
    ends = sides.window_ends(epsilon).tolist()
    unknown = sides.unknown.tolist()
    worlds = [_Joined.of(sides, joined) for joined in range(unknown[-1] + 1)]
    values = np.unique(np.concatenate([gaps for world in worlds for gaps in world.gaps]))

    def reaches(value: float) -> bool:
        """Whether an assignment has a window all of whose gaps are as large."""
        return any(
            _has_window(world.bits(lambda gaps: gaps >= value - _ROUNDING), unknown, ends) for world in worlds
        )

    def keeps(value: float) -> bool:
        """Whether an assignment has no window all of whose gaps are larger."""
        return any(
            _has_path(world.bits(lambda gaps: gaps <= value + _ROUNDING), unknown, ends) for world in worlds
        )

    largest = _last(values, reaches) if ends else 0.0
    smallest = -_last(-values[::-1], lambda value: keeps(-value))
    return End(smallest, exact=True), End(largest, exact=True)


def _last(values: FloatArray, holds: Callable[[float], bool]) -> float:
    """The last of ascending values for which something holds, as it does for all before; 0 if for none."""
    low, high = -1, values.size - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(float(values[middle])) else (low, middle - 1)
    return float(values[low]) if low >= 0 else 0.0


def _has_window(suited: list[int], unknown: list[int], ends: list[int]) -> bool:
    """Whether some numbers suit all knots of a window, one after the other."""
    for start, end in enumerate(ends):
        bits = suited[start]
        for place in range(start + 1, end + 1):
            bits = spread(bits, unknown[place] - unknown[place - 1]) & suited[place]
        if bits:
            return True
    return False


def _has_path(suited: list[int], unknown: list[int], ends: list[int]) -> bool:
    """Whether some numbers suit a knot in every window."""
    before = [0, *unknown]
    reached = [1]
    for place in range(len(unknown)):
        bits = 0
        for last in range(place, -1, -1):
            # The knots between the two do not suit, and must not make a window.
            if last < len(ends) and ends[last] < place:
                break
            bits |= spread(reached[last], before[place + 1] - before[last])
        reached.append(bits & suited[place])
    return reached[-1] != 0


# The smallest MCDP of two groups over all ways to assign people whose group is not known.
#
# Where m of them join the first group, the number X of those at or below a threshold sets the gap there: it
# is alpha X - beta, with alpha and beta that m decides. MCDP is at most t where X passes within t of beta in
# every window, from 0 to m, moving up by no more than the unknown at each score. Any two windows say how
# large t must be: half of how far beta falls from the first to the second, or rises beyond the unknown
# between them. What falls gets less with m and what rises gets more, so the best m is found by halving.


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


@dataclass(frozen=True, kw_only=True)
class GroupBounds:
    """What MCDP(epsilon) can be, whatever the unknown groups are.

    Attributes
    ----------
    epsilon : float
        The half-width of the windows.
    estimate : float
        MCDP of the people whose group is known; the bounds need not hold it, since it leaves the others out.
    low, high : float
        The smallest and the largest MCDP over all ways to assign the others.
    low_exact, high_exact : bool
        Whether an assignment attains it; else it is a bound that holds, and the true one may lie inside.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", None]
    >>> bounds = lp.unknown_groups(None, scores, sensitive_features=sex).bounds[0]
    >>> bounds.low, round(bounds.high, 3), bounds.high_exact
    (0.5, 0.667, True)
    """

    epsilon: float
    estimate: float
    low: float
    high: float
    low_exact: bool
    high_exact: bool

    @property
    def sentence(self) -> str:
        """The bounds in words."""
        ends = f"between {percent(self.low)} and {percent(self.high)}"
        if not (self.low_exact and self.high_exact):
            ends = f"at least {percent(self.low)} and at most {percent(self.high)}"
        return f"Whatever the unknown groups are, MCDP({self.epsilon:g}) is {ends}."


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """How few groups would have to be other than they are known, or unknown, to change a verdict on MCDP(0).

    Attributes
    ----------
    max_mcdp : float
        The most that MCDP(0) may be.
    passes : bool
        Whether the people whose group is known are within it.
    wrong, known : int or None, int
        The fewest people in the wrong one of two groups that would change the verdict, and how many people
        are known; None where there is no such number, or where there are more than two groups.
    added, unknown : int or None, int
        The fewest of the people of unknown group that would change it, in groups that suit and the others
        left out, and how many there are; None where not even all of them would.
    added_exact : bool
        Whether so many are enough; else at least so many are needed.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", None]
    >>> found = lp.unknown_groups(None, scores, sensitive_features=sex).breakdown(0.5)
    >>> found.passes, found.wrong, found.added
    (False, 1, 1)
    """

    max_mcdp: float
    passes: bool
    wrong: int | None
    known: int
    added: int | None
    unknown: int
    added_exact: bool

    @property
    def wrong_share(self) -> float:
        """The share of the known groups that would have to be wrong; NaN where there is no such number."""
        return float("nan") if self.wrong is None else self.wrong / self.known

    @property
    def added_share(self) -> float:
        """The share of the unknown groups that would change the verdict; NaN where none would."""
        return float("nan") if self.added is None else self.added / max(self.unknown, 1)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The breakdown point in words."""
        verdict = "within" if self.passes else "above"
        found = []
        if self.unknown:
            how = f"not even all {self.unknown:,} unknown groups could change that"
            if self.added is not None:
                needed = (
                    f"{self.added:,} of the {self.unknown:,} unknown groups ({percent(self.added_share)})"
                )
                how = f"{needed} could change that"
                if not self.added_exact:
                    how = f"at least {needed} are needed to change that"
            found.append(f"MCDP(0) of the known groups is {verdict} {percent(self.max_mcdp)}; {how}.")
        if self.wrong is not None:
            wrong = f"{self.wrong:,} wrong ones of the {self.known:,} known groups"
            found.append(f"The verdict could change with {wrong} ({percent(self.wrong_share)}).")
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class UnknownGroups:
    """What is known of MCDP where some people's group is not.

    Attributes
    ----------
    unknown, known : int
        How many of the people compared have no group, and how many have one.
    bounds : tuple of GroupBounds
        The bounds of MCDP at each epsilon.
    sides : tuple
        The people of each pair and label, for the breakdown point; no part of what is written out.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", None]
    >>> found = lp.unknown_groups(None, scores, sensitive_features=sex, epsilon=[0, 0.1])
    >>> found.unknown, [(bounds.epsilon, round(bounds.high, 3)) for bounds in found.bounds]
    (1, [(0.0, 0.667), (0.1, 0.333)])
    """

    unknown: int
    known: int
    bounds: tuple[GroupBounds, ...]
    sides: tuple[tuple[Unassigned, ...], ...] = field(repr=False, compare=False)

    def breakdown(self, max_mcdp: float) -> Breakdown:
        """Return how few groups, wrong or unknown, could change the verdict on MCDP(0).

        Parameters
        ----------
        max_mcdp : float
            The most that MCDP(0) may be, a fraction in [0, 1].

        Returns
        -------
        Breakdown
        """
        max_mcdp = as_fraction(max_mcdp, "max_mcdp")
        pairs = [pair for stratum in self.sides for pair in stratum]
        if not all(pair.whole for pair in pairs):
            raise ValueError("the breakdown point needs rows that all weigh 1")
        two = all(len(stratum) == 1 for stratum in self.sides)
        passes = all(within_bound(_gap_of(pair), max_mcdp) for pair in pairs)
        added: Moves | None
        if passes:
            wrong = _least([wrong_to_exceed(pair, max_mcdp) for pair in pairs]) if two else None
            fewest = _least([added_to_exceed(pair, max_mcdp) for pair in pairs])
            added = None if fewest is None else Moves(fewest, exact=True)
        else:
            # Every label whose people are above the bound must come within it; of its pairs, the worst.
            above = [
                [pair for pair in stratum if not within_bound(_gap_of(pair), max_mcdp)]
                for stratum in self.sides
            ]
            wrong = _sum([wrong_to_keep(pair, max_mcdp) for each in above for pair in each]) if two else None
            added = _worst_added([[added_to_keep(pair, max_mcdp) for pair in each] for each in above if each])
        return Breakdown(
            max_mcdp=max_mcdp,
            passes=passes,
            wrong=wrong,
            known=self.known,
            added=None if added is None else added.people,
            unknown=self.unknown,
            added_exact=added is None or added.exact,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the bounds as plain dictionaries and lists."""
        return {
            "unknown": self.unknown,
            "known": self.known,
            "bounds": [vars(bounds) | {"sentence": bounds.sentence} for bounds in self.bounds],
        }


def unknown_groups(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    epsilon: float | Sequence[float] | FloatArray = 0.0,
    missing_values: str | Sequence[Any] = (),
    criterion: Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
) -> UnknownGroups:
    """The smallest and the largest MCDP(epsilon) over all ways to assign people whose group is not known.

    Nothing is assumed of the people without a group. Between two groups, and where every row weighs 1, both
    ends are exact at epsilon 0. At other epsilons they are for few rows; for many, the largest is exact
    unless so many people share a score that the gap could jump from one sign to the other there, and the
    smallest is a bound from any two windows. With weights parts of a row are assigned, and with more than two
    groups an unknown person may be of neither of a pair: the smallest is a bound then, and with weights the
    largest too at epsilons above 0.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1; None where the criterion does not need them. Predictions or ScoreCounts stand for all
        of the arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row, None or NaN where it is not known.
    epsilon : float or sequence of float
        The half-width of the windows, as a fraction of the score range.
    missing_values : str or sequence
        What stands for no group, beside None and NaN.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    sample_weight : array-like, optional
        Weights that are not negative.
    score_range : tuple of float
        The lowest and the highest score there can be.
    min_group_size : int
        A group with fewer rows among the people compared is an error.

    Returns
    -------
    UnknownGroups
        The bounds at each epsilon, and the breakdown point of a bound.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", None]
    >>> print(lp.unknown_groups(None, scores, sensitive_features=sex).bounds[0].sentence)
    Whatever the unknown groups are, MCDP(0) is between 50.00% and 66.67%.
    """
    comparison = Comparison(criterion, min_group_size=min_group_size)
    blanks = Blanks(as_texts(missing_values, "missing_values"), kept=True)
    arrays: dict[str, Any] = {"sample_weight": sample_weight, "score_range": score_range, "blanks": blanks}
    counts = input_counts(comparison, y_true, y_score, sensitive_features, **arrays)
    return bounds_of(counts, comparison, np.atleast_1d(as_epsilons(epsilon)))


def bounds_of(counts: ScoreCounts, comparison: Comparison, epsilons: FloatArray) -> UnknownGroups:
    """The bounds of counts in which the people without a group are `NO_GROUP`."""
    if counts.rank_error > 0.0:
        raise ValueError(
            "what unknown groups could change needs counts of every score, which these are not; "
            "there are too many distinct scores: round them"
        )
    known = counts.without([NO_GROUP])
    curves = gap_curves(known, comparison)
    estimates = np.max([curve.mcdp_at(epsilons) for curve in curves], axis=0)
    sides, people = [], [0, 0]
    for label, stratum in strata_of(known, comparison).items():
        unknown = Atoms.join(
            found for (group, of), found in counts.atoms.items() if group is NO_GROUP and label in (None, of)
        )
        options: dict[str, Any] = {"score_range": counts.score_range, "resolution": counts.resolution}
        pairs = combinations(stratum.values(), 2)
        neither = len(stratum) > 2
        sides.append(tuple(Unassigned.of((a, b, unknown), neither=neither, **options) for a, b in pairs))
        people[0] += unknown.size
        people[1] += sum(atoms.size for atoms in stratum.values())
    bounds = []
    for epsilon, estimate in zip(epsilons.tolist(), estimates.tolist(), strict=True):
        ends = [_ends(pair, epsilon) for stratum in sides for pair in stratum]
        lows, highs = zip(*ends, strict=True)
        low, high = max(end.value for end in lows), max(highs)
        bounds.append(
            GroupBounds(
                epsilon=epsilon,
                estimate=estimate,
                low=low,
                high=high.value,
                low_exact=all(end.exact for end in lows),  # a bound may hide a pair that is worse
                high_exact=high.exact,
            )
        )
    return UnknownGroups(unknown=people[0], known=people[1], bounds=tuple(bounds), sides=tuple(sides))


def _ends(sides: Unassigned, epsilon: float) -> tuple[End, End]:
    """The smallest and the largest MCDP of a pair."""
    if epsilon > 0.0 and is_small(sides):
        return every_assignment(sides, epsilon)
    return smallest_mcdp(sides, epsilon), largest_mcdp(sides, epsilon)


def _gap_of(sides: Unassigned) -> float:
    """MCDP(0) of the people whose group is known."""
    return float(np.abs(sides.first / sides.first[-1] - sides.second / sides.second[-1]).max())


def _least(moves: Sequence[int | None]) -> int | None:
    return min((each for each in moves if each is not None), default=None)


def _sum(moves: Sequence[int | None]) -> int | None:
    found = [each for each in moves if each is not None]
    return sum(found) if len(found) == len(moves) else None


def _worst_added(strata: Sequence[Sequence[Moves | None]]) -> Moves | None:
    """Of each label the pair that takes most, and of all labels together."""
    found = [[each for each in stratum if each is not None] for stratum in strata]
    if sum(map(len, found)) < sum(map(len, strata)):
        return None
    exact = all(each.exact for stratum in found for each in stratum)
    return Moves(sum(max(each.people for each in stratum) for stratum in found), exact)
