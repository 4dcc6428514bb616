"""Cells of scores: parts of the score range of which only the total inside is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localparity._types import BoolArray, FloatArray, IntArray
from localparity.counts._kernels import find_cells


@dataclass(frozen=True, eq=False)
class Cells:
    """Disjoint intervals ``(low, high]`` of scores, ascending; what lies inside one is counted at its high.

    Attributes
    ----------
    lows, highs : ndarray
        The ends, in the scores' own units.

    Examples
    --------
    >>> cells = Cells(np.array([0.0, 0.5]), np.array([0.25, 1.0]))
    >>> cells.snap(np.array([0.0, 0.1, 0.4, 0.6]))
    array([0.  , 0.25, 0.4 , 1.  ])
    """

    lows: FloatArray
    highs: FloatArray

    def find(self, scores: FloatArray) -> tuple[IntArray, BoolArray]:
        """For ascending scores the first cell that does not end below each, and whether it lies in it."""
        if not self.highs.size:
            return np.zeros(scores.size, dtype=np.int64), np.zeros(scores.size, dtype=bool)
        return find_cells(self.lows, self.highs, scores)

    def snap(self, scores: FloatArray) -> FloatArray:
        """Ascending scores, with every one inside a cell moved to its high end."""
        at, inside = self.find(scores)
        snapped = scores.copy()
        snapped[inside] = self.highs[at[inside]]
        return snapped

    def lows_of(self, knots: FloatArray) -> FloatArray:
        """For each knot that a cell ends at the cell's low end, and for any other the knot itself."""
        at, inside = self.find(knots)
        lows = knots.copy()
        lows[inside] = self.lows[at[inside]]
        return lows

    def union(self, other: Cells | None) -> Cells:
        """The cells of both; those that overlap as one, as where a cell lies inside another one.

        Examples
        --------
        >>> halves = Cells(np.array([0.0, 0.5]), np.array([0.5, 1.0]))
        >>> halves.union(Cells(np.array([0.25]), np.array([0.5]))).highs
        array([0.5, 1. ])
        """
        if other is None:
            return self
        lows, highs = (np.concatenate(ends) for ends in ((self.lows, other.lows), (self.highs, other.highs)))
        order = np.argsort(lows, kind="stable")
        lows, reached = lows[order], np.maximum.accumulate(highs[order])
        begins = np.ones(lows.size, dtype=bool)
        np.greater_equal(lows[1:], reached[:-1], out=begins[1:])
        return Cells(lows[begins], reached[np.roll(begins, -1)])
