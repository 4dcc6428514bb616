"""Loops over a table of rows by cell and key, each entry their number and the limbs of their weight."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled
from localparity._types import BoolArray, FloatArray, IntArray
from localparity.counts._cell_kernels import add_units, cell_of, part_of
from localparity.metrics._kernels import bound_pairs, open_cells

_UNIT = 2.0**-96
_LIMB = 2.0**32


@compiled
def count_table(
    scores: NDArray[Any], keys: NDArray[Any], weights: FloatArray, grid: Any, table: IntArray
) -> None:
    """Add rows at their cell and key."""
    scale, first, last, start, shift, bits, place = grid
    for row in range(scores.size):
        cell = part_of(cell_of(scores[row], scale, first, last, start, shift), bits, place)
        table[cell, keys[row], 0] += 1
        if weights.size:
            add_units(weights[row], table[cell, keys[row], 1:])


@compiled
def count_scores(
    scores: NDArray[Any], keys: NDArray[Any], weights: FloatArray, table: IntArray
) -> FloatArray:
    """Add rows, sorted by score, at the place of their score; returns the distinct scores."""
    distinct = np.empty(scores.size, np.float64)
    found = 0
    for row in range(scores.size):
        score = scores[row] + 0.0  # which turns -0.0 into 0.0
        if found == 0 or distinct[found - 1] != score:
            distinct[found] = score
            found += 1
        table[found - 1, keys[row], 0] += 1
        if weights.size:
            add_units(weights[row], table[found - 1, keys[row], 1:])
    return distinct[:found]


@compiled
def add_blocks(table: IntArray, block: int) -> IntArray:
    """The sums of so many cells at a time."""
    cells, keys, width = table.shape
    entries, sums = table.reshape(-1, keys * width), np.zeros((-(-cells // block), keys * width), np.int64)
    for number in range(len(sums)):
        for cell in range(number * block, min(cells, (number + 1) * block)):
            for place in range(keys * width):
                sums[number, place] += entries[cell, place]
    return sums.reshape(-1, keys, width)


@compiled
def step_order(opened: BoolArray, ends: FloatArray, finer_ends: FloatArray) -> IntArray:
    """The places, among steps and then finer ones, of the steps with those that are opened replaced."""
    order = np.empty(opened.size + finer_ends.size, np.int64)
    found = 0
    finer = 0
    for step in range(opened.size):
        if not opened[step]:
            order[found] = step
            found += 1
            continue
        while finer < finer_ends.size and finer_ends[finer] <= ends[step]:
            order[found] = opened.size + finer
            found += 1
            finer += 1
    return order[:found]


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
def decide(
    table: IntArray,
    begins: FloatArray,
    known: BoolArray,
    group_of: IntArray,
    pairs: IntArray,
    reach: FloatArray,
    slack: float,
) -> tuple[BoolArray, BoolArray]:
    """The steps that decide MCDP of the worst pair, and which pairs may be that (columns), by label (rows).

    `begins`, `known`, `pairs`, `reach` and `slack` are those of `bound_pairs`; `group_of` has, by label, the
    group of each key, and -1 for those who are not compared.
    """
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
    return opened, matters
