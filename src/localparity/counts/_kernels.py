"""Loops over scores and cells."""

from __future__ import annotations

import numpy as np

from localparity._compiled import compiled
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
