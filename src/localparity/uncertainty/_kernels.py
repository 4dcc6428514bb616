"""MCDP of people who were dealt out by cells: bounded everywhere, and refined where that does not settle it.

Compiled by numba on first use. At the ends of a cell the gap is known, and inside it is bounded by how many
people of each group came to lie there. The cells of windows that may matter are parted in two, again and
again. What is measured is what dealing everybody one by one would give.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled, compiled_fast
from localparity._types import FloatArray, IntArray
from localparity.uncertainty._part_kernels import (
    PLACE,
    CellArrays,
    Pair,
    bounds_inside,
    cuts_of,
    gap_at,
    halve,
)

# The columns of steps: where one begins, the bounds of the absolute gap from there on, and the cuts at the
# ends of the part whose inside it is, -1 where the gap is known or known to be high enough. Stretches of
# steps end with a gap of 0.
_AT, _LOWER, _UPPER, _LEFT, _RIGHT = 0, 1, 2, 3, 4

_KNOWN = -1, -1

_SLACK = 0.5
"""By how much less than it may be MCDP is looked for at first, in standard deviations of a cell's gap."""


class WindowArrays(NamedTuple):
    """The cells that windows hold, at each half-width (rows) from the start of each cell (columns).

    Attributes
    ----------
    reach : ndarray
        The half-width that a run must exceed.
    ends : ndarray
        How many knots are at or below the end of the window.
    levels : int
        How many levels of minima over a power of two knots the windows need.
    places : ndarray
        Where the two powers of two begin that make up the window's knots, in a flat table of all levels.
    """

    reach: FloatArray
    ends: IntArray
    levels: int
    places: NDArray[np.int32]


@compiled_fast
def _minima(values: FloatArray, most: FloatArray, windows: WindowArrays) -> FloatArray:
    """The least value of each range of knots, and no more than the most that it may be from its start on."""
    width = values.size
    table = np.empty(windows.levels * width + 1)
    table[:width] = values
    table[-1] = np.inf
    for level in range(1, windows.levels):
        half = 1 << (level - 1)
        below, above = table[(level - 1) * width :], table[(level - 1) * width + half :]
        here = table[level * width :]
        for place in range(width - half):
            here[place] = min(below[place], above[place])
    one, other = windows.places
    found = np.empty(one.shape)
    for row in range(one.shape[0]):
        for place in range(one.shape[1]):
            found[row, place] = min(table[one[row, place]], table[other[row, place]], most[place])
    return found


@compiled
def _bound_windows(cuts: IntArray, pair: Pair, windows: WindowArrays) -> tuple[float, FloatArray]:
    """The largest gap at a knot, and at each half-width what windows from each cell have as least at most."""
    n_cells = windows.ends.shape[1]
    size, most = np.zeros(n_cells + 1), np.empty(n_cells)
    for cut in range(n_cells):
        size[cut] = gap_at(cuts, cut, pair)
    for cell in range(n_cells):
        alone = cuts[cell + 1, PLACE] - cuts[cell, PLACE] == 1
        most[cell] = size[cell] if alone else bounds_inside(cuts, (cell, cell + 1), pair)[1]
    return size.max(), _minima(size[1:], most, windows)


