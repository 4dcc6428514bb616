"""Compiled loops: MCDP of people dealt out by cells and of two models on the same people; the worst split."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled, compiled_fast
from localparity._types import FloatArray, IntArray
from localparity.metrics._kernels import highest_runs, raise_highest_runs

# MCDP of people who were dealt out by cells. At the ends of a cell the gap is known, and inside it is bounded
# by how many people of each group came to lie there. The cells of windows that may matter are halved, again
# and again; of the people of a group in a part, a hypergeometric number lies in the first half. What is
# measured is what dealing everybody one by one would give.

# The columns of cuts: the place of the first score behind it, the cuts in the middle of the parts that end
# and begin with it (-1 where there is none), and then how many people of each group, and of everyone, lie
# before. A part's middle is noted at the later of its two cuts, which was made together with the part.
PLACE, _MIDDLE_BEFORE, _MIDDLE_BEHIND, _BELOW = 0, 1, 2, 3

_ROOM = 1024  # cuts for which there is room from the start, beside one for every second cell


class CellArrays(NamedTuple):
    """The cells of a pool."""

    starts: FloatArray  # where each cell begins, which is where the one before ends, and where it ends
    knots: FloatArray
    # The place of each cell's first distinct score, and behind the last cell how many scores there are
    first: IntArray
    scores: FloatArray  # the distinct scores, the last of each cell its knot
    people: IntArray  # how many people are before each score, and behind the last how many there are
    log_factorials: FloatArray  # up to the people of the largest cell that can be parted
    n_groups: int  # how many groups the people are dealt to


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


# The columns of steps: where one begins, the bounds of the absolute gap from there on, and the cuts at the
# ends of the part whose inside it is, -1 where the gap is known or known to be high enough. Stretches of
# steps end with a gap of 0.
_AT, _LOWER, _UPPER, _LEFT, _RIGHT = 0, 1, 2, 3, 4

_KNOWN = -1, -1

# By how much less than it may be MCDP is looked for at first, in standard deviations of a cell's gap.
_SLACK = 0.5


class WindowArrays(NamedTuple):
    """The cells that windows hold, at each half-width (rows) from the start of each cell (columns)."""

    half_widths: FloatArray  # the half-width that a run must exceed
    ends: IntArray  # how many knots are at or below the end of the window
    levels: int  # how many levels of minima over a power of two knots the windows need
    # Where the two powers of two begin that make up the window's knots, in a flat table of all levels
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
    minima = np.empty(one.shape)
    for row in range(one.shape[0]):
        for place in range(one.shape[1]):
            minima[row, place] = min(table[one[row, place]], table[other[row, place]], most[place])
    return minima


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
    stretches = np.empty((above.size // 2 + 1, 2), np.int64)
    number = -1
    for cell in range(above.size):
        if above[cell] > floor:
            if number < 0 or cell > stretches[number, 1]:
                number += 1
                stretches[number, 0] = cell
            # A window from inside the cell may end as late as one from the cell's end.
            stretches[number, 1] = (
                above.size if cell + 1 == above.size else min(ends[cell + 1] + 1, above.size)
            )
    return stretches[: number + 1]


@compiled
def _append(
    steps: FloatArray, count: int, at: float, bounds: tuple[float, float], part: tuple[int, int], most: float
) -> int:
    """Write the next step, unless it and the last one are as high as MCDP can be; how many there are now."""
    lower, upper = bounds
    left, right = part
    if lower >= most:
        if count and steps[count - 1, _LOWER] == most:
            return count
        lower, upper, left = most, most, -1
    steps[count, _AT], steps[count, _LOWER], steps[count, _UPPER] = at, lower, upper
    steps[count, _LEFT], steps[count, _RIGHT] = left, right
    return count + 1


@compiled
def _steps_of(stretches: IntArray, cuts: IntArray, pair: Pair, cells: CellArrays, most: float) -> FloatArray:
    """The steps of some stretches of cells."""
    starts, knots, scores = cells.starts, cells.knots, cells.scores
    lengths = stretches[:, 1] - stretches[:, 0]
    steps = np.empty((2 * lengths.sum() + len(stretches), 5))
    count = 0
    for begin, end in stretches:
        for cell in range(begin, end):
            gap = gap_at(cuts, cell, pair)
            count = _append(steps, count, starts[cell], (gap, gap), _KNOWN, most)
            if cuts[cell + 1, PLACE] - cuts[cell, PLACE] > 1:
                part = cell, cell + 1
                at, bounds = scores[cuts[cell, PLACE]], bounds_inside(cuts, part, pair)
                count = _append(steps, count, at, bounds, part, most)
        count = _append(steps, count, knots[end - 1], (0.0, 0.0), _KNOWN, most)
    return steps[:count]


@compiled
def _half_width(start: float, end: float) -> float:
    """The half-width of the widest window that a run carries; from the bottom of the range on, all of it."""
    return 0.5 * (end - start) if start > 0.0 else end


@compiled
def _highest_run(steps: FloatArray, bound: int, half_width: float, floor: float) -> float:
    """The highest of the runs that carry a window, by one of the two bounds; the floor if none is higher."""
    found = np.array([floor])
    reach = np.array([half_width if half_width > 0.0 else -1.0])  # any run carries a window of no width
    raise_highest_runs(steps[:, _AT], steps[:, bound], reach, found)
    return float(found[0])


@compiled
def _kept(steps: FloatArray, between: tuple[float, float], half_width: float) -> tuple[FloatArray, IntArray]:
    """The steps that MCDP, which lies between two numbers, depends on, and the parts among them."""
    least, most = between
    parts = np.empty((len(steps), 2), np.int64)
    n_steps = n_parts = start = 0
    while start < len(steps):
        end = start
        while steps[end, _UPPER] > least:
            end += 1
        if end > start and (
            half_width == 0.0 or _half_width(steps[start, _AT], steps[end, _AT]) > half_width
        ):
            for step in range(start, end):
                for column in range(5):
                    steps[n_steps, column] = steps[step, column]
                if steps[n_steps, _LOWER] >= most:
                    steps[n_steps, _LEFT] = -1.0
                elif steps[n_steps, _LEFT] >= 0.0:
                    parts[n_parts, 0], parts[n_parts, 1] = steps[n_steps, _LEFT], steps[n_steps, _RIGHT]
                    n_parts += 1
                n_steps += 1
            steps[n_steps, _AT], steps[n_steps, _LOWER], steps[n_steps, _UPPER] = steps[end, _AT], 0.0, 0.0
            steps[n_steps, _LEFT] = -1.0
            n_steps += 1
        start = end + 1
    return steps[:n_steps], parts[:n_parts]


@compiled
def _refined(
    steps: FloatArray, middles: IntArray, cuts: IntArray, pair: Pair, scores: FloatArray, most: float
) -> FloatArray:
    """The steps once more, with those inside of parts known at the middle of the part."""
    new = np.empty((len(steps) + 2 * middles.size, 5))
    count = number = 0
    for step in range(len(steps)):
        at, bounds = steps[step, _AT], (steps[step, _LOWER], steps[step, _UPPER])
        left, right = int(steps[step, _LEFT]), int(steps[step, _RIGHT])
        if left < 0:
            count = _append(new, count, at, bounds, _KNOWN, most)
            continue
        middle = middles[number]
        number += 1
        place, gap = cuts[middle, PLACE], gap_at(cuts, middle, pair)
        if place - cuts[left, PLACE] > 1:
            part = left, middle
            count = _append(new, count, at, bounds_inside(cuts, part, pair), part, most)
        count = _append(new, count, scores[place - 1], (gap, gap), _KNOWN, most)
        if cuts[right, PLACE] - place > 1:
            part = middle, right
            count = _append(new, count, scores[place], bounds_inside(cuts, part, pair), part, most)
    return new[:count]


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
    half_width, ends = window
    # The largest gap at a knot is floor enough where any run carries a window.
    slack = np.inf if half_width == 0.0 else _SLACK * np.sqrt((pair.one_first + pair.one_second) / above.size)
    while ceiling > found:
        floor = max(found, ceiling - slack)
        steps = _steps_of(_stretches(above, ends, floor), cuts, pair, cells, ceiling)
        least = floor
        while True:
            most = _highest_run(steps, _UPPER, half_width, least)
            least = _highest_run(steps, _LOWER, half_width, least)
            if most <= least:
                break
            steps, parts = _kept(steps, (least, most), half_width)
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
    """What counts as no gap, since one that changes its sign is hardly ever 0.

    It is a thousandth of its standard deviation, or 0 where any gap is larger.
    """
    negligible = 1e-3 * np.sqrt(pair.one_first + pair.one_second)
    return negligible if negligible > pair.one_first * pair.one_second else 0.0


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
    """
    first, second, scale = pairs
    one = 1.0 / dealt.sum(axis=1)
    cuts, used = cuts_of(dealt, cells.first), dealt.shape[1] + 1
    worst, scaled = np.zeros(windows.half_widths.size), np.zeros(windows.half_widths.size)
    for place in range(first.size):
        pair = Pair(first[place], second[place], one[first[place]], one[second[place]])
        largest, above = _bound_windows(cuts, pair, windows)
        for row in range(windows.half_widths.size):
            floor = max(min(worst[row], scaled[row] / scale[place]), _negligible(pair))
            between = (max(floor, largest) if windows.half_widths[row] == 0.0 else floor, above[row].max())
            window = (windows.half_widths[row], windows.ends[row])
            mcdp, cuts, used = _mcdp(above[row], between, window, cuts, used, pair, cells, rng)
            worst[row], scaled[row] = max(worst[row], mcdp), max(scaled[row], scale[place] * mcdp)
    return worst, scaled


