"""Loops over scores and cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled, compiled_inline
from localparity._types import BoolArray, FloatArray, IntArray


@compiled
def merge_scores(first: FloatArray, second: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    """The union of two sorted arrays of distinct scores, and how many of each are at or below each knot."""
    knots = np.empty(first.size + second.size, np.float64)
    in_first = np.empty(knots.size, np.int64)
    in_second = np.empty(knots.size, np.int64)
    i = 0
    j = 0
    found = 0
    while i < first.size or j < second.size:
        from_first = j == second.size or (i < first.size and first[i] <= second[j])
        score = first[i] if from_first else second[j]
        if i < first.size and first[i] == score:
            i += 1
        if j < second.size and second[j] == score:
            j += 1
        knots[found] = score
        in_first[found] = i
        in_second[found] = j
        found += 1
    return knots[:found], in_first[:found], in_second[:found]


@compiled
def find_cells(lows: FloatArray, highs: FloatArray, scores: FloatArray) -> tuple[IntArray, BoolArray]:
    """For ascending scores the first cell that does not end below each, and whether the score lies in it."""
    at = np.empty(scores.size, np.int64)
    inside = np.empty(scores.size, np.bool_)
    cell = 0
    for place in range(scores.size):
        while cell < highs.size - 1 and highs[cell] < scores[place]:
            cell += 1
        at[place] = cell
        inside[place] = lows[cell] < scores[place] <= highs[cell]
    return at, inside


# Counting rows in cells, and finding those of some cells again, at a few nanoseconds a row.


_LEAST = np.int64(-(2**63))
_SIGN = np.uint64(2**63)
_LIMB_MASK = 2**32 - 1
_FRACTION_MASK = 2**52 - 1
# The exponent, as a float's bits hold it, of a number whose last bit is worth one unit of 2**-96.
_UNIT_EXPONENT = 1075 - 96
CHUNK = 2**11
"""The rows whose cells are found at a time, by instructions that take several of them at once."""


@compiled
def ordinal(score: float) -> Any:
    """A whole number, not negative, in the order of the floats."""
    bits = np.float64(score).view(np.int64)
    if bits < 0:
        bits = _LEAST - bits
    return np.int64(bits).view(np.uint64) ^ _SIGN


@compiled
def cell_of(score: float, scale: float, first: float, last: int, start: np.uint64, shift: int) -> Any:
    """The number of a score's cell, were all cells of a `Grid` cut."""
    if shift < 0:
        return int(min(max(np.floor(score * scale) - first, 0.0), float(last)))
    at = ordinal(score)
    return min(np.int64((at - start) >> np.uint64(shift)), last) if at > start else 0


@compiled
def most_in_a_cell(scores: FloatArray, grid: Any) -> int:
    """How many of some scores, ascending, lie in the cell of a `Grid` with most of them."""
    scale, first, last, start, shift, _, _ = grid
    most = 0
    inside = 0
    before = -1
    for score in scores:
        cell = cell_of(score, scale, first, last, start, shift)
        inside = inside + 1 if cell == before else 1
        most, before = max(most, inside), cell
    return most


@compiled
def _first_in(number: int, scale: float, first: float, start: np.uint64, shift: int) -> float:
    """The lowest score in the cell of a number, were there no end to the scores."""
    if shift < 0:
        return (first + number) / scale
    at = np.int64((start + (np.uint64(number) << np.uint64(shift))) ^ _SIGN)
    return np.int64(_LEAST - at if at < 0 else at).view(np.float64)


