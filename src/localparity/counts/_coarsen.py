"""Counts of bounded size: exact while the distinct scores fit a limit, on a grid of cells beyond it.

A grid of level k cuts the score range into 2**k cells. The gap is exact at the cells' edges, and inside a
cell it is bounded by what lies in it, so every metric has bounds that always hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from localparity._scale import fractions_of
from localparity._types import FloatArray, IntArray, ScoreRange
from localparity._validation import InputError, as_count
from localparity.counts._atoms import Cells, ordinals
from localparity.counts._score_counts import ScoreCounts, snap

LEVEL = 20
MAX_SCORES = 2**20


def cell_numbers(
    scores: NDArray[Any], level: int, score_range: ScoreRange, dtype: DTypeLike = np.int64
) -> NDArray[Any]:
    """The cell of each score: number i holds what lies above edge i - 1 and not above edge i."""
    fractions = scores if score_range == (0.0, 1.0) else fractions_of(scores, score_range)
    return np.ceil(fractions * 2.0**level).astype(dtype)


def cell_edges(numbers: IntArray, level: int, score_range: ScoreRange) -> FloatArray:
    """The highest score of each cell: the largest float whose fraction of the range is not above i / 2**k."""
    low, high = score_range
    fractions = numbers.astype(np.float64) * 2.0**-level
    if score_range == (0.0, 1.0):
        return fractions
    # Bisection over the floats themselves, in the order of their bits.
    under, over = ordinals(np.full(numbers.size, low)), ordinals(np.full(numbers.size, high))
    for _ in range(64):
        middle = (under >> 1) + (over >> 1) + (((under & 1) + (over & 1) + 1) >> 1)
        fits = fractions_of(floats(middle), score_range) <= fractions
        under, over = np.where(fits, middle, under), np.where(fits, over, middle - 1)
    return floats(under)


def floats(ordinals: IntArray) -> FloatArray:
    return np.where(ordinals < 0, np.int64(-(2**63)) - ordinals, ordinals).view(np.float64)


def grid_cells(numbers: IntArray, level: int, score_range: ScoreRange) -> Cells:
    """Cells by their numbers; number 0 is the bottom of the range alone and no cell."""
    numbers = numbers[numbers > 0]
    lows, highs = (cell_edges(ends, level, score_range) for ends in (numbers - 1, numbers))
    return Cells(lows, highs)


def bounded(counts: ScoreCounts, *, max_scores: int = MAX_SCORES, level: int = LEVEL) -> ScoreCounts:
    """The same counts while their scores fit a limit, and counts on a grid beyond it.

    Parameters
    ----------
    counts : ScoreCounts
        Counts of any size.
    max_scores : int
        The most distinct scores, those of each group and label apart, that are kept as they are.
    level : int
        The grid has ``2**level`` cells; counts that are on coarser ones already stay on those.

    Returns
    -------
    ScoreCounts
        Its `rank_error` is the largest share inside one cell; `mcdp_bounds` holds the exact value. Counts
        that are on a grid already stay on one, so that merging in any order ends in the same counts.

    Examples
    --------
    >>> import localparity as lp
    >>> rng = np.random.default_rng(0)
    >>> predictions = lp.Predictions.from_arrays(
    ...     None, rng.random(5000), sensitive_features=rng.integers(0, 2, 5000)
    ... )
    >>> counts = lp.ScoreCounts.from_predictions(predictions)
    >>> coarse = lp.counts.bounded(counts, max_scores=1000, level=8)
    >>> found = lp.mcdp_bounds(coarse, epsilon=0.01)
    >>> found.low <= lp.mcdp(counts, epsilon=0.01) <= found.high
    True
    """
    max_scores, level = as_count(max_scores, "max_scores"), as_count(level, "level")
    if counts.cells is None and sum(atoms.scores.size for atoms in counts.atoms.values()) <= max_scores:
        return counts
    scores = np.concatenate([atoms.scores for atoms in counts.atoms.values()])
    numbers = np.unique(cell_numbers(scores, level, counts.score_range))
    # What is known by coarser cells stays in them.
    return snap(counts, grid_cells(numbers, level, counts.score_range).union(counts.cells))


def merge_bounded(
    parts: Iterable[ScoreCounts], *, max_scores: int = MAX_SCORES, level: int = LEVEL
) -> ScoreCounts:
    """The counts of all parts together, of bounded size; the order of the parts does not matter.

    Parameters
    ----------
    parts : iterable of ScoreCounts
        One or more.
    max_scores, level : int
        The limit and the grid, as in `bounded`.

    Returns
    -------
    ScoreCounts
        The same bytes in whatever order and partition the rows came.

    Examples
    --------
    >>> import localparity as lp
    >>> predictions = lp.Predictions.from_arrays(None, [0.2, 0.6], sensitive_features=["a", "b"])
    >>> counts = lp.ScoreCounts.from_predictions(predictions)
    >>> lp.counts.merge_bounded([counts, counts, counts]).size
    6
    """
    found = [bounded(part, max_scores=max_scores, level=level) for part in parts]
    if not found:
        raise InputError("is empty", "parts")
    return reduce(lambda one, two: bounded(one.merge(two), max_scores=max_scores, level=level), found)
