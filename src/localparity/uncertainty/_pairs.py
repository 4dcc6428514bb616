"""The pairs that resamples compare, by the rows of their two sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray, Group, IntArray
from localparity.counts._comparison import EVERYONE, Comparison

_LEAST_DEVIATION = 1e-12
"""What a gap's standard deviation counts as at least: below it, the gap is rounding more than anything."""


class PairRows(NamedTuple):
    """The pairs that are compared, by the rows of their two sides, and how a pair's gap is studentised.

    Attributes
    ----------
    first, second : ndarray
        The row of each pair's first and second side; everyone is the last row.
    scale : ndarray
        What a gap is multiplied with: one over its standard deviation, up to a factor that all pairs share.
    """

    first: IntArray
    second: IntArray
    scale: FloatArray


def pair_rows(comparison: Comparison, variances: FloatArray, totals: FloatArray | IntArray) -> PairRows:
    """The pairs of groups whose distributions have these variances, and which weigh so much.

    Examples
    --------
    >>> pair_rows(Comparison(), np.array([0.5, 0.25]), np.array([2, 4])).scale.round(3)
    array([1.155])
    >>> pair_rows(Comparison(compare="to_overall"), np.array([0.5, 0.25]), np.array([2, 4])).scale.round(3)
    array([1.732, 3.464])
    """
    groups = range(variances.size)
    row_of: dict[Group, int] = {EVERYONE: len(groups), **{group: group for group in groups}}
    pairs = [(row_of[a], row_of[b]) for a, b in comparison.pairs(groups)]
    first, second = np.array(pairs, dtype=np.int64).T
    if comparison.compare == "to_overall":
        # F_g - F_all is (1 - p_g) F_g less p_h F_h of every other group.
        shares = totals / totals.sum()
        found = _of_others(shares) ** 2 * variances + _of_others(shares**2 * variances)
    else:
        found = variances[first] + variances[second]
    return PairRows(first, second, 1.0 / np.maximum(np.sqrt(found), _LEAST_DEVIATION))


def _of_others(values: FloatArray) -> FloatArray:
    """For each of some values, none of which is negative, the sum of all others, to the last digits.

    Examples
    --------
    >>> _of_others(np.array([1.0, 1e20, 2.0]))
    array([1.e+20, 3.e+00, 1.e+20])
    """
    before = np.append(0.0, np.cumsum(values[:-1]))
    after = np.append(0.0, np.cumsum(values[:0:-1]))[::-1]
    return np.asarray(before + after)


# MCDP of many gap curves on the same knots: the largest, over windows, of the least absolute gap inside.
#
# Which knots a window holds does not depend on the gap. Known once, they leave a range minimum for each
# window, and that is the smaller of two minima over a power of two knots, which double from level to level.


Measure = Callable[[Sequence[np.random.Generator]], FloatArray]
"""The largest MCDP of all pairs at each half-width, plain and then scaled, in a resample of each stream."""


def window_ends(starts: FloatArray, knots: FloatArray, reach: FloatArray) -> IntArray:
    """How many knots are at or below the end of a window, for each half-width (rows) and start (columns).

    A run of the gap carries a window of half-width `reach` if it is longer, so the window holds every knot at
    which it would not be; from the bottom of the range on, a run counts with its full length. Where `reach`
    is 0 any run is long enough, and the window holds the knots at its start alone.

    Examples
    --------
    >>> knots = np.array([0.0, 0.25, 0.5, 1.0])
    >>> window_ends(knots, knots, np.array([0.0, 0.25]))
    array([[1, 2, 3, 4],
           [2, 3, 4, 4]])
    """
    found = np.empty((reach.size, starts.size), dtype=np.int64)
    at_start = np.searchsorted(knots, starts, side="right")
    lengths = np.where(starts > 0.0, 0.5, 1.0)
    for row, half_width in enumerate(reach.tolist()):
        if half_width == 0.0:
            found[row] = at_start
            continue
        ends = np.searchsorted(knots, starts + half_width / lengths, side="right")
        # What rounding has put on the wrong side of the end.
        while (beyond := (ends > at_start) & (lengths * (knots[ends - 1] - starts) > half_width)).any():
            ends -= beyond
        padded = np.append(knots, np.inf)
        while (inside := lengths * (padded[ends] - starts) <= half_width).any():
            ends += inside
        found[row] = ends
    return found


