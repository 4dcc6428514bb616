"""The parts that cells are halved into, by the cuts at their ends: how many people of each group lie before.

Compiled by numba on first use. Of the people of a group in a part, a hypergeometric number lies in the first
half, as if everybody were dealt out one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from localparity._compiled import compiled
from localparity._types import FloatArray, IntArray

# The columns of cuts: the place of the first score behind it, the cuts in the middle of the parts that end
# and begin with it (-1 where there is none), and then how many people of each group, and of everyone, lie
# before. A part's middle is noted at the later of its two cuts, which was made together with the part.
PLACE, _MIDDLE_BEFORE, _MIDDLE_BEHIND, _BELOW = 0, 1, 2, 3

_ROOM = 1024
"""Cuts for which there is room from the start, beside one for every second cell."""


class CellArrays(NamedTuple):
    """The cells of a pool.

    Attributes
    ----------
    starts, knots : ndarray
        Where each cell begins, which is where the one before ends, and where it ends.
    first : ndarray
        The place of each cell's first distinct score, and behind the last cell how many scores there are.
    scores : ndarray
        The distinct scores, the last of each cell its knot.
    people : ndarray
        How many people are before each score, and behind the last how many there are.
    log_factorials : ndarray
        Up to the people of the largest cell that can be parted.
    n_groups : int
        How many groups the people are dealt to.
    """

    starts: FloatArray
    knots: FloatArray
    first: IntArray
    scores: FloatArray
    people: IntArray
    log_factorials: FloatArray
    n_groups: int


class Pair(NamedTuple):
    """The columns of a pair's two sides, and what one person weighs in each."""

    first: int
    second: int
    one_first: float
    one_second: float


@compiled
def cuts_of(dealt: IntArray, first: IntArray) -> IntArray:
    """The cuts between the cells, with room for more."""
    n_rows, n_cells = dealt.shape
    cuts = np.zeros((3 * n_cells // 2 + 1 + _ROOM, _BELOW + n_rows), np.int64)
    for cut in range(n_cells + 1):
        cuts[cut, PLACE], cuts[cut, _MIDDLE_BEFORE], cuts[cut, _MIDDLE_BEHIND] = first[cut], -1, -1
        for row in range(n_rows if cut else 0):
            cuts[cut, _BELOW + row] = cuts[cut - 1, _BELOW + row] + dealt[row, cut - 1]
    return cuts


@compiled
def _from_mode(uniform: float, chance: float, mode: int, good: int, bad: int, sample: int) -> int:
    """The hypergeometric number that a uniform one stands for: likely ones come first, from the mode on."""
    low, high = max(0, sample - bad), min(good, sample)
    left = uniform - chance
    up = down = mode
    chance_up = chance_down = chance
    while left >= 0.0 and (up < high or down > low):
        if up < high:
            chance_up *= float((good - up) * (sample - up)) / float((up + 1) * (bad - sample + up + 1))
            up += 1
            left -= chance_up
            if left < 0.0:
                return up
        if down > low:
            chance_down *= float(down * (bad - sample + down)) / float(
                (good - down + 1) * (sample - down + 1)
            )
            down -= 1
            left -= chance_down
            if left < 0.0:
                return down
    return mode


@compiled
def hypergeometric(good: int, bad: int, sample: int, log_factorials: FloatArray, uniform: float) -> int:
    """How many of a sample are good, as a uniform number decides."""
    mode = (sample + 1) * (good + 1) // (good + bad + 2)
    of = log_factorials
    chance = np.exp(
        (of[good] - of[mode] - of[good - mode])
        + (of[bad] - of[sample - mode] - of[bad - sample + mode])
        - (of[good + bad] - of[sample] - of[good + bad - sample])
    )
    return _from_mode(uniform, chance, mode, good, bad, sample)


@compiled
def halve(
    parts: IntArray, cuts: IntArray, used: int, cells: CellArrays, rng: np.random.Generator
) -> tuple[IntArray, int]:
    """The cut in the middle of each part, made where there is none yet, and how many cuts there are then."""
    people, log_factorials, end_groups = cells.people, cells.log_factorials, _BELOW + cells.n_groups
    middles = np.empty(len(parts), np.int64)
    for number in range(len(parts)):
        left, right = parts[number, 0], parts[number, 1]
        later, column = max(left, right), _MIDDLE_BEFORE if right > left else _MIDDLE_BEHIND
        middles[number] = cuts[later, column]
        if middles[number] >= 0:
            continue
        middles[number] = cuts[later, column] = used
        begin, end = cuts[left, PLACE], cuts[right, PLACE]
        middle = (begin + end) // 2
        cuts[used, PLACE], cuts[used, _MIDDLE_BEFORE], cuts[used, _MIDDLE_BEHIND] = middle, -1, -1
        among = 0
        for group in range(_BELOW, end_groups):
            among += cuts[right, group] - cuts[left, group]
        # Where nobody shares a score, nothing has to be fetched from a long array.
        sample = middle - begin if among == end - begin else people[middle] - people[begin]
        if cuts.shape[1] > end_groups:
            cuts[used, end_groups] = cuts[left, end_groups] + sample
        for group in range(_BELOW, end_groups):
            # Of those left, how many of the group are among those who go to the first half.
            good = cuts[right, group] - cuts[left, group]
            drawn = sample
            if group + 1 < end_groups:
                drawn = hypergeometric(good, among - good, sample, log_factorials, rng.random())
            cuts[used, group] = cuts[left, group] + drawn
            sample -= drawn
            among -= good
        used += 1
    return middles, used


@compiled
def shares_below(cuts: IntArray, cut: int, pair: Pair) -> tuple[float, float]:
    """The share of each side of a pair that lies before a cut."""
    first, second = cuts[cut, _BELOW + pair.first], cuts[cut, _BELOW + pair.second]
    return first * pair.one_first, second * pair.one_second


@compiled
def gap_at(cuts: IntArray, cut: int, pair: Pair) -> float:
    """The absolute gap at a cut."""
    first, second = shares_below(cuts, cut, pair)
    return abs(first - second)


@compiled
def bounds_inside(cuts: IntArray, part: tuple[int, int], pair: Pair) -> tuple[float, float]:
    """The least and the most that the absolute gap is inside a part."""
    first, second = shares_below(cuts, part[0], pair)
    first_behind, second_behind = shares_below(cuts, part[1], pair)
    highest, lowest = first_behind - second, first - second_behind
    return max(0.0, lowest, -highest), max(highest, -lowest)
