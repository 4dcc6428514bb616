"""Maps of scores: through which each group's scores go, and from ranks to the scale that people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from localparity._scale import rounding_terms, score_resolution
from localparity._text import brief
from localparity._types import FloatArray, Group, IntArray, ScoreRange
from localparity._validation import Grouping, InputError, setting
from localparity.metrics._gap_curve import units_of
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
    >>> halve = lp.results.ScoreMap(np.array([0.2, 0.8]), np.array([0.1, 0.4]))
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
        """Return what each score, a float64 inside the score range, becomes."""
        return _kernels.follow(scores, self.knots, self.values, self._before, *self.score_range)


def checked_map(knots: FloatArray, values: FloatArray, score_range: ScoreRange) -> ScoreMap:
    """Return a map whose knots and values were read from a file, or raise a ValueError."""
    low, high = score_range
    for name, numbers, ascends in (("knots", knots, np.greater), ("values", values, np.greater_equal)):
        inside = numbers.size > 0 and bool(((numbers >= low) & (numbers <= high)).all())
        if not inside or not ascends(numbers[1:], numbers[:-1]).all():
            raise InputError(f"must ascend inside {setting('score_range')} ({low}, {high})", name)
    return ScoreMap(knots, values, score_range)


def map_rows(scores: FloatArray, grouping: Grouping, maps: Mapping[Group, ScoreMap]) -> FloatArray:
    """Return each score through the map of its group."""
    for code, group in enumerate(grouping.names):
        if group not in maps:
            row = int(np.argmax(grouping.codes == code))
            known = ", ".join(map(repr, maps))
            raise InputError(
                f"must be one of {known}, as at fit, got {brief(group)} at row {row}", "sensitive_features"
            )
    order = np.argsort(grouping.codes, kind="stable")
    ends = np.cumsum(np.bincount(grouping.codes, minlength=len(grouping.names)))
    repaired = np.empty(scores.size)
    for group, members in zip(grouping.names, np.split(order, ends[:-1]), strict=True):
        repaired[members] = maps[group](scores[members])
    return repaired


# Groups' distributions drawn together, to the least extent that a bound on their gap asks for.
#
# At a threshold y let m(y) and M(y) be the lowest and the highest of the groups' cumulative distributions,
# and C(y) that of their Wasserstein barycentre, whose quantiles are the means of the groups' quantiles and
# which lies between the two. Where M - m exceeds the bound b, the corridor
#
# .. math::
#     L = C - (C - m) \frac{b}{M - m}, \qquad U = C + (M - C) \frac{b}{M - m}
#
# is exactly b wide and holds C; elsewhere it is [m, M]. L and U do not fall as m, M or C rises, so they are
# cumulative distributions themselves, and so is every group's clipped between them. That is the repair: at
# each threshold the gap becomes min(M - m, b), every distribution moves towards the barycentre or not at all,
# and with b = 0 all of them are the barycentre. A person whose rank in the group is u goes to the nearest
# score between the u-quantiles of U and of L, which keeps the order inside the group.
#
# MCDP(epsilon) forgives a gap above the bound that is too short to carry a window: such stretches stay as
# they are.


class Distribution(NamedTuple):
    """A group's distinct scores, ascending, and the share of its people at or below each."""

    scores: FloatArray
    levels: FloatArray


class _Envelope(NamedTuple):
    """At each score, the lowest of the groups' levels, the barycentre's and the highest."""

    grid: FloatArray
    lowest: FloatArray
    centre: FloatArray
    highest: FloatArray


@dataclass(frozen=True, eq=False)
class Corridor:
    """The groups' distributions, and their weights in the barycentre, which sum to 1."""

    distributions: Sequence[Distribution]
    shares: FloatArray
    score_range: tuple[float, float] = (0.0, 1.0)

    @cached_property
    def _flat(self) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
        scores, levels = (np.concatenate(column) for column in zip(*self.distributions, strict=True))
        sizes = [group.scores.size for group in self.distributions]
        return scores, levels, np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def _envelope(self) -> _Envelope:
        places, heights, slack = _kernels.find_barycentre(*self._flat, self.shares)
        return _Envelope(*_kernels.sweep(*self._flat, places, heights, slack))

    @cached_property
    def _units(self) -> tuple[FloatArray, float, float]:
        """The envelope's scores as fractions of the range, and the terms of their rounding."""
        resolution = score_resolution(np.dtype(np.float64), self.score_range)
        units = units_of(self._envelope.grid, self.score_range, resolution)
        return units, *rounding_terms(resolution, self.score_range)

    def maps(self, width: float, epsilon: float = 0.0) -> list[ScoreMap]:
        """Return each group's map into the corridor of a width.

        Stretches of wider gaps that carry no window of half-width `epsilon` stay as they are.
        """
        grid, lowest, centre, highest = self._envelope
        lowest, highest = lowest.copy(), highest.copy()
        # Any stretch at all carries a window of half-width 0.
        wider_than = epsilon if epsilon > 0.0 else -1.0
        _kernels.draw_together(*self._units, lowest, centre, highest, width, wider_than)
        return [
            ScoreMap(group.scores, _kernels.move(*group, grid, lowest, centre, highest), self.score_range)
            for group in self.distributions
        ]


_LEVELS = 1000


def original_scale(ranks: FloatArray, scores: FloatArray, weights: FloatArray) -> ScoreMap:
    """Return the map under which ranks have the distribution of the scores, up to ties."""
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    tails = np.geomspace(1e-5, levels[0], 20, endpoint=False)
    levels = np.concatenate([tails, levels, 1.0 - tails[::-1]])
    return _ascending(_quantiles(ranks, weights, levels), _quantiles(scores, weights, levels))


def calibrated_scale(ranks: FloatArray, labels: IntArray, weights: FloatArray) -> ScoreMap:
    """Return the map of ranks to P(y = 1 | rank): isotonic regression, with lines between its steps.

    No step is at 0 or 1, where different ranks would be tied: MCDP(0) is that of the ranks.
    """
    counted = weights > 0.0
    distinct, places = np.unique(ranks[counted], return_inverse=True)
    masses = np.bincount(places, weights[counted])
    shares = np.bincount(places, weights[counted] * labels[counted]) / masses
    values = isotonic_regression(shares, sample_weight=masses)
    _, steps = np.unique(values, return_inverse=True)
    totals = np.bincount(steps, masses)
    centres = np.bincount(steps, masses * distinct) / totals
    least = 0.5 * weights[counted].min() / masses.sum()  # half of a person
    return _ascending(centres, np.clip(np.bincount(steps, masses * values) / totals, least, 1.0 - least))


def _quantiles(values: FloatArray, weights: FloatArray, levels: FloatArray) -> FloatArray:
    """Return weighted quantiles, on lines between the middles of the steps of the distribution."""
    distinct, codes = np.unique(values, return_inverse=True)
    masses = np.bincount(codes, weights)
    middles = (np.cumsum(masses) - 0.5 * masses) / masses.sum()
    return np.interp(levels, middles, distinct)


def _ascending(knots: FloatArray, values: FloatArray) -> ScoreMap:
    """Return a map through the distinct knots inside (0, 1), the ends of which stay."""
    inside = (knots > 0.0) & (knots < 1.0)
    knots, first = np.unique(knots[inside], return_index=True)
    values = np.clip(np.maximum.accumulate(values[inside][first]), 0.0, 1.0)
    if not knots.size:
        knots = values = np.array([0.5])
    return ScoreMap(knots, values)
