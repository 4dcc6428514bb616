"""Loops over rows and knots."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled, compiled_fast, compiled_inline
from localparity._types import BoolArray, FloatArray, IntArray
from localparity.counts._kernels import CHUNK, add_units, cell_ends, cells_of
from localparity.counts._weights import LIMB_BITS, LIMBS

# A run's half-width falls into one of eight classes an octave, read off the top bits of its float:
# 2**-60 and shorter is class 0, and a half-width of 1 is class 480.
_CLASS_SHIFT = np.int64(49)
_LOWEST_CLASS = (1023 - 60) << 3
_CLASSES = 482

_BLOCK = 64
_FEW_BLOCKS = 8


@compiled
def gap_of_pair(
    scores: NDArray[Any], codes: NDArray[Any], sides: IntArray, knots: FloatArray, gap: FloatArray
) -> int:
    """Write the knots and the signed gap of two groups, from rows sorted by score; returns their number.

    `sides` has, for each code, 1 in the row of a group that it is of, and the groups' sizes at the end. The
    gap's numerator is a whole number, so equal gaps are equal floats. `knots` may be the scores themselves.
    """
    in_first, in_second = sides[0, -1], sides[1, -1]
    size = float(in_first) * float(in_second)
    steps = sides[0] * in_second - sides[1] * in_first
    compared = sides[0] | sides[1]
    found, numerator, last = 0, 0, np.inf
    for row in range(scores.size):
        code = codes[row]
        if not compared[code]:
            continue
        numerator += steps[code]
        score = scores[row] + 0.0  # which turns -0.0 into 0.0
        found += score != last
        last = score
        knots[found - 1] = score
        gap[found - 1] = numerator / size
    return found


@compiled
def largest_gaps(
    scores: NDArray[Any], codes: NDArray[Any], group_of: IntArray, sizes: IntArray, pairs: IntArray
) -> FloatArray:
    """The largest absolute gap of each pair, up to rounding, from rows sorted by score."""
    everyone = sizes.size - 1
    shares = np.zeros(sizes.size)
    largest = np.zeros(len(pairs))
    steps = 1.0 / np.maximum(sizes, 1)
    moved = False
    for row in range(scores.size):
        group = group_of[codes[row]]
        if group >= 0:
            shares[group] += steps[group]
            shares[everyone] += steps[everyone]
            moved = True
        # The last row of a score may be of someone who is not compared.
        if not moved or (row + 1 < scores.size and scores[row + 1] == scores[row]):
            continue
        moved = False
        for pair in range(len(pairs)):
            largest[pair] = max(largest[pair], abs(shares[pairs[pair, 0]] - shares[pairs[pair, 1]]))
    return largest


@compiled
def _class_of(half_width: float, reach: FloatArray) -> int:
    """The class of a run: how many of some half-widths it exceeds or, where there are none, by its length."""
    if reach.size:
        longer = 0
        while longer < reach.size and half_width > reach[longer]:
            longer += 1
        return longer
    bits = np.float64(half_width).view(np.int64)
    return min(max(int(bits >> _CLASS_SHIFT) - _LOWEST_CLASS, 0), _CLASSES - 2)


@compiled_fast
def _ends_in_blocks(values: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """The least and the greatest absolute value of each so many, of fewer at the end with those before."""
    blocks = max(1, values.size // size)
    least, most = np.empty(blocks), np.empty(blocks)
    for block in range(blocks):
        low, high = np.inf, 0.0
        for value in values[block * size : (block + 1) * size if block < blocks - 1 else values.size]:
            low, high = min(low, abs(value)), max(high, abs(value))
        least[block], most[block] = low, high
    return least, most


@compiled
def profile_runs(knots: FloatArray, gap: FloatArray, runs: FloatArray) -> int:
    """Write the half-width, value and start of each run that no run of a longer class is at least as high as.

    `knots` lie in [0, 1] and the gap is 0 at the last of them. Returns how many runs there are. Most of them
    hold a knot with nearly the greatest gap, and are found from there; the others lie before it or after it.
    """
    highest, reach = np.zeros(_CLASSES), np.empty(0)
    stride = 1 + _BLOCK // 2
    peak = stride * int(np.abs(gap[::stride]).argmax())
    found = _runs_around(knots, gap, peak, highest, runs)
    after, before = peak + 1, abs(gap[peak])
    found += _find_runs(knots[:after], gap[:after], 0.0, reach, highest, runs[:, found:])
    found += _find_runs(knots[after:], gap[after:], before, reach, highest, runs[:, found:])
    # What was not dominated when its run ended may be so by now.
    kept = 0
    for run in range(found):
        half_width, value, start = runs[0, run], runs[1, run], runs[2, run]
        if value > highest[_class_of(half_width, reach) + 1]:
            runs[0, kept], runs[1, kept], runs[2, kept] = half_width, value, start
            kept += 1
    return kept


@compiled
def _runs_around(knots: FloatArray, gap: FloatArray, peak: int, highest: FloatArray, runs: FloatArray) -> int:
    """Note the runs that hold a knot, and raise `highest` to them.

    The highest of those that go on to a lower gap on one side or on both is the next one.
    """
    found, no_reach = 0, np.empty(0)
    before, after, value = peak, peak, abs(gap[peak])
    left = right = value
    while value > abs(gap[-1]):  # those that are not higher go on from the last knot
        while left >= value:
            before -= 1
            left = abs(gap[before]) if before >= 0 else 0.0
        while right >= value:
            after += 1
            right = abs(gap[after])
        start, end = knots[before + 1], knots[after]
        half_width = 0.5 * (end - start) if start > 0.0 else end
        runs[0, found], runs[1, found], runs[2, found] = half_width, value, start
        found += 1
        of_class = _class_of(half_width, no_reach)
        while of_class >= 0 and highest[of_class] == 0.0:
            highest[of_class] = value
            of_class -= 1
        value = max(left, right)
    return found


@compiled
def _find_runs(
    knots: FloatArray,
    gap: FloatArray,
    before: float,
    reach: FloatArray,
    highest: FloatArray,
    runs: FloatArray,
) -> int:
    """Raise `highest` to the runs of a gap, and note the half-widths, values and starts of those that did.

    `highest[c]` is the highest run of class c or longer. `before` is the absolute gap before the first knot.
    Runs that go on there, or from the last knot on, are left out. The least gaps of blocks of knots say
    beforehand how high runs are at least, so that few others are noted and few blocks are looked into.
    """
    blocks = max(1, knots.size // _BLOCK)
    seen = np.full(blocks, blocks < _FEW_BLOCKS)
    if blocks < _FEW_BLOCKS:
        return _runs_above(knots, gap, np.empty(blocks), seen, before, reach, highest, runs)
    least, most = _ends_in_blocks(gap, _BLOCK)
    for place in range(reach.size):  # any run at all is longer than a negative half-width
        if reach[place] < 0.0:
            highest[place + 1] = max(highest[place + 1], most.max())
    _runs_above(knots, gap, least, seen, before, reach, highest, runs[:, :0])
    begins = np.append(knots[: blocks * _BLOCK : _BLOCK], knots[-1])
    _see_blocks(begins, least, most, before, reach, highest, seen)
    return _runs_above(knots, gap, least, seen, before, reach, highest, runs)


@compiled
def _may_lead(begin: float, end: float, value: float, reach: FloatArray, highest: FloatArray) -> bool:
    """Whether a run so high, with these ends or nearer ones, may be higher than what is known of its class.

    Runs of one class by length may differ: one that is not as high as another may be longer.
    """
    if value <= highest[-1]:
        return False
    half_width = 0.5 * (end - begin) if begin > 0.0 else end
    return bool(value > highest[_class_of(half_width, reach) + (reach.size == 0)])


@compiled
def _see_blocks(
    begins: FloatArray,
    least: FloatArray,
    most: FloatArray,
    before: float,
    reach: FloatArray,
    highest: FloatArray,
    seen: BoolArray,
) -> None:
    """Note the blocks inside which a run may start or end that no run of a longer class is as high as.

    A run inside a block, or across the border of two, is as high as their greatest gaps at most. Others hold
    whole blocks, and lie between the nearest blocks with a lower gap: a stack holds the least gap of the
    blocks before, each with the last block that has it, where a higher run may start.
    """
    value_of, last_of = np.empty(least.size + 1), np.zeros(least.size + 1, np.int64)
    value_of[0] = before
    depth = 0
    for block in range(least.size):
        end, last = begins[block + 1], max(block - 1, 0)
        if _may_lead(begins[block], end, most[block], reach, highest):
            seen[block] = True
        if _may_lead(begins[last], end, min(most[last], most[block]), reach, highest):
            seen[last] = seen[block] = True
        value_of[0] = min(value_of[0], least[block])
        while value_of[depth] > least[block]:
            first = last_of[depth - 1]
            if _may_lead(begins[first], end, value_of[depth], reach, highest):
                seen[first] = seen[block] = True
            depth -= 1
        if least[block] > value_of[depth]:
            depth += 1
            value_of[depth] = least[block]
        last_of[depth] = block


@compiled
def _runs_above(
    knots: FloatArray,
    gap: FloatArray,
    least: FloatArray,
    seen: BoolArray,
    before: float,
    reach: FloatArray,
    highest: FloatArray,
    runs: FloatArray,
) -> int:
    """The runs that are higher than is known of longer ones, as `_find_runs` has them.

    Of a block of knots that is not seen, only the first knot and the least absolute gap count. A stack holds
    the starts of the runs that have not ended yet, each with the least absolute gap since; a lower knot ends
    those above it. A run that is not higher than those of longer classes is forgotten at once, which leaves
    little more than the profile's steps; a gap that no run can be higher with only ends runs.
    """
    start_of, value_of = np.empty(knots.size), np.empty(knots.size + 1)
    value_of[0] = before
    depth = found = 0
    by_length = int(reach.size == 0)
    for block in range(least.size):
        first, whole = block * _BLOCK, seen[block]
        after = knots.size if block == least.size - 1 else first + _BLOCK
        for knot in range(first, after if whole else first + 1):
            value = abs(gap[knot]) if whole else least[block]
            value = value if value > highest[-1] else 0.0
            end = start = knots[knot]
            value_of[0] = min(value_of[0], value)
            while value_of[depth] > value:
                start, run_value = start_of[depth - 1], value_of[depth]
                half_width = 0.5 * (end - start) if start > 0.0 else end
                of_class = _class_of(half_width, reach)
                if run_value > highest[of_class + by_length]:
                    if runs.size:
                        runs[0, found], runs[1, found], runs[2, found] = half_width, run_value, start
                        found += 1
                    while of_class >= 0 and highest[of_class] < run_value:
                        highest[of_class] = run_value
                        of_class -= 1
                depth -= 1
            if value > value_of[depth]:
                start_of[depth] = start
                depth += 1
                value_of[depth] = value
    return found


@compiled
def deciding_steps(
    begins: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    least: FloatArray,
    most: FloatArray,
    reach: FloatArray,
) -> BoolArray:
    """The steps that MCDP hangs on, at each half-width of `reach` known to lie from `least` to `most`.

    A run counts only where the upper bound of the gap is nowhere below `least` and it carries a window, and
    in such a run only the steps whose lower bound is below `most`. The upper bound is 0 at the last step.
    """
    decides = np.zeros(begins.size, np.bool_)
    _, highest = _ends_in_blocks(upper, _BLOCK)
    for i in range(reach.size):
        start = 0
        while start < begins.size:
            block = min(start // _BLOCK, highest.size - 1)
            if highest[block] < least[i]:
                start = (block + 1) * _BLOCK if block < highest.size - 1 else begins.size
                continue
            end = start
            while upper[end] >= least[i] and upper[end] > 0.0:
                end += 1
            begin = begins[start]
            half_width = 0.5 * (begins[end] - begin) if begin > 0.0 else begins[end]
            if half_width > reach[i]:
                for step in range(start, end):
                    decides[step] = decides[step] or lower[step] < most[i]
            start = end + 1
    return decides


@compiled
def raise_highest_runs(begins: FloatArray, values: FloatArray, reach: FloatArray, found: FloatArray) -> None:
    """Raise `found` to the highest run of `values` that is longer than each half-width of `reach`.

    The value is 0 at the last of them. `reach` ascends and `found` does not.
    """
    if reach.size:
        highest = np.append(np.inf, found)
        _find_runs(begins, values, 0.0, reach, highest, np.empty((3, 0)))
        found[:] = highest[1:]


@compiled
def highest_runs(knots: FloatArray, gap: FloatArray, reach: FloatArray) -> FloatArray:
    """The highest run of a gap curve that is longer than each of some half-widths."""
    order = np.argsort(reach)
    found, highest = np.zeros(reach.size), np.empty(reach.size)
    raise_highest_runs(knots, gap, reach[order], found)
    highest[order] = found
    return highest


@compiled
def _bound_gap(
    first: FloatArray,
    second: FloatArray,
    known: BoolArray,
    inside: FloatArray,
    slack: float,
    bounds: FloatArray,
) -> None:
    """The least and the greatest absolute gap, in two rows, inside each cell and from its end on, in turns.

    A distribution begins with 0, and has the share up to the end of each cell. Of a cell that is known to
    have one score, nothing lies inside. `inside` has closer bounds of the signed gap there, or is empty.
    """
    for cell in range(known.size):
        gap = abs(first[cell + 1] - second[cell + 1])
        after = 2 * cell + 1
        bounds[0, after], bounds[1, after] = max(0.0, gap - slack), gap + slack
        if known[cell]:
            bounds[0, after - 1], bounds[1, after - 1] = bounds[0, after], bounds[1, after]
            continue
        least, most = first[cell] - second[cell + 1], first[cell + 1] - second[cell]
        if inside.size:
            least, most = max(least, inside[0, cell]), min(most, inside[1, cell])
        bounds[0, after - 1] = max(0.0, max(least, -most) - slack)
        bounds[1, after - 1] = max(abs(least), abs(most)) + slack
    bounds[:, -1] = 0.0


# Loops over a table of cells, each entry the number of rows of a key and the limbs of their weight.


_LIMB = 2.0**LIMB_BITS


@compiled_inline
def _add_weight(weight: float, entry: IntArray) -> None:
    """Add a row's weight to an entry and, where there is room for it, the squared weight."""
    add_units(weight, entry, 1)
    if entry.size > 1 + LIMBS:
        add_units(weight * weight, entry, 1 + LIMBS)


