"""How many of each group are selected at every cutoff: the one mechanism behind rates and their ratios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._scale import threshold_reach
from localparity._types import FloatArray, Group, HigherIs, IntArray, ScoreRange
from localparity.counts._atoms import Atoms, Cells
from localparity.counts._score_counts import ScoreCounts, Stratum


@dataclass(frozen=True, eq=False)
class SelectionCounts:
    """Who is selected at each of some cutoffs: people above it, or at or below it where higher is worse.

    From a cutoff up to, but not at, the next, the same people are selected. Where scores are known in cells,
    or from a sketch, `least` and `most` bound what is selected at all cutoffs of such a stretch.
    """

    groups: tuple[Group, ...]  # the groups
    cutoffs: FloatArray  # the cutoffs, ascending, in the scores' own units
    selected: NDArray[Any]  # (groups, cutoffs): The weight of each group that is selected at the cutoff
    # (groups, cutoffs): The least and the most that is selected from the cutoff up to the next
    least: NDArray[Any]
    most: NDArray[Any]
    sizes: NDArray[Any]  # the weight of each group
    # (groups, cutoffs + 1): How many people of each group, at the least, are selected at the cutoff; in the
    # last column, of all
    people: NDArray[Any]
    # Whether `selected` is exact at each cutoff, whatever is known from there up to the next
    exact: bool = True
    complete: bool = True  # whether no other cutoff selects other people

    @classmethod
    def at(cls, sides: Mapping[Group, Atoms], reach: FloatArray, higher_is: HigherIs) -> SelectionCounts:
        """At some cutoffs, each as far as its reach, of scores that are all known."""
        places = [np.searchsorted(atoms.scores, reach, side="right") for atoms in sides.values()]
        selected, sizes = _selected([atoms.below() for atoms in sides.values()], places, higher_is)
        rows, all_rows = _selected([_cumulated(atoms.rows) for atoms in sides.values()], places, higher_is)
        people = np.concatenate([rows, all_rows[:, None]], axis=1)
        return cls(tuple(sides), reach, selected, selected, selected, sizes, people)

    @classmethod
    def everywhere(cls, counts: ScoreCounts, stratum: Stratum, higher_is: HigherIs) -> SelectionCounts:
        """At the bottom of the score range and at every score of a stratum."""
        scores = np.unique(np.concatenate([atoms.scores for atoms in stratum.values()]))
        exact = cls.at(stratum, np.union1d(scores, counts.score_range[:1]), higher_is)
        if counts.clusters is not None:
            exact = replace(exact, people=exact.people / int(np.bincount(counts.clusters.clusters).max()))
        return exact if counts.rank_error == 0.0 else exact._bounded(counts.cells, counts.rank_error)

    def _bounded(self, cells: Cells | None, rank_error: float) -> SelectionCounts:
        """The same, where cells hide who is selected inside them, or any count may be off."""
        if cells is None:
            off = np.ceil(rank_error * self.sizes.astype(np.float64))[:, None]
            least, most = (
                np.maximum(self.selected - off, 0),
                np.minimum(self.selected + off, self.sizes[:, None]),
            )
        else:
            inside = cells.lows_of(self.cutoffs[1:]) < self.cutoffs[1:]
            following = np.where(inside, self.selected[:, 1:], self.selected[:, :-1])
            following = np.concatenate([following, self.selected[:, -1:]], axis=1)
            least, most = np.minimum(self.selected, following), np.maximum(self.selected, following)
        return replace(self, least=least, most=most, exact=cells is not None, complete=False)

    @cached_property
    def rates(self) -> FloatArray:
        """The share of each group that is selected at each cutoff."""
        return self.shares(self.selected)

    def shares(self, selected: NDArray[Any]) -> FloatArray:
        """Weights of each group as shares of the group."""
        return np.asarray(selected / self.sizes[:, None], dtype=np.float64)

    def disclosed(
        self, limit: int, most: int, higher_is: HigherIs, kept: int | None = None
    ) -> SelectionCounts:
        """At so few cutoffs that no group has only a few people between any two of them, or beyond.

        What is selected in between is known by bounds. One place is among them, if it may be.
        """
        count = self.cutoffs.size
        places = np.unique(np.linspace(0, count - 1, min(most, count)).astype(np.int64))
        chosen = _far_apart(self.people, places, limit, higher_is, kept)
        gaps = np.diff([*chosen, count]) > 1
        last = 0 * self.sizes if higher_is == "better" else self.sizes
        least, largest = (part[:, chosen] for part in (self.least, self.most))
        least = np.where(gaps, np.minimum(least, np.column_stack([least[:, 1:], last])), least)
        largest = np.where(gaps, np.maximum(largest, np.column_stack([largest[:, 1:], last])), largest)
        return replace(
            self,
            cutoffs=self.cutoffs[chosen],
            selected=self.selected[:, chosen],
            least=least,
            most=largest,
            people=self.people[:, [*chosen, count]],
            complete=self.complete and len(chosen) == count,
        )

    def only(self, place: int, *, at_cutoff: bool) -> SelectionCounts:
        """At one of the cutoffs by itself, or anywhere from it up to the next."""
        selected, least, most = (part[:, [place]] for part in (self.selected, self.least, self.most))
        if at_cutoff and self.exact:
            least = most = selected
        cutoffs, people = self.cutoffs[[place]], self.people[:, [place, -1]]
        return replace(self, cutoffs=cutoffs, selected=selected, least=least, most=most, people=people)

    def place(self, cutoff: float, resolution: float, score_range: ScoreRange) -> int:
        """The stretch of cutoffs that a cutoff lies in."""
        reach = threshold_reach(cutoff, resolution, score_range)
        return int(np.searchsorted(self.cutoffs, reach, side="right")) - 1


def _far_apart(
    people: NDArray[Any], places: IntArray, limit: int, higher_is: HigherIs, kept: int | None
) -> list[int]:
    """Places between any two of which, and beyond the first and the last, no group has only a few people."""
    nobody, everybody = np.zeros(len(people)), people[:, -1]
    first, last = (everybody, nobody) if higher_is == "better" else (nobody, everybody)

    def far(here: NDArray[Any], *others: NDArray[Any]) -> bool:
        steps = np.abs(here - np.stack(others))
        return not ((steps > 0) & (steps < limit)).any()

    chosen: list[int] = []
    before = first
    for place in places.tolist():
        if far(people[:, place], before, last):
            chosen.append(place)
            before = people[:, place]
    if kept is None or not far(people[:, kept], first, last):
        return chosen
    # All others are the same whatever is kept, so that two curves tell little more together.
    return sorted({kept, *(place for place in chosen if far(people[:, place], people[:, kept]))})


def _selected(
    below: list[NDArray[Any]], places: list[IntArray], higher_is: HigherIs
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of cumulated weights or rows, those selected in each group, and all of each group."""
    selected = [
        up_to[-1] - up_to[at] if higher_is == "better" else up_to[at]
        for up_to, at in zip(below, places, strict=True)
    ]
    return np.stack(selected), np.stack([up_to[-1] for up_to in below])


def _cumulated(rows: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(rows)])


def ratios_to_best(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Each group's row of `part` over the largest of the other groups' rows of `whole`, 1 at the most.

    Of estimates, this is the ratio to the best-off group; of lower ends over upper ends, a lower end of it.

    Examples
    --------
    >>> rates = np.array([[0.2, 0.5, 0.0], [0.4, 0.25, 0.0]])
    >>> ratios_to_best(rates, rates)
    array([[0.5, 1. , nan],
           [1. , 0.5, nan]])
    """
    best = whole.argmax(axis=0)
    largest = whole.max(axis=0)
    others = np.where(np.arange(len(whole))[:, None] == best, -np.inf, whole).max(axis=0)
    against = np.where(np.arange(len(whole))[:, None] == best, others, largest)
    return np.minimum(quotients(part, against), 1.0)


def quotients(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Quotients of numbers >= 0: infinite over 0, and not a number for 0 over 0 or infinity over infinity.

    Examples
    --------
    >>> quotients(np.array([1.0, 1.0, 0.0]), np.array([2.0, 0.0, 0.0]))
    array([0.5, inf, nan])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(part / whole)
