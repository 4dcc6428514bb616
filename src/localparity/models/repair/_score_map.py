"""The map that a group's scores go through, and rows through the maps of their groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from localparity._text import brief
from localparity._types import FloatArray, Group, ScoreRange
from localparity._validation import Grouping
from localparity.models.repair import _kernels


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """An increasing map of the score range to itself: straight lines from knot to knot.

    The ends of the range stay where they are, unless they are knots that moved. Between two knots that stay,
    every score stays, to the last bit.

    Parameters
    ----------
    knots, values : ndarray of shape (n_knots,)
        Scores, ascending, and what each of them becomes.
    score_range : tuple of float
        The lowest and the highest score there can be.

    Examples
    --------
    >>> import localparity as lp
    >>> halve = lp.models.ScoreMap(np.array([0.2, 0.8]), np.array([0.1, 0.4]))
    >>> halve(np.array([0.1, 0.2, 0.5, 1.0]))
    array([0.05, 0.1 , 0.25, 1.  ])
    """

    knots: FloatArray
    values: FloatArray
    score_range: ScoreRange = (0.0, 1.0)

    @cached_property
    def _before(self) -> NDArray[np.int64]:
        return _kernels.guide(self.knots, *self.score_range)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return what each score becomes.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            Scores inside the score range, as float64.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return _kernels.follow(scores, self.knots, self.values, self._before, *self.score_range)


def checked_map(knots: FloatArray, values: FloatArray, score_range: ScoreRange) -> ScoreMap:
    """Return a map whose knots and values were read from a file, or raise a ValueError."""
    low, high = score_range
    for name, numbers, ascends in (("knots", knots, np.greater), ("values", values, np.greater_equal)):
        inside = numbers.size > 0 and bool(((numbers >= low) & (numbers <= high)).all())
        if not inside or not ascends(numbers[1:], numbers[:-1]).all():
            raise ValueError(f"{name} must ascend inside score_range ({low}, {high})")
    return ScoreMap(knots, values, score_range)


def map_rows(scores: FloatArray, grouping: Grouping, maps: Mapping[Group, ScoreMap]) -> FloatArray:
    """Return each score through the map of its group."""
    for code, group in enumerate(grouping.names):
        if group not in maps:
            row = int(np.argmax(grouping.codes == code))
            known = ", ".join(map(repr, maps))
            raise ValueError(
                f"sensitive_features must be one of {known}, as at fit, got {brief(group)} at row {row}"
            )
    order = np.argsort(grouping.codes, kind="stable")
    ends = np.cumsum(np.bincount(grouping.codes, minlength=len(grouping.names)))
    repaired = np.empty(scores.size)
    for group, members in zip(grouping.names, np.split(order, ends[:-1]), strict=True):
        repaired[members] = maps[group](scores[members])
    return repaired