class ScoreArrays(NamedTuple):
    """The scores of both models together, ascending."""

    codes: NDArray[np.int32]  # the group of the person that each score belongs to
    ends: IntArray  # how many scores are at or below each knot
    knots: FloatArray  # the distinct scores, as fractions of the score range


class PairSteps(NamedTuple):
    """What a score of weight 1 adds to the gap of each pair."""

    # (pairs, groups): What one of each group adds, times the weights of the pair's two sides: whole numbers
    # without weights, so that equal gaps are equal floats
    steps: FloatArray
    scale: FloatArray  # one over the product of the weights of each pair's two sides


@compiled
def mcdp_of_models(
    scores: ScoreArrays, models: NDArray[np.uint8], weights: FloatArray, pairs: PairSteps, half_width: float
) -> tuple[float, float]:
    """MCDP of the worst pair under each of two models, given which of them, 0 or 1, each score is of."""
    worst = np.zeros(2)
    gap = np.zeros((2, scores.knots.size))
    half_widths = np.array([half_width])
    for pair in range(pairs.scale.size):
        so_far = np.zeros(2)
        largest = np.zeros(2)
        place = 0
        # The gap is 0 at the last knot.
        for knot in range(scores.knots.size - 1):
            while place < scores.ends[knot]:
                so_far[models[place]] += pairs.steps[pair, scores.codes[place]] * weights[place]
                place += 1
            for model in range(2):
                gap[model, knot] = so_far[model] * pairs.scale[pair]
                largest[model] = max(largest[model], abs(gap[model, knot]))
        for model in range(2):
            if half_width > 0.0 and largest[model] > worst[model]:
                largest[model] = highest_runs(scores.knots, gap[model], half_widths)[0]
            worst[model] = max(worst[model], largest[model])
    return worst[0], worst[1]