@compiled
def _stretches(above: FloatArray, ends: IntArray, floor: float) -> IntArray:
    """The stretches of cells that windows meet whose least gap may exceed a floor, as their two ends."""
    found = np.empty((above.size // 2 + 1, 2), np.int64)
    number = -1
    for cell in range(above.size):
        if above[cell] > floor:
            if number < 0 or cell > found[number, 1]:
                number += 1
                found[number, 0] = cell
            # A window from inside the cell may end as late as one from the cell's end.
            found[number, 1] = above.size if cell + 1 == above.size else min(ends[cell + 1] + 1, above.size)
    return found[: number + 1]


@compiled
def _append(
    steps: FloatArray, found: int, at: float, bounds: tuple[float, float], part: tuple[int, int], most: float
) -> int:
    """Write the next step, unless it and the last one are as high as MCDP can be; how many there are now."""
    lower, upper = bounds
    left, right = part
    if lower >= most:
        if found and steps[found - 1, _LOWER] == most:
            return found
        lower, upper, left = most, most, -1
    steps[found, _AT], steps[found, _LOWER], steps[found, _UPPER] = at, lower, upper
    steps[found, _LEFT], steps[found, _RIGHT] = left, right
    return found + 1


@compiled
def _steps_of(stretches: IntArray, cuts: IntArray, pair: Pair, cells: CellArrays, most: float) -> FloatArray:
    """The steps of some stretches of cells."""
    starts, knots, scores = cells.starts, cells.knots, cells.scores
    lengths = stretches[:, 1] - stretches[:, 0]
    steps = np.empty((2 * lengths.sum() + len(stretches), 5))
    found = 0
    for begin, end in stretches:
        for cell in range(begin, end):
            gap = gap_at(cuts, cell, pair)
            found = _append(steps, found, starts[cell], (gap, gap), _KNOWN, most)
            if cuts[cell + 1, PLACE] - cuts[cell, PLACE] > 1:
                part = cell, cell + 1
                at, bounds = scores[cuts[cell, PLACE]], bounds_inside(cuts, part, pair)
                found = _append(steps, found, at, bounds, part, most)
        found = _append(steps, found, knots[end - 1], (0.0, 0.0), _KNOWN, most)
    return steps[:found]


@compiled
def _half_width(start: float, end: float) -> float:
    """The half-width of the widest window that a run carries; from the bottom of the range on, all of it."""
    return 0.5 * (end - start) if start > 0.0 else end


@compiled
def _highest_run(steps: FloatArray, bound: int, reach: float, floor: float) -> float:
    """The highest of the runs that carry a window, by one of the two bounds; the floor if none is higher."""
    stack = np.empty((len(steps) + 1, 2))
    stack[0, 1] = floor
    depth = 0
    for step in range(len(steps)):
        at, value = steps[step, _AT], max(steps[step, bound], floor)
        start = at
        while stack[depth, 1] > value:
            start = stack[depth, 0]
            if stack[depth, 1] > floor and (reach == 0.0 or _half_width(start, at) > reach):
                floor = stack[depth, 1]
            depth -= 1
        if value > stack[depth, 1]:
            depth += 1
            stack[depth, 0], stack[depth, 1] = start, value
    return floor


@compiled
def _kept(steps: FloatArray, between: tuple[float, float], reach: float) -> tuple[FloatArray, IntArray]:
    """The steps that MCDP, which lies between two numbers, depends on, and the parts among them."""
    least, most = between
    parts = np.empty((len(steps), 2), np.int64)
    kept = found = start = 0
    while start < len(steps):
        end = start
        while steps[end, _UPPER] > least:
            end += 1
        if end > start and (reach == 0.0 or _half_width(steps[start, _AT], steps[end, _AT]) > reach):
            for step in range(start, end):
                for column in range(5):
                    steps[kept, column] = steps[step, column]
                if steps[kept, _LOWER] >= most:
                    steps[kept, _LEFT] = -1.0
                elif steps[kept, _LEFT] >= 0.0:
                    parts[found, 0], parts[found, 1] = steps[kept, _LEFT], steps[kept, _RIGHT]
                    found += 1
                kept += 1
            steps[kept, _AT], steps[kept, _LOWER], steps[kept, _UPPER] = steps[end, _AT], 0.0, 0.0
            steps[kept, _LEFT] = -1.0
            kept += 1
        start = end + 1
    return steps[:kept], parts[:found]


@compiled
def _refined(
    steps: FloatArray, middles: IntArray, cuts: IntArray, pair: Pair, scores: FloatArray, most: float
) -> FloatArray:
    """The steps once more, with those inside of parts known at the middle of the part."""
    new = np.empty((len(steps) + 2 * middles.size, 5))
    found = number = 0
    for step in range(len(steps)):
        at, bounds = steps[step, _AT], (steps[step, _LOWER], steps[step, _UPPER])
        left, right = int(steps[step, _LEFT]), int(steps[step, _RIGHT])
        if left < 0:
            found = _append(new, found, at, bounds, _KNOWN, most)
            continue
        middle = middles[number]
        number += 1
        place, gap = cuts[middle, PLACE], gap_at(cuts, middle, pair)
        if place - cuts[left, PLACE] > 1:
            part = left, middle
            found = _append(new, found, at, bounds_inside(cuts, part, pair), part, most)
        found = _append(new, found, scores[place - 1], (gap, gap), _KNOWN, most)
        if cuts[right, PLACE] - place > 1:
            part = middle, right
            found = _append(new, found, scores[place], bounds_inside(cuts, part, pair), part, most)
    return new[:found]


@compiled
def _mcdp(
    above: FloatArray,
    between: tuple[float, float],
    window: tuple[float, IntArray],
    cuts: IntArray,
    used: int,
    pair: Pair,
    cells: CellArrays,
    rng: np.random.Generator,
) -> tuple[float, IntArray, int]:
    """MCDP at one half-width, or a floor that it does not exceed, and the cuts with those that were added.

    The most promising windows come first: they have to exceed little less than the most there may be, and as
    soon as some do, the others need not be looked at.
    """
    found, ceiling = between
    reach, ends = window
    # The largest gap at a knot is floor enough where any run carries a window.
    slack = np.inf if reach == 0.0 else _SLACK * np.sqrt((pair.one_first + pair.one_second) / above.size)
    while ceiling > found:
        floor = max(found, ceiling - slack)
        steps = _steps_of(_stretches(above, ends, floor), cuts, pair, cells, ceiling)
        least = floor
        while True:
            most = _highest_run(steps, _UPPER, reach, least)
            least = _highest_run(steps, _LOWER, reach, least)
            if most <= least:
                break
            steps, parts = _kept(steps, (least, most), reach)
            if used + len(parts) > len(cuts):
                larger = np.zeros((2 * (used + len(parts)), cuts.shape[1]), np.int64)
                larger[:used] = cuts[:used]
                cuts = larger
            middles, used = halve(parts, cuts, used, cells, rng)
            steps = _refined(steps, middles, cuts, pair, cells.scores, most)
        if least > floor:
            return least, cuts, used
        ceiling, slack = floor, 2.0 * slack
    return found, cuts, used


@compiled
def _negligible(pair: Pair) -> float:
    """What counts as no gap: a thousandth of its standard deviation, or 0 where any gap is larger.

    Where the sizes of two groups have no common factor, a gap that changes its sign is hardly ever 0, and how
    near it comes to 0 would have to be found out wherever it does.
    """
    found = 1e-3 * np.sqrt(pair.one_first + pair.one_second)
    return found if found > pair.one_first * pair.one_second else 0.0


@compiled
def worst_of_deal(
    dealt: IntArray,
    pairs: tuple[IntArray, IntArray, FloatArray],
    cells: CellArrays,
    windows: WindowArrays,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """The largest MCDP of all pairs at each half-width, plain and scaled, given how many came into each cell.

    `dealt` has a row for each group and, where groups are compared with everyone, a last one for everyone.
    What is negligible is rounded up.
    """
    first, second, scale = pairs
    one = 1.0 / dealt.sum(axis=1)
    cuts, used = cuts_of(dealt, cells.first), dealt.shape[1] + 1
    worst, scaled = np.zeros(windows.reach.size), np.zeros(windows.reach.size)
    for place in range(first.size):
        pair = Pair(first[place], second[place], one[first[place]], one[second[place]])
        largest, above = _bound_windows(cuts, pair, windows)
        for row in range(windows.reach.size):
            floor = max(min(worst[row], scaled[row] / scale[place]), _negligible(pair))
            between = (max(floor, largest) if windows.reach[row] == 0.0 else floor, above[row].max())
            window = (windows.reach[row], windows.ends[row])
            found, cuts, used = _mcdp(above[row], between, window, cuts, used, pair, cells, rng)
            worst[row], scaled[row] = max(worst[row], found), max(scaled[row], scale[place] * found)
    return worst, scaled
