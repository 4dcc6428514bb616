"""People in the order of a number that describes them, such as age, and the worst of its splits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray, IntArray
from localparity.counts._sorting import places_of, sort_rows
from localparity.uncertainty._split_kernels import worst_split


@dataclass(frozen=True, eq=False)
class OrderedPeople:
    """People in the order of a sensitive feature, as the search for its worst split takes them.

    Attributes
    ----------
    places : ndarray
        Each person's place among the distinct scores, in the order of the feature.
    totals : ndarray
        How many people are at or below each distinct score.
    values, ends : ndarray
        The distinct values of the feature, ascending, and how many people are at or below each.
    least : int
        How many people there must be on either side.

    Examples
    --------
    >>> people = OrderedPeople.of_rows(np.array([0.1, 0.4, 0.3]), np.array([30.0, 20.0, 20.0]), 1)
    >>> people.places, people.values, people.ends
    (array([2, 1, 0]), array([20., 30.]), array([2, 3]))
    >>> people.worst_split()
    (2, 1.0)
    """

    places: IntArray
    totals: IntArray
    values: FloatArray
    ends: IntArray
    least: int

    @classmethod
    def of_rows(cls, scores: NDArray[np.floating], feature: FloatArray, least: int) -> OrderedPeople:
        """Sort people by the feature and by the score."""
        places, _, rows = places_of(scores)
        _, people = sort_rows(feature, places)
        _, values, with_value = places_of(feature)
        return cls(people, np.cumsum(rows), values, np.cumsum(with_value), least)

    @cached_property
    def splits(self) -> FloatArray:
        """The values of the feature with enough people at or below, and enough above."""
        enough = (self.ends >= self.least) & (self.places.size - self.ends >= self.least)
        return np.asarray(self.values[enough])

    def worst_split(self, order: IntArray | None = None) -> tuple[int, float]:
        """How many people are on the low side of the worst split, and MCDP(0) between its sides.

        `order` deals the scores out to the people anew.
        """
        return self._search(order, 1.0)

    def clearest_split(self, order: IntArray | None = None) -> tuple[int, float]:
        """The same for the largest MCDP(0) studentised by the sizes of the sides."""
        size, gap = self._search(order, 0.5)
        return size, float(gap / np.sqrt(self.places.size))

    def studentised(self, size: int, gap: float) -> float:
        """A gap between the `size` people lowest in the feature and the others, over its spread at parity."""
        people = self.places.size
        return float(gap * np.sqrt(size * (people - size) / people))

    def _search(self, order: IntArray | None, power: float) -> tuple[int, float]:
        places = self.places if order is None else self.places[order]
        enough_above = self.ends <= self.places.size - self.least
        return worst_split(places, self.totals, self.ends[enough_above], self.least, power)