# The worst gap over all splits of an ordered sensitive feature, without a pass over the scores for each. Of n
# people let the t lowest in the feature be on one side. At a score y, with A(y) of these t people and T(y) of
# all people at or below it, the gap between the sides is (n A(y) - t T(y)) / (t (n - t)), and over its spread
# at parity (n A(y) - t T(y)) / sqrt(n t (n - t)). The numerator is a line in t, of slope -T(y), that rises by
# n at each person of a lower or equal score who comes over to the low side. A kinetic tournament keeps the
# highest of these lines: a binary tree over the scores whose nodes know the winner below them and until which
# t it stays so. As t moves on, only nodes whose time has come are looked at again.

_NEVER = np.int64(2**62)


@compiled
def widest_split(
    places: IntArray, totals: IntArray, ends: IntArray, least: int, power: float
) -> tuple[int, float]:
    """The number of people on the low side and the size of the gap at the worst split.

    `places` are the people's places among the distinct scores, in the order of the feature; `totals` says how
    many people are at or below each score; `ends` are the numbers of people at or below each distinct value
    of the feature that leaves enough above; `least` people must be at or below. With a `power` of one half in
    place of 1, the gap is studentised but for the square root of n.
    """
    size, gap = _worst_of_sign(places, totals, ends, least, power, 1, 0, -1.0)
    return _worst_of_sign(places, totals, ends, least, power, -1, size, gap)