@dataclass(frozen=True, eq=False)
class Ranges:
    """Half-open ranges of places, at each half-width (rows) one from each start (columns).

    Attributes
    ----------
    begins, ends : ndarray
        Where each range begins and ends.
    """

    begins: IntArray
    ends: IntArray

    @cached_property
    def levels(self) -> IntArray:
        """The largest power of two that each range holds, as an exponent; -1 of an empty range."""
        return np.asarray(np.frexp(np.maximum(self.ends - self.begins, 0))[1] - 1, dtype=np.int64)

    @cached_property
    def _of_level(self) -> list[list[tuple[IntArray, IntArray]]]:
        """At each level and half-width, where the two halves of the ranges begin."""
        found = []
        for level in range(int(self.levels.max(initial=-1)) + 1):
            places = [np.flatnonzero(row == level) for row in self.levels]
            ends = [row[at] - (1 << level) for row, at in zip(self.ends, places, strict=True)]
            found.append([(self.begins[at], end) for at, end in zip(places, ends, strict=True)])
        return found

    def places(self, width: int, levels: int) -> NDArray[np.int32]:
        """Where the two halves of each range begin in a flat table of so many levels of a width.

        The halves of an empty range are the place behind the table.
        """
        halves = np.stack(np.broadcast_arrays(self.begins, self.ends - (1 << np.maximum(self.levels, 0))))
        found = np.where(self.levels < 0, levels * width, self.levels * width + halves)
        return found.astype(np.int32)

    def largest_minimum(self, values: FloatArray) -> FloatArray:
        """At each half-width (columns) the largest of the ranges' least values, for each row of values.

        Examples
        --------
        >>> ranges = Ranges(np.array([0, 1, 2]), np.array([[1, 2, 3], [2, 3, 3]]))
        >>> ranges.largest_minimum(np.array([[3.0, 2.0, 0.0], [1.0, 2.0, 4.0]]))
        array([[3., 2.],
               [4., 4.]])
        """
        found = np.zeros((len(values), len(self.ends)))
        # What lies past the last whole power of two is no range's and stays unset.
        spare = [np.zeros_like(values) for _ in self._of_level[1:3]]
        for level, rows in enumerate(self._of_level):
            if level:
                half = 1 << (level - 1)
                out = spare[(level - 1) % 2]
                np.minimum(values[:, :-half], values[:, half:], out=out[:, :-half])
                values = out
            for row, (begins, ends) in enumerate(rows):
                if begins.size:
                    least = values.take(begins, axis=1, mode="clip")
                    if level:
                        np.minimum(least, values.take(ends, axis=1, mode="clip"), out=least)
                    np.maximum(found[:, row], least.max(axis=1), out=found[:, row])
        return found


def mcdp_of_pairs(shares: FloatArray, pairs: PairRows, ranges: Ranges) -> FloatArray:
    """MCDP of each pair (rows) at each half-width, between the groups' distributions (rows)."""
    return ranges.largest_minimum(
        np.stack([_gap(shares[a], shares[b]) for a, b, _ in zip(*pairs, strict=True)])
    )


def worst_of_pairs(shares: FloatArray, pairs: PairRows, ranges: Ranges) -> FloatArray:
    """The largest MCDP of all pairs at each half-width, plain and then scaled, in each resample (rows).

    `shares` are the distributions of each group (first axis) in each resample.
    """
    worst, scaled = np.zeros((2, shares.shape[1], len(ranges.ends)))
    for first, second, scale in zip(*pairs, strict=True):
        found = ranges.largest_minimum(_gap(shares[first], shares[second]))
        np.maximum(worst, found, out=worst)
        np.maximum(scaled, scale * found, out=scaled)
    return np.hstack([worst, scaled])


def measuring_rows(
    draw: Callable[[np.random.Generator], IntArray], pairs: PairRows, ranges: Ranges
) -> Measure:
    """What measures resamples that are drawn as the rows of each group, and of everyone, at each knot."""

    def measure(streams: Sequence[np.random.Generator]) -> FloatArray:
        below = np.stack([np.cumsum(draw(stream), axis=1) for stream in streams], axis=1)
        return worst_of_pairs(below / below[:, :, -1:], pairs, ranges)

    return measure


def _gap(first: FloatArray, second: FloatArray) -> FloatArray:
    """The absolute gap, which is 0 at the last knot."""
    gap = first - second
    np.abs(gap, out=gap)
    gap[..., -1] = 0.0
    return gap