@compiled
def count_at(
    cells: NDArray[Any],
    scores: NDArray[Any],
    keys: NDArray[Any],
    weights: FloatArray,
    entries: IntArray,
    ends: FloatArray,
) -> None:
    """Add rows at their cell and key, and widen the ends of the cells, where there are any, to the scores."""
    lowest, highest = ends[0], ends[1]
    for row in range(scores.size):
        cell, score = np.uint32(cells[row]), scores[row]
        entries[cell, keys[row], 0] += 1
        if lowest.size:
            lowest[cell], highest[cell] = min(lowest[cell], score), max(highest[cell], score)
        if weights.size:
            _add_weight(weights[row], entries[cell, keys[row]])


@compiled
def count_table(
    scores: NDArray[Any],
    keys: NDArray[Any],
    weights: FloatArray,
    grid: Any,
    entries: IntArray,
    ends: FloatArray,
) -> None:
    """Add rows, all of which lie in the cells of a grid, at their cell and key."""
    cells = np.empty(CHUNK, np.int32)
    for start in range(0, scores.size, CHUNK):
        chunk = slice(start, start + CHUNK)
        cells_of(scores[chunk], grid, cells)
        count_at(cells, scores[chunk], keys[chunk], weights[chunk], entries, ends)


@compiled
def sorted_steps(
    scores: NDArray[Any], keys: NDArray[Any], weights: FloatArray, spans: IntArray, most: int, shape: Any
) -> Any:
    """Steps of about so many rows each, of rows sorted by score in some spans, and the span of each step.

    Rows of one score stay together. A step of one score has no number: it is not opened again. `shape` has
    the number of keys and of places that an entry takes.
    """
    steps = 0
    for begin, end in spans:
        steps += -(-(end - begin) // most)
    numbers, parts = np.full(steps, -1, np.int64), np.empty((steps, 2), np.int64)
    lowest, highest = np.empty(steps, np.float64), np.empty(steps, np.float64)
    entries = np.zeros((steps, shape[0], shape[1]), np.int64)
    found = 0
    for begin, end in spans:
        while begin < end:
            after = min(begin + most, end)
            while after < end and scores[after] == scores[after - 1]:
                after += 1
            for row in range(begin, after):
                entries[found, keys[row], 0] += 1
            for row in range(begin, after if weights.size else begin):
                _add_weight(weights[row], entries[found, keys[row]])
            # Adding 0 turns -0.0 into 0.0.
            lowest[found], highest[found] = scores[begin] + 0.0, scores[after - 1] + 0.0
            if lowest[found] < highest[found]:
                numbers[found] = found
            parts[found, 0], parts[found, 1] = begin, after
            begin = after
            found += 1
    known = numbers[:found], lowest[:found], highest[:found], entries[:found], np.empty((0, 0, 2, 0))
    return known, parts[:found]


@compiled
def _block_steps(
    entries: IntArray, seen: FloatArray, grid: Any, ends: Any, numbers: IntArray, block: int
) -> Any:
    """The steps of so many cells at a time, by the number of the first.

    `seen` has the lowest and the highest score of each cell that has rows, or is empty.
    """
    cells, keys, width = entries.shape
    sums = np.empty((numbers.size, keys, width), np.int64)
    for step in range(numbers.size):
        first, after = numbers[step], min(numbers[step] + block, cells)
        for key in range(keys):
            for place in range(width):
                total = 0
                for cell in range(first, after):
                    total += entries[cell, key, place]
                sums[step, key, place] = total
    lowest, highest = cell_ends(numbers, grid, ends[0], ends[1])
    if block > 1:
        highest = cell_ends(np.minimum(numbers + block, cells) - 1, grid, ends[0], ends[1])[1]
    for step in range(numbers.size):
        if sums[step, :, 0].sum() == 0:
            lowest[step] = highest[step]  # nothing lies inside
        elif block == 1 and seen.size:
            lowest[step], highest[step] = seen[0, numbers[step]], seen[1, numbers[step]]
    return numbers, lowest, highest, sums, np.empty((0, 0, 2, 0))


@compiled
def _padded(gaps: FloatArray, other: FloatArray, steps: int) -> FloatArray:
    """What is known of the gaps inside some steps; nothing, where only of other steps anything is."""
    padded = np.empty((other.shape[0], other.shape[1], 2, steps if other.size else 0))
    padded[:, :, 0], padded[:, :, 1] = -np.inf, np.inf
    return gaps if gaps.size else padded


@compiled
def with_finer(steps: Any, opened: BoolArray, finer: Any) -> Any:
    """The steps, without numbers, of which those that are opened are replaced by finer ones of their rows."""
    _, old_lowest, old_highest, old_entries, old_gaps = steps
    new_numbers, new_lowest, new_highest, new_entries, new_gaps = finer
    # The place of each step among the old ones and then the new ones.
    places = np.empty(opened.size - opened.sum() + new_highest.size, np.int64)
    found = new = 0
    for step in range(opened.size):
        if not opened[step]:
            places[found] = step
            found += 1
            continue
        while new < new_highest.size and new_highest[new] <= old_highest[step]:
            places[found] = opened.size + new
            found += 1
            new += 1
    if found != places.size:
        raise AssertionError("the finer steps are not those of the steps that are opened")
    gaps = _padded(old_gaps, new_gaps, opened.size), _padded(new_gaps, old_gaps, new_highest.size)
    return (
        np.concatenate((np.full(opened.size, -1, np.int64), new_numbers))[places],
        np.concatenate((old_lowest, new_lowest))[places],
        np.concatenate((old_highest, new_highest))[places],
        np.concatenate((old_entries, new_entries))[places],
        np.concatenate(gaps, 3)[:, :, :, places] if gaps[0].size else gaps[0],
    )


@compiled
def entries_below(entries: IntArray, group_of: IntArray, groups: int) -> IntArray:
    """The rows, or the limbs of the weight, of each group before the first cell and up to the end of each.

    Everyone is the last group.
    """
    cells, keys, width = entries.shape
    first, last = (0, 1) if width == 1 else (1, 1 + LIMBS)
    below = np.zeros((groups + 1, last - first, cells + 1), np.int64)
    for key in range(keys):
        for place in range(first, last if group_of[key] >= 0 else first):
            running = 0
            for cell in range(cells):
                running += int(entries[cell, key, place])
                below[group_of[key], place - first, cell + 1] += running
                below[groups, place - first, cell + 1] += running
    return below


@compiled
def _shares_below(entries: IntArray, group_of: IntArray, groups: int) -> FloatArray:
    """The share of each group, and of everyone last, before the first cell and up to the end of each."""
    below = entries_below(entries, group_of, groups)
    shares = below[:, -1].astype(np.float64)
    for limb in range(below.shape[1] - 2, -1, -1):
        shares = shares * _LIMB + below[:, limb]
    for group in range(groups + 1):
        shares[group] /= max(shares[group, -1], 1.0)
    return shares


@compiled
def _begins_of(lowest: FloatArray, highest: FloatArray, frame: Any) -> FloatArray:
    """Where steps begin and end, in turns, as fractions of the score range: as `units_of` has them."""
    scale, low, length, bottom = frame
    begins = np.empty(2 * lowest.size, np.float64)
    for step in range(lowest.size):
        for side, score in enumerate((lowest[step], highest[step])):
            begins[2 * step + side] = min((scale * score - low) / length, 1.0) if score > bottom else 0.0
    return begins


@compiled_fast
def _largest_bound(
    first: FloatArray, second: FloatArray, known: BoolArray, inside: FloatArray, slack: float
) -> float:
    """The greatest absolute gap that there may be anywhere, as `_bound_gap` has it."""
    largest = 0.0
    for cell in range(known.size):
        gap = abs(first[cell + 1] - second[cell + 1])
        least, most = first[cell] - second[cell + 1], first[cell + 1] - second[cell]
        if inside.size:
            least, most = max(least, inside[0, cell]), min(most, inside[1, cell])
        within = 0.0 if known[cell] else max(abs(least), abs(most))
        largest = max(largest, max(within, gap))
    return largest + slack


@compiled
def _may_carry(ends: FloatArray, first: FloatArray, second: FloatArray, reach: float, level: float) -> bool:
    """Whether a run longer than a half-width may have a gap above a level at the end of each of its cells.

    From where a run may begin, cells are looked at from the farthest that it must hold: a run begins after
    the first that is found with a lower gap, and those before it need not be looked at.
    """
    after = 0
    while after < ends.size:
        begin = ends[after - 1] if after else 0.0
        limit = begin + (2.0 if begin > 0.0 else 1.0) * reach
        cell = int(np.searchsorted(ends, limit, side="right")) - 1
        while cell >= after and abs(first[cell + 1] - second[cell + 1]) > level:
            cell -= 1
        if cell < after:
            return True
        after = cell + 1
    return False


@compiled
def _bound_pairs(
    begins: FloatArray, known: BoolArray, shares: FloatArray, gaps: FloatArray, terms: Any
) -> FloatArray:
    """The least and the greatest MCDP of each pair (rows) at each half-width (columns).

    `begins` has where each cell begins and ends, and `gaps` what is known of each pair's gap inside. Where
    the worst pair is asked for, one that is not above the others' least MCDP at a half-width is left at 0.
    """
    pairs, compared, reach, slack, worst = terms
    found = np.zeros((2, len(pairs), reach.shape[1]))
    bounds, largest = np.empty((2, begins.size)), np.ones(len(pairs))
    order, chosen = np.argsort(reach[1]), np.flatnonzero(compared)
    for pair in chosen[: chosen.size if worst and chosen.size > 1 else 0]:
        first, second = shares[pairs[pair, 0]], shares[pairs[pair, 1]]
        largest[pair] = _largest_bound(first, second, known, gaps[pair], slack)
    reached, above = np.zeros(reach.shape[1]), np.ones(reach.shape[1], np.bool_)
    ends = begins[1::2].copy()
    for pair in chosen[np.argsort(-largest[chosen])]:
        first, second = shares[pairs[pair, 0]], shares[pairs[pair, 1]]
        for column in range(order.size if worst and chosen.size > 1 else 0):
            level, nearly = reached[column], reach[1, column] * (1.0 - 1e-9)
            above[column] = largest[pair] > level and (
                nearly < 0.0 or _may_carry(ends, first, second, nearly, level - slack)
            )
        columns = order[above[order]]
        if columns.size == 0:
            continue
        _bound_gap(first, second, known, gaps[pair], slack, bounds)
        for side in (1, 0):
            highest = reached[columns]
            if side == 1 or (found[1, pair][columns] > highest).any():
                raise_highest_runs(begins, bounds[side], reach[side][columns], highest)
            found[side, pair][columns] = highest
        if worst:
            reached = np.maximum(reached, found[0, pair])
    return found


@compiled
def bound_steps(
    steps: Any, compared: BoolArray, terms: Any
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """What steps say of MCDP by label: where they begin, the shares of the groups, the gaps and the bounds.

    The bounds have the shape (labels, 2, pairs, half-widths), and are 0 of pairs that are not compared.
    """
    _, lowest, highest, entries, gaps = steps
    group_of, pairs, reach, frame, slack, worst = terms
    begins, known = _begins_of(lowest, highest, frame), lowest == highest
    labels, groups = len(group_of), group_of.max() + 1
    inside = gaps if gaps.size else np.empty((labels, len(pairs), 2, 0))
    shares = np.empty((labels, groups + 1, known.size + 1))
    bounds = np.empty((labels, 2, len(pairs), reach.shape[1]))
    for label in range(labels):
        shares[label] = _shares_below(entries, group_of[label], groups)
        of_label = pairs, compared[label], reach, slack, worst
        bounds[label] = _bound_pairs(begins, known, shares[label], inside[label], of_label)
    return begins, shares, inside, bounds


@compiled
def decide(steps: Any, compared: BoolArray, terms: Any) -> tuple[BoolArray, BoolArray]:
    """The steps that decide MCDP of every pair, or of the worst alone, and the pairs of each label (rows)
    whose MCDP is asked for, of those that are compared.
    """
    numbers, lowest, highest, _, _ = steps
    _, pairs, reach, _, slack, worst = terms
    begins, shares, gaps, bounds = bound_steps(steps, compared, terms)
    known, floor = lowest == highest, np.zeros(reach.shape[1])
    for label in range(len(bounds) if worst else 0):
        for pair in range(len(pairs)):
            floor = np.maximum(floor, bounds[label, 0, pair])
    opened, matters = np.zeros(known.size, np.bool_), np.zeros(compared.shape, np.bool_)
    sides = np.empty((2, begins.size))
    for label in range(len(bounds)):
        for pair in range(len(pairs)):
            least, most = np.maximum(bounds[label, 0, pair], floor), bounds[label, 1, pair]
            above = most > floor
            if not compared[label, pair] or (worst and not above.any()):
                continue
            matters[label, pair] = True
            first, second = shares[label, pairs[pair, 0]], shares[label, pairs[pair, 1]]
            _bound_gap(first, second, known, gaps[label, pair], slack, sides)
            deciding = deciding_steps(begins, sides[0], sides[1], least[above], most[above], reach[1][above])
            for cell in range(known.size):
                # What was not opened before, and has no number since, does not decide.
                opened[cell] |= deciding[2 * cell] and not known[cell] and numbers[cell] >= 0
    return opened, matters


@compiled
def narrow(
    entries: IntArray, seen: FloatArray, grid: Any, ends: Any, blocks: Any, compared: BoolArray, terms: Any
) -> Any:
    """The steps that cells are taken together in, those that decide, and the pairs that may be the worst.

    At first there are as many cells in a step as the first of `blocks` says; those that decide are cut into
    steps of as many as the next one says, and at last into their cells.
    """
    numbers = np.arange(0, len(entries), blocks[0])
    steps = _block_steps(entries, seen, grid, ends, numbers, blocks[0])
    opened, matters = decide(steps, compared, terms)
    for level in range(1, len(blocks)):
        size, block = blocks[level - 1], blocks[level]
        inside = np.zeros(-(-len(entries) // block), np.bool_)
        for number in steps[0][opened]:
            inside[number // block : (number + size) // block] = True
        numbers = block * np.flatnonzero(inside)
        steps = with_finer(steps, opened, _block_steps(entries, seen, grid, ends, numbers, block))
        opened, matters = decide(steps, matters, terms)
    return steps, opened, matters
