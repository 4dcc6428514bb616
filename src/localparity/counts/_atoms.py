"""The scores of some people: the distinct ones, and how much weight and how many rows lie at each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._types import BoolArray, FloatArray, IntArray
from localparity.counts._kernels import find_cells
from localparity.counts._weights import UNIT_BITS, Units, carry, to_floats, to_whole, units_of_rows

# Cells of scores: parts of the score range of which only the total inside is known.


@dataclass(frozen=True, eq=False)
class Cells:
    """Disjoint intervals ``(low, high]`` of scores, ascending; what lies inside is counted at the high."""

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
        """The cells of both; those that overlap as one, as where a cell lies inside another one."""
        if other is None:
            return self
        lows, highs = (np.concatenate(ends) for ends in ((self.lows, other.lows), (self.highs, other.highs)))
        order = np.argsort(lows, kind="stable")
        lows, reached = lows[order], np.maximum.accumulate(highs[order])
        begins = np.ones(lows.size, dtype=bool)
        np.greater_equal(lows[1:], reached[:-1], out=begins[1:])
        return Cells(lows[begins], reached[np.roll(begins, -1)])


@dataclass(frozen=True, eq=False)
class Atoms:
    """The distinct scores of some people, ascending, and how much weight and how many rows lie at each."""

    scores: FloatArray
    weights: NDArray[Any]  # without weights, the rows
    rows: IntArray
    units: Units | None = None  # weights and squared weights, whose sums are the same in any order

    @classmethod
    def of_counts(cls, scores: FloatArray, rows: IntArray, units: Units | None = None) -> Atoms:
        """Of distinct scores, ascending, the rows at each and, where there are weights, their units."""
        if units is None:
            return cls(scores, rows, rows)
        return cls(scores, to_floats(carry(units)[0]), rows, units)

    @classmethod
    def join(cls, parts: Iterable[Atoms]) -> Atoms:
        """The people of all parts together."""
        found = list(parts)
        if len(found) == 1:
            return found[0]
        if not found:
            return cls.of_counts(np.empty(0), np.empty(0, dtype=np.int64))
        scores = np.concatenate([part.scores for part in found])
        rows = np.concatenate([part.rows for part in found])
        if all(part.units is None for part in found):
            return cls.gather(scores, rows)
        weighted = [part.with_units() for part in found]
        units = np.concatenate([part.units for part in weighted if part.units is not None], axis=-1)
        return cls.gather(scores, rows, units)

    def with_units(self) -> Atoms:
        """The same people with their weights in whole units, also where every row weighs 1."""
        if self.units is not None:
            return self
        return replace(self, units=units_of_rows(self.rows))

    def snap(self, cells: Cells) -> Atoms:
        """The same people, with those inside a cell counted at its high end."""
        return self.gather(cells.snap(self.scores), self.rows, self.units)

    @classmethod
    def gather(cls, scores: NDArray[Any], rows: IntArray, units: Units | None = None) -> Atoms:
        """Of scores in any order, which may repeat, what `of_counts` takes."""
        order = np.argsort(scores, kind="stable")
        ordered = scores[order]
        starts = _run_starts(ordered)
        distinct = ordered[starts].astype(np.float64, copy=False)
        rows_at = np.add.reduceat(rows[order], starts)
        if units is None:
            return cls.of_counts(distinct, rows_at)
        return cls.of_counts(distinct, rows_at, np.add.reduceat(units[..., order], starts, axis=-1))

    def most_inside(self, cells: Cells) -> float:
        """The largest share of the weight that lies inside one cell."""
        if not self.size:
            return 0.0
        _, inside = cells.find(self.scores)
        return float((self.weights * inside).max() / self.weights.sum())

    def below(self) -> NDArray[Any]:
        """The weight before the first score and up to each; of weights, in extended precision."""
        if self.units is None:
            return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.weights, dtype=np.int64)])
        running = carry(np.cumsum(self.units[0], axis=1))
        return np.concatenate([np.zeros(1, dtype=np.longdouble), to_floats(running, np.longdouble)])

    @property
    def size(self) -> int:
        """How many rows there are."""
        return int(self.rows.sum())

    @property
    def squares(self) -> NDArray[Any]:
        """The sum of the squared weights of the rows at each score; without weights, the rows."""
        return self.rows if self.units is None else to_floats(self.units[1])

    @property
    def effective_size(self) -> float:
        """How many equally weighted rows would be as precise: the squared sum over the sum of squares."""
        if self.units is None:
            return float(self.size)
        total, squares = (to_whole(each) / 2**UNIT_BITS for each in self.units)
        return float(total**2 / squares)

    @property
    def degrees(self) -> float:
        """How many rows carry the sum of the squared weights: its degrees of freedom by Satterthwaite."""
        return float(self.squares.sum() ** 2 / np.sum(self.squares**2 / self.rows))

    def share_above(self, threshold: float) -> float:
        """The weighted share of scores above a threshold."""
        at_or_below = int(np.searchsorted(self.scores, threshold, side="right"))
        return float(self.weights[at_or_below:].sum() / self.weights.sum())

    def share_below(self, threshold: float) -> float:
        """The weighted share of scores below a threshold."""
        below = int(np.searchsorted(self.scores, threshold, side="left"))
        return float(self.weights[:below].sum() / self.weights.sum())

    def shares_at_or_below(self, thresholds: FloatArray) -> FloatArray:
        """The cumulative distribution: the weighted share of scores at or below each threshold."""
        below = self.below()
        shares = below[np.searchsorted(self.scores, thresholds, side="right")] / below[-1]
        return np.asarray(shares, dtype=np.float64)

    def distance(self, other: Atoms) -> float:
        """The largest difference between the two cumulative distributions."""
        at = np.union1d(self.scores, other.scores)
        return float(np.abs(self.shares_at_or_below(at) - other.shares_at_or_below(at)).max(initial=0.0))


def _run_starts(ordered: NDArray[Any]) -> IntArray:
    """Where each distinct value of a sorted array begins."""
    changes = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return np.concatenate([np.zeros(min(1, ordered.size), dtype=np.int64), changes])


def ordinals(numbers: FloatArray) -> IntArray:
    """Whole numbers in the order of the floats."""
    bits = (numbers + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)
