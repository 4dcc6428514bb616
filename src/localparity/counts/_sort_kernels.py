"""Sorting rows by score in a few passes: into cells first, then inside each of them.

Scores are spread over a few thousand cells that ascend with them, so that what is left to sort lies in the
processor's cache and, at last, in cells of a few rows. Cells cut the range of a part evenly. Where that puts
most rows into one cell, as with scores over many orders of magnitude, its own cells cut the range of the
floats' bits, which shrinks by the number of cells in every pass: a few passes do, whatever the scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled
from localparity._types import IntArray
from localparity.counts._cell_kernels import ordinal

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
def sort_rows(scores: NDArray[Any], carried: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows sorted by their scores, and what each of them carries; equal scores come in any order."""
    found, found_carried = np.empty(scores.size, scores.dtype), np.empty(scores.size, carried.dtype)
    sort_into(scores, carried, found, found_carried)
    return found, found_carried


@compiled
def sort_into(
    scores: NDArray[Any], carried: NDArray[Any], found: NDArray[Any], found_carried: NDArray[Any]
) -> None:
    """Write the same."""
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
