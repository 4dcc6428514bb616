"""How few people, in the wrong group or without one, could change whether MCDP(0) is within a bound.

A threshold and a direction say who must move for the gap there to grow: people at or below it into the first
group, people above it into the second. The best way to share a number of moves between the two is found at an
end, or by thirds where the gap is concave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from localparity._types import BoolArray, FloatArray, IntArray
from localparity.metrics._assignments import Unassigned
from localparity.metrics._within import allowed, within_bound

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
