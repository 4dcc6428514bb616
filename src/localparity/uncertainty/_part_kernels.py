"""The parts that cells are halved into: how many people of each group came to lie in each.

Compiled by numba on first use. Of the people of a group in a part, a hypergeometric number lies in the first
half, as if everybody were dealt out one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from localparity._compiled import compiled
from localparity._types import FloatArray, IntArray

# The columns of parts: the places of the first score and behind the last one, the first of its halves (the
# other follows; -1 where it was not parted), and then how many people of each group, and of everyone, lie
# before the part, and how many inside.
BEGIN, END, HALF, BELOW = 0, 1, 2, 3

_ROOM = 1024
"""Parts for which there is room from the start, beside one half for each cell."""


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
def parts_of(dealt: IntArray, first: IntArray) -> IntArray:
    """The cells as parts, with room for more."""
    n_rows, n_cells = dealt.shape
    parts = np.empty((2 * n_cells + _ROOM, BELOW + 2 * n_rows), np.int64)
    below = np.zeros(n_rows, np.int64)
    for cell in range(n_cells):
        parts[cell, BEGIN], parts[cell, END], parts[cell, HALF] = first[cell], first[cell + 1], -1
        for row in range(n_rows):
            parts[cell, BELOW + row] = below[row]
            parts[cell, BELOW + n_rows + row] = dealt[row, cell]
            below[row] += dealt[row, cell]
    return parts


@compiled
def hypergeometric(
    good: int, bad: int, sample: int, log_factorials: FloatArray, rng: np.random.Generator
) -> int:
    """How many of a sample are good: likely numbers are tried first, from the most likely one on."""
    low, high = max(0, sample - bad), min(good, sample)
    mode = (sample + 1) * (good + 1) // (good + bad + 2)
    up = down = mode
    of = log_factorials
    chance = np.exp(
        (of[good] - of[mode] - of[good - mode])
        + (of[bad] - of[sample - mode] - of[bad - sample + mode])
        - (of[good + bad] - of[sample] - of[good + bad - sample])
    )
    left = rng.random() - chance
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
def halve(
    parts: IntArray,
    part: int,
    used: int,
    n_groups: int,
    people: IntArray,
    log_factorials: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Part a part: its halves are the next two behind those that are used."""
    rows = (parts.shape[1] - BELOW) // 2
    below, inside = BELOW, BELOW + rows
    begin, end = parts[part, BEGIN], parts[part, END]
    middle = (begin + end) // 2
    parts[part, HALF] = used
    parts[used, BEGIN], parts[used, END], parts[used, HALF] = begin, middle, -1
    parts[used + 1, BEGIN], parts[used + 1, END], parts[used + 1, HALF] = middle, end, -1
    left = 0
    for group in range(n_groups):
        left += parts[part, inside + group]
    # Where nobody shares a score, nothing has to be fetched from a long array.
    sample = middle - begin if left == end - begin else people[middle] - people[begin]
    if rows > n_groups:
        parts[used, inside + n_groups] = sample
    for group in range(n_groups):
        # Of those left, how many of the group are among those who go to the first half.
        good = parts[part, inside + group]
        drawn = sample
        if group < n_groups - 1:
            drawn = hypergeometric(good, left - good, sample, log_factorials, rng)
        parts[used, inside + group] = drawn
        sample -= drawn
        left -= good
    for row in range(rows):
        parts[used, below + row] = parts[part, below + row]
        parts[used + 1, below + row] = parts[part, below + row] + parts[used, inside + row]
        parts[used + 1, inside + row] = parts[part, inside + row] - parts[used, inside + row]


@compiled
def gap_before(parts: IntArray, part: int, pair: Pair) -> float:
    """The absolute gap where a part begins."""
    below = parts[part]
    gap = below[BELOW + pair.first] * pair.one_first - below[BELOW + pair.second] * pair.one_second
    return abs(float(gap))


@compiled
def bounds_inside(parts: IntArray, part: int, pair: Pair) -> tuple[float, float]:
    """The least and the most that the absolute gap is inside a part."""
    inside = BELOW + (parts.shape[1] - BELOW) // 2
    first, second = parts[part, BELOW + pair.first], parts[part, BELOW + pair.second]
    highest = (first + parts[part, inside + pair.first]) * pair.one_first - second * pair.one_second
    lowest = first * pair.one_first - (second + parts[part, inside + pair.second]) * pair.one_second
    return max(0.0, lowest, -highest), max(highest, -lowest)
