"""Loops over a table of rows by cell and key, each entry their number and the limbs of their weight."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled
from localparity._types import BoolArray, FloatArray, IntArray
from localparity.counts._cell_kernels import CHUNK, add_units, cell_ends, cells_of
from localparity.counts._sort_kernels import sort_rows
from localparity.metrics._kernels import bound_pairs, open_cells

_UNIT = 2.0**-96
_LIMB = 2.0**32


@compiled
def _add_row(weights: FloatArray, row: int, entry: IntArray) -> None:
    """Add a row to an entry."""
    entry[0] += 1
    if weights.size:
        add_units(weights[row], entry[1:])


@compiled
def count_table(
    scores: NDArray[Any], keys: NDArray[Any], weights: FloatArray, grid: Any, table: IntArray
) -> None:
    """Add rows at their cell and key."""
    cells = np.empty(CHUNK, np.int32)
    for start in range(0, scores.size, CHUNK):
        chunk = slice(start, start + CHUNK)
        part, part_keys, part_weights = scores[chunk], keys[chunk], weights[chunk]
        cells_of(part, grid, cells)
        for row in range(part.size):
            table[np.uint32(cells[row]), part_keys[row], 0] += 1
        for row in range(part_weights.size):
            add_units(part_weights[row], table[np.uint32(cells[row]), part_keys[row], 1:])


@compiled
def score_steps(
    scores: NDArray[Any], keys: NDArray[Any], weights: FloatArray, n_keys: int, width: int
) -> Any:
    """A step for each score of some rows."""
    ordered, order = sort_rows(scores, np.arange(scores.size))
    distinct, step = np.empty(scores.size, np.float64), np.empty(scores.size, np.int64)
    found = 0
    for row in range(scores.size):
        score = ordered[row] + 0.0  # which turns -0.0 into 0.0
        if found == 0 or distinct[found - 1] != score:
            distinct[found] = score
            found += 1
        step[row] = found - 1
    table = np.zeros((found, n_keys, width), np.int64)
    for row in range(scores.size):
        _add_row(weights, order[row], table[step[row], keys[order[row]]])
    return np.arange(found), distinct[:found], distinct[:found], table


@compiled
def _block_steps(table: IntArray, grid: Any, ends: Any, numbers: IntArray, block: int) -> Any:
    """The steps of so many cells at a time, by the number of the first."""
    cells, keys, width = table.shape
    entries = np.zeros((numbers.size, keys, width), np.int64)
    for key in range(keys):
        for place in range(width):
            for step in range(numbers.size):
                inside = table[numbers[step] : numbers[step] + block, key, place]
                for cell in range(inside.size):
                    entries[step, key, place] += inside[cell]
    lowest, highest = cell_ends(numbers, grid, ends[0], ends[1])
    if block > 1:
        highest = cell_ends(np.minimum(numbers + block, cells) - 1, grid, ends[0], ends[1])[1]
    return numbers, lowest, highest, entries


@compiled
def with_finer(steps: Any, opened: BoolArray, finer: Any) -> Any:
    """The steps, without numbers, of which those that are opened are replaced by finer ones of their rows."""
    kept_ends, new_ends = steps[2], finer[2]
    size = opened.size - opened.sum() + new_ends.size
    numbers = np.full(size, -1, np.int64)
    lowest, highest = np.empty(size, np.float64), np.empty(size, np.float64)
    entries = np.empty((size, *steps[3].shape[1:]), np.int64)
    found = 0
    new = 0
    for step in range(opened.size):
        if not opened[step]:
            lowest[found], highest[found], entries[found] = steps[1][step], kept_ends[step], steps[3][step]
            found += 1
            continue
        while new < new_ends.size and new_ends[new] <= kept_ends[step]:
            numbers[found], lowest[found], highest[found] = finer[0][new], finer[1][new], new_ends[new]
            entries[found] = finer[3][new]
            found += 1
            new += 1
    if found != size:
        raise AssertionError("the finer steps are not those of the steps that are opened")
    return numbers, lowest, highest, entries


@compiled
def entries_below(table: IntArray, group_of: IntArray, groups: int) -> IntArray:
    """The entry of each group, and of everyone last, before the first cell and up to the end of each."""
    cells, keys, width = table.shape
    below = np.zeros((groups + 1, width, cells + 1), np.int64)
    for key in range(keys):
        for place in range(width if group_of[key] >= 0 else 0):
            running = 0
            for cell in range(cells):
                running += table[cell, key, place]
                below[group_of[key], place, cell + 1] += running
                below[groups, place, cell + 1] += running
    return below


@compiled
def _shares_below(table: IntArray, group_of: IntArray, groups: int) -> FloatArray:
    """The share of each group, and of everyone last, before the first cell and up to the end of each."""
    below = entries_below(table, group_of, groups)
    shares = below[:, -1].astype(np.float64)
    for limb in range(below.shape[1] - 2, 0, -1):
        shares = shares * _LIMB + below[:, limb]
    for group in range(groups + 1):
        shares[group] /= shares[group, -1]
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


@compiled
def decide(steps: Any, question: Any) -> tuple[BoolArray, BoolArray]:
    """The steps that decide MCDP of the worst pair, and by label (rows) which pairs may be that."""
    numbers, lowest, highest, table = steps
    group_of, pairs, reach, frame, slack = question
    begins, known = _begins_of(lowest, highest, frame), lowest == highest
    labels, groups = len(group_of), group_of.max() + 1
    shares = np.empty((labels, groups + 1, known.size + 1))
    bounds = np.empty((labels, 2, len(pairs), reach.shape[1]))
    floor = np.zeros(reach.shape[1])
    for label in range(labels):
        shares[label] = _shares_below(table, group_of[label], groups)
        bounds[label] = bound_pairs(begins, known, shares[label], pairs, reach, slack, True)
        for pair in range(len(pairs)):
            floor = np.maximum(floor, bounds[label, 0, pair])
    opened, matters = np.zeros(known.size, np.bool_), np.zeros((labels, len(pairs)), np.bool_)
    for label in range(labels):
        for pair in range(len(pairs)):
            least, most = np.maximum(bounds[label, 0, pair], floor), bounds[label, 1, pair]
            if (most >= floor).any():
                matters[label, pair] = True
                between = least.reshape(1, -1), most.reshape(1, -1)
                opened |= open_cells(
                    begins,
                    known,
                    shares[label],
                    pairs[pair : pair + 1],
                    between[0],
                    between[1],
                    reach[1],
                    slack,
                )
    # What was not opened before does not decide.
    return opened & (numbers >= 0), matters


@compiled
def narrow(table: IntArray, grid: Any, ends: Any, blocks: Any, question: Any) -> Any:
    """The steps that cells are taken together in, those that decide, and the pairs that may be the worst.

    At first there are as many cells in a step as the first of `blocks` says; those that decide are cut into
    steps of as many as the next one says, and at last into their cells.
    """
    numbers = np.arange(0, len(table), blocks[0])
    steps = _block_steps(table, grid, ends, numbers, blocks[0])
    opened, matters = decide(steps, question)
    for level in range(1, len(blocks)):
        size, block = blocks[level - 1], blocks[level]
        inside = np.zeros(-(-len(table) // block), np.bool_)
        for number in steps[0][opened]:
            inside[number // block : (number + size) // block] = True
        numbers = block * np.flatnonzero(inside)
        steps = with_finer(steps, opened, _block_steps(table, grid, ends, numbers, block))
        opened, matters = decide(steps, question)
    return steps, opened, matters
