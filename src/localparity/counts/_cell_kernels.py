"""Counting rows in cells, and finding those of some cells again, at a few nanoseconds a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled
from localparity._types import BoolArray, FloatArray, IntArray

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


@compiled
def count_rows(
    scores: NDArray[Any],
    keys: NDArray[Any],
    grid: Any,
    rows: IntArray,
    lowest: FloatArray,
    highest: FloatArray,
) -> None:
    """Add the rows of each cell (rows) and key (columns), and widen the cells to the scores."""
    cells = np.empty(CHUNK, np.int32)
    for start in range(0, scores.size, CHUNK):
        part, part_keys = scores[start : start + CHUNK], keys[start : start + CHUNK]
        cells_of(part, grid, cells)
        for row in range(part.size):
            cell, score = cells[row], part[row]
            if cell < 0:
                continue
            rows[cell, part_keys[row]] += 1
            lowest[cell] = min(lowest[cell], score)
            highest[cell] = max(highest[cell], score)


@compiled
def count_at(
    cells: IntArray,
    scores: NDArray[Any],
    keys: NDArray[Any],
    rows: IntArray,
    lowest: FloatArray,
    highest: FloatArray,
) -> None:
    """The same, given the cell of each row."""
    for row in range(scores.size):
        cell, score = cells[row], scores[row]
        rows[cell, keys[row]] += 1
        if score < lowest[cell]:
            lowest[cell] = score
        if score > highest[cell]:
            highest[cell] = score


@compiled
def add_units(weight: float, limbs: IntArray) -> None:
    """Add a weight to a sum, limb by limb, as `localparity.counts._weights` counts them."""
    bits: Any = np.float64(weight).view(np.int64)
    fraction = (bits & _FRACTION_MASK) | (_FRACTION_MASK + 1)
    place = (bits >> 52) - _UNIT_EXPONENT
    if place < 0:
        fraction >>= -place
        place = 0
    limb, offset = place >> 5, place & 31
    limbs[limb] += (fraction << offset) & _LIMB_MASK
    above = fraction >> (32 - offset)
    if limb == 3:
        limbs[4] += above
    else:
        limbs[limb + 1] += above & _LIMB_MASK
        limbs[limb + 2] += above >> 32


@compiled
def add_weights(
    scores: NDArray[Any],
    keys: NDArray[Any],
    weights: FloatArray,
    grid: Any,
    limbs: IntArray,
) -> None:
    """Add the weights and the squared weights of each cell and key."""
    cells = np.empty(CHUNK, np.int32)
    for start in range(0, scores.size, CHUNK):
        part = scores[start : start + CHUNK]
        cells_of(part, grid, cells)
        for row in range(part.size):
            if cells[row] >= 0:
                sums, weight = limbs[cells[row], keys[start + row]], weights[start + row]
                add_units(weight, sums[0])
                add_units(weight * weight, sums[1])


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
def find_at(
    cells: IntArray,
    scores: NDArray[Any],
    keys: NDArray[Any],
    weights: FloatArray,
    opened: BoolArray,
    found: tuple[NDArray[Any], NDArray[Any], FloatArray],
) -> int:
    """The same, given the cell of each row."""
    found_scores, found_keys, found_weights = found
    count = 0
    for row in range(scores.size):
        found_scores[count], found_keys[count] = scores[row], keys[row]
        if weights.size:
            found_weights[count] = weights[row]
        count += opened[cells[row]]
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
        add_units(weights[row], sums[0])
        add_units(weights[row] * weights[row], sums[1])
