"""The smallest and the largest MCDP over all assignments of few people, window by window.

The numbers of the unknown up to a knot that may have joined the first group are the bits of an integer: those
that the last knot leaves, spread by the people at this one, of which some make the gap large, or small,
enough. No rounding, no sign and no tie is taken for granted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from localparity._types import BoolArray, FloatArray, IntArray
from localparity.metrics._assignments import End, Unassigned
from localparity.metrics._gap_curves import gap_between

_MOST_WORK = 20_000
_ROUNDING = 1e-12


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