@compiled
def _worst_of_sign(
    places: IntArray,
    totals: IntArray,
    ends: IntArray,
    least: int,
    power: float,
    sign: int,
    best_size: int,
    best: float,
) -> tuple[int, float]:
    """Of gaps of one sign, the worst that exceeds the best so far.

    `most` bounds the highest line from above, since a person who comes over lifts no line by more than those
    above, or with the other sign at or below, the score. While that rules a worse gap out, the tree waits,
    and people who have come over only mark the nodes above them.
    """
    people = places.size
    leaves = 1
    while leaves < totals.size:
        leaves *= 2
    tree = np.zeros((4, 2 * leaves), np.int64)
    rise, height, slope, expiry = tree
    height[leaves + totals.size :] = -_NEVER
    slope[leaves : leaves + totals.size] = -sign * totals
    expiry[leaves:] = _NEVER
    stale = np.empty(leaves, np.int64)
    size = 0
    most = 0
    for end in ends:
        while size < end:
            place = places[size]
            most += people - totals[place] if sign > 0 else totals[place]
            node = leaves + place
            rise[node] += sign * people
            height[node] = rise[node]
            while node > 1 and expiry[node >> 1] >= 0:
                node >>= 1
                expiry[node] = -1
            size += 1
        scale = (float(end) * float(people - end)) ** power
        if end < least or float(most) <= best * scale:
            continue
        _catch_up(end, stale, rise, height, slope, expiry)
        most = height[1] + slope[1] * end
        if float(most) / scale > best:
            best_size = end
            best = float(most) / scale
    return best_size, best


@compiled
def _catch_up(
    now: int, stale: IntArray, rise: IntArray, height: IntArray, slope: IntArray, expiry: IntArray
) -> None:
    """Decide anew, from the leaves up, wherever people have come over or the time has come."""
    count = at = 0
    if expiry[1] <= now:
        stale[0] = count = 1
    while at < count:
        for child in (2 * stale[at], 2 * stale[at] + 1):
            if expiry[child] <= now:
                stale[count] = child
                count += 1
        at += 1
    for at in range(count - 1, -1, -1):
        _decide(stale[at], now, rise, height, slope, expiry)


@compiled
def _decide(node: int, now: int, rise: IntArray, height: IntArray, slope: IntArray, expiry: IntArray) -> None:
    """The higher of two lines now, and until when nothing below can change that.

    Heights count from the left end of a node's leaves; all that lie to the right of a leaf rise with it.
    """
    left, right = 2 * node, 2 * node + 1
    right_height = rise[left] + height[right]
    steeper = slope[left] - slope[right]
    ahead = height[left] - right_height + steeper * now
    if ahead > 0 or (ahead == 0 and steeper >= 0):
        height[node], slope[node] = height[left], slope[left]
    else:
        height[node], slope[node] = right_height, slope[right]
        ahead = -ahead
        steeper = -steeper
    rise[node] = rise[left] + rise[right]
    until = min(expiry[left], expiry[right])
    if steeper < 0:
        until = min(until, now + ahead // -steeper + 1)
    expiry[node] = until
