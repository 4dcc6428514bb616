"""The gap curves of rows that weigh 1, from one sort of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray, Group, IntArray
from localparity.counts._comparison import EVERYONE, Comparison
from localparity.counts._keyed_rows import KeyedRows
from localparity.counts._sorting import sort_rows
from localparity.metrics._gap_curve import GapCurve
from localparity.metrics._kernels import gap_of_pair, largest_gaps
from localparity.predictions import Predictions


@dataclass(frozen=True, eq=False)
class SortedRows:
    """The rows of some people under one label, sorted by score.

    Attributes
    ----------
    predictions : Predictions
        The people.
    label : int or None
        The label of those who are compared.
    scores, codes : ndarray
        The score, ascending, and the group and label of each row.
    group_of : ndarray
        The group of each code; -1 for those who are not compared.
    sizes : ndarray
        How many rows each group has, and everyone last.
    """

    predictions: Predictions
    label: int | None
    scores: NDArray[Any]
    codes: NDArray[Any]
    group_of: IntArray
    sizes: IntArray

    @classmethod
    def strata(cls, predictions: Predictions, comparison: Comparison) -> Iterator[SortedRows]:
        """The rows that are compared, for each label; a group that is too small is an error."""
        rows = KeyedRows.of(predictions)
        scores, codes = sort_rows(rows.scores, rows.codes)
        in_all = np.bincount(rows.codes, minlength=len(rows.keys))
        for label, group_of, sizes in rows.strata(comparison, in_all):
            yield cls(predictions, label, scores, codes, group_of, np.append(sizes, sizes.sum()))

    def largest_gaps(self, pairs: IntArray) -> FloatArray:
        """The largest absolute gap of each pair, up to rounding."""
        return largest_gaps(self.scores, self.codes, self.group_of, self.sizes, pairs)

    def curve(self, pair: IntArray) -> GapCurve:
        """The curve of a pair."""
        first, second = pair.tolist()
        everyone = self.sizes.size - 1
        in_second = self.group_of == second if second < everyone else self.group_of >= 0
        sides = np.column_stack([[self.group_of == first, in_second], self.sizes[pair]])
        most = min(self.scores.size, int(self.sizes[pair].sum()))
        # Numpy's own arrays take less time to touch for the first time than those that a loop makes.
        knots, gap = np.empty(most), np.empty(most)
        found = gap_of_pair(self.scores, self.codes, sides, knots, gap)
        names: tuple[Group, ...] = (*self.predictions.groups, EVERYONE)
        return GapCurve(
            knots[:found],
            gap[:found],
            (names[first], names[second]),
            (float(self.sizes[first]), float(self.sizes[second])),
            label=self.label,
            score_range=self.predictions.score_range,
            resolution=self.predictions.resolution,
        )
