"""Loops over a table of cells: rows counted, shares below its cells, and what is left once some are opened."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled
from localparity._types import BoolArray, FloatArray, IntArray
from localparity.counts._cell_kernels import add_units, cell_of

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
    """Add rows at their cell and key: their number and, where there are weights, the limbs of these."""
    scale, first, last, start, shift, _, _ = grid
    for row in range(scores.size):
        cell = cell_of(scores[row], scale, first, last, start, shift)
        _add_row(weights, row, table[cell, keys[row]])


@compiled
def _weight_of(entry: IntArray) -> float:
    """The weight of the rows of an entry: their number where there are no limbs."""
    if entry.size == 1:
        return float(entry[0])
    weight = 0.0
    for limb in range(entry.size - 1, 0, -1):
        weight = weight * _LIMB + entry[limb]
    return weight * _UNIT


@compiled
def shares_at(table: IntArray, marks: IntArray, group_of: IntArray, groups: int) -> FloatArray:
    """The share of each group, and of everyone last, in the cells below each mark."""
    _, keys, width = table.shape
    cells = table.reshape(-1, keys * width)
    running = np.zeros(keys * width, np.int64)
    below = np.zeros((groups + 1, marks.size))
    for mark in range(1, marks.size):
        for cell in range(marks[mark - 1], marks[mark]):
            for place in range(running.size):
                running[place] += cells[cell, place]
        for key in range(keys):
            if group_of[key] >= 0:
                weight = _weight_of(running[key * width : (key + 1) * width])
                below[group_of[key], mark] += weight
                below[groups, mark] += weight
    for group in range(groups + 1):
        below[group] /= below[group, -1]
    return below


@compiled
def _add_cells(cells: IntArray, group_of: IntArray, below: IntArray) -> None:
    """Add the entries of some cells to those of each group, and of everyone last."""
    for cell in range(len(cells)):
        for key in range(group_of.size):
            for place in range(cells.shape[2] if group_of[key] >= 0 else 0):
                below[group_of[key], place] += cells[cell, key, place]
                below[-1, place] += cells[cell, key, place]


@compiled
def exact_below(
    table: IntArray,
    marks: IntArray,
    opened: BoolArray,
    ends: FloatArray,
    rows: tuple[NDArray[Any], NDArray[Any], FloatArray],
    group_of: IntArray,
    groups: int,
) -> tuple[FloatArray, IntArray]:
    """Knots, and the entries of each group, and of everyone last, before the first and up to each.

    The cells between two marks have one knot, where they end. Where they are opened, `rows`, sorted, go on with
    those inside, and every score has a knot.
    """
    scores, codes, weights = rows
    knots = np.empty(scores.size + ends.size, np.float64)
    below = np.zeros((knots.size + 1, groups + 1, table.shape[2]), np.int64)
    found = 0
    last = 0
    for step in range(ends.size):
        cells = table[marks[step] : marks[step + 1]]
        if not opened[step]:
            knots[found] = ends[step]
            found += 1
            below[found] = below[found - 1]
            _add_cells(cells, group_of, below[found])
            continue
        start = last
        last = start + cells[:, :, 0].sum()
        for row in range(start, last):
            group = group_of[codes[row]]
            score = scores[row] + 0.0  # which turns -0.0 into 0.0
            if row == start or score != knots[found - 1]:
                knots[found] = score
                found += 1
                below[found] = below[found - 1]
            if group >= 0:
                _add_row(weights, row, below[found, group])
                _add_row(weights, row, below[found, groups])
    return knots[:found], below[: found + 1]