@compiled
def cell_ends(numbers: IntArray, grid: Any, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest score that there can be in cells of a `Grid` on scores from low to high."""
    scale, first, last, start, shift, _, _ = grid
    lowest, highest = np.empty(numbers.size, np.float64), np.empty(numbers.size, np.float64)
    for place in range(numbers.size):
        number = numbers[place]
        begin = low if number == 0 else _first_in(number, scale, first, start, shift)
        end = high
        if number < last:
            end = np.nextafter(_first_in(number + 1, scale, first, start, shift), -np.inf)
        # Bits beyond those of the largest float are no number, and compare as false.
        lowest[place] = max(low, begin) if begin <= high else high
        # Where floats are farther apart than cells, the end may be rounded to the cell before.
        highest[place] = max(end, lowest[place]) if end <= high else high
    return lowest, highest


@compiled
def part_of(number: int, bits: int, place: IntArray) -> Any:
    """The number of a cell among those that are cut, and -1 where it is not one of them."""
    at = place[number >> bits]
    return (at << bits) + (number & ((1 << bits) - 1)) if at >= 0 else -1


@compiled
def cells_of(scores: NDArray[Any], grid: Any, cells: NDArray[np.int32]) -> None:
    """Write the number of each score's cell, -1 for those that have none."""
    scale, first, last, start, shift, bits, place = grid
    top = float(last)
    if shift < 0:
        for row in range(scores.size):
            cells[row] = np.int32(min(max(np.floor(np.float64(scores[row]) * scale) - first, 0.0), top))
    else:
        for row in range(scores.size):
            cells[row] = cell_of(scores[row], scale, first, last, start, shift)
    for row in range(scores.size if place.size else 0):
        cells[row] = part_of(cells[row], bits, place)


@compiled_inline
def add_units(weight: float, limbs: IntArray, first: int) -> None:
    """Add a weight to a sum whose limbs, those of `localparity.counts._weights`, start at `first`."""
    bits: Any = np.float64(weight).view(np.int64)
    fraction = (bits & _FRACTION_MASK) | (_FRACTION_MASK + 1)
    place = (bits >> 52) - _UNIT_EXPONENT
    if not 0 <= place < 96:  # few weights are so small, or so large
        fraction >>= max(-place, 0)
        place = max(place, 0)
    limb, offset = np.uint64(first + (place >> 5)), place & 31
    above = fraction >> (32 - offset)
    limbs[limb] += (fraction << offset) & _LIMB_MASK
    if place >= 96:
        limbs[limb + np.uint64(1)] += above
    else:
        limbs[limb + np.uint64(1)] += above & _LIMB_MASK
        limbs[limb + np.uint64(2)] += above >> 32


@compiled
def find_rows(
    scores: NDArray[Any],
    keys: NDArray[Any],
    weights: FloatArray,
    grid: Any,
    opened: BoolArray,
    found: tuple[NDArray[Any], NDArray[Any], FloatArray],
) -> int:
    """Write the rows that lie in some cells, in order; returns how many there are.

    `opened` has an entry more, False, before those of the cells: for rows without one.
    """
    found_scores, found_keys, found_weights = found
    cells, places = np.empty(CHUNK, np.int32), np.empty(CHUNK + 1, np.int32)
    count = 0
    for start in range(0, scores.size, CHUNK):
        part = scores[start : start + CHUNK]
        cells_of(part, grid, cells)
        inside = 0
        for row in range(part.size):
            places[inside] = row
            inside += opened[np.uint32(cells[row] + 1)]
        if count + inside > found_scores.size:
            raise AssertionError("more rows are in the cells than were counted there")
        for row in places[:inside]:
            found_scores[count], found_keys[count] = part[row], keys[start + row]
            if weights.size:
                found_weights[count] = weights[start + row]
            count += 1
    return count


@compiled
def count_sorted(
    scores: NDArray[Any],
    keys: NDArray[Any],
    ends: IntArray,
    found: FloatArray,
    rows: IntArray,
    places: IntArray,
) -> None:
    """Count rows, sorted by score, by their key and score; those of a key begin at its entry of `ends`.

    `ends` moves on to where the scores of each key end; `places` gets the entry that each row is counted in.
    """
    begins = ends.copy()
    for row in range(scores.size):
        key, score = keys[row], scores[row]
        place = ends[key] - 1
        if place < begins[key] or found[place] != score:
            place += 1
            found[place] = score + 0.0  # which turns -0.0 into 0.0
            rows[place] = 0
            ends[key] += 1
        rows[place] += 1
        if places.size:
            places[row] = place


@compiled
def add_weights_at(places: IntArray, weights: FloatArray, limbs: IntArray) -> None:
    """Add the weight and the squared weight of each row at its place."""
    for row in range(places.size):
        sums = limbs[places[row]]
        add_units(weights[row], sums[0], 0)
        add_units(weights[row] * weights[row], sums[1], 0)


# Sorting rows by score as whole numbers: the bits of a score before what it carries.


@compiled
def pack_rows(
    bits: NDArray[Any], carried: NDArray[Any], least: np.uint64, shift: np.uint64, packed: NDArray[np.uint64]
) -> Any:
    """Write the bits of scores, less so many but not below 0, before what each of them carries.

    Returns the highest bits of a score.
    """
    highest = least
    for row in range(bits.size):
        of_row = max(np.uint64(bits[row]), least)
        highest = max(highest, of_row)
        packed[row] = ((of_row - least) << shift) | np.uint64(carried[row])
    return highest


@compiled
def unpack_rows(
    packed: NDArray[np.uint64], least: np.uint64, shift: np.uint64, carried: NDArray[Any]
) -> None:
    """Turn these back: bits of scores, 0 where they were not above so many, and what each carries."""
    mask = (np.uint64(1) << shift) - np.uint64(1)
    for row in range(packed.size):
        both = packed[row]
        carried[row] = both & mask
        above = both >> shift
        packed[row] = above + least if above > np.uint64(0) else above


# Sorting rows by score in a few passes: into cells first, then inside each of them.
#
# Scores are spread over a few thousand cells that ascend with them, so that what is left to sort lies in the
# processor's cache and, at last, in cells of a few rows. Cells cut the range of a part evenly. Where that
# puts most rows into one cell, as with scores over many orders of magnitude, its own cells cut the range of
# the floats' bits, which shrinks by the number of cells in every pass: a few passes do, whatever the scores.


_FEW = 24
_FIRST_CELLS = 512
_MOST_CELLS = 2**14
_MANY = 2**16
_SHORT = 1e-300


@compiled
def _cell(score: float, low: float, scale: float, first: np.uint64, shift: int) -> Any:
    """The cell of a score: evenly over the scores or, with a shift, over their bits."""
    if shift < 0:
        return int((score - low) * scale)
    return np.int64((ordinal(score) - first) >> np.uint64(shift))


@compiled
def _insertion_sort(scores: NDArray[Any], carried: NDArray[Any], start: int, end: int) -> None:
    for row in range(start + 1, end):
        score, moved = scores[row], carried[row]
        place = row - 1
        while place >= start and scores[place] > score:
            scores[place + 1], carried[place + 1] = scores[place], carried[place]
            place -= 1
        scores[place + 1], carried[place + 1] = score, moved


@compiled
def _spread(
    scores: NDArray[Any],
    carried: NDArray[Any],
    into_scores: NDArray[Any],
    into_carried: NDArray[Any],
    ends: IntArray,
    cells: int,
    by_bits: bool,
) -> int:
    """Order rows by their cells, and write where each cell ends; returns their number."""
    low, high = scores[0], scores[0]
    for row in range(scores.size):
        low, high = min(low, scores[row]), max(high, scores[row])
    if low == high:
        return 1
    length = float(high) - float(low)
    first, shift, scale = ordinal(low), -1, (cells - 0.5) / max(length, _SHORT)
    if by_bits or not _SHORT < length < np.inf:
        shift = 0
        while (ordinal(high) - first) >> np.uint64(shift) >= np.uint64(cells):
            shift += 1
    ends[: cells + 1] = 0
    for row in range(scores.size):
        ends[_cell(scores[row], low, scale, first, shift) + 1] += 1
    for cell in range(cells):
        ends[cell + 1] += ends[cell]
    for row in range(scores.size):
        cell = _cell(scores[row], low, scale, first, shift)
        place = ends[cell]
        into_scores[place], into_carried[place] = scores[row], carried[row]
        ends[cell] += 1
    return cells


@compiled
def sort_into(
    scores: NDArray[Any], carried: NDArray[Any], found: NDArray[Any], found_carried: NDArray[Any]
) -> None:
    """Write rows sorted by their scores, and what each of them carries; equal scores come in any order."""
    rows = scores.size
    ends = np.empty(_MOST_CELLS + 2, np.int64)
    waiting = np.empty((rows // _FEW + 2, 3), np.int64)
    cells = _cells_for(rows)
    if rows <= _FEW or _spread(scores, carried, found, found_carried, ends, cells, False) == 1:
        found[:], found_carried[:] = scores, carried
        if rows <= _FEW:
            _insertion_sort(found, found_carried, 0, rows)
        return
    depth = _finish(found, found_carried, ends[:cells], 0, waiting, 0)
    room, room_carried = found[:0].copy(), found_carried[:0].copy()
    while depth:
        depth -= 1
        start, end, by_bits = waiting[depth]
        size = end - start
        part, part_carried = found[start:end], found_carried[start:end]
        if size > room.size:
            room, room_carried = np.empty(size, found.dtype), np.empty(size, found_carried.dtype)
        cells = _cells_for(size)
        if _spread(part, part_carried, room, room_carried, ends, cells, by_bits > 0) > 1:
            part[:], part_carried[:] = room[:size], room_carried[:size]
            depth = _finish(part, part_carried, ends[:cells], start, waiting, depth)


@compiled
def _cells_for(rows: int) -> int:
    """How many cells so many rows are spread over: few to a cell, or few cells where rows are many."""
    return _FIRST_CELLS if rows > _MANY else min(max(rows // 2, 16), _MOST_CELLS)


@compiled
def _finish(
    scores: NDArray[Any], carried: NDArray[Any], ends: IntArray, start: int, waiting: IntArray, depth: int
) -> int:
    """Sort the cells of few rows, and note those of many; returns how many are waiting."""
    begin = 0
    for end in ends:
        if end - begin > _FEW:
            waiting[depth] = (start + begin, start + end, int(2 * (end - begin) > scores.size))
            depth += 1
        else:
            _insertion_sort(scores, carried, begin, end)
        begin = end
    return depth
