r"""Groups' distributions drawn together, to the least extent that a bound on their gap asks for.

At a threshold y let m(y) and M(y) be the lowest and the highest of the groups' cumulative distributions, and
C(y) that of their Wasserstein barycentre, whose quantiles are the means of the groups' quantiles and which
lies between the two. Where M - m exceeds the bound b, the band

.. math::
    L = C - (C - m) \frac{b}{M - m}, \qquad U = C + (M - C) \frac{b}{M - m}

is exactly b wide and holds C; elsewhere it is [m, M]. L and U do not fall as m, M or C rises, so they are
cumulative distributions themselves, and so is every group's clipped between them. That is the repair: at each
threshold the gap becomes min(M - m, b), every distribution moves towards the barycentre or not at all, and
with b = 0 all of them are the barycentre. A person whose rank in the group is u goes to the nearest score
between the u-quantiles of U and of L, which keeps the order inside the group.

MCDP(epsilon) forgives a gap above the bound that is too short to carry a window: such stretches stay as they
are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray
from localparity._validation import rounding_terms, score_resolution
from localparity.metrics._gap_curve import units_of
from localparity.models.repair import _kernels
from localparity.models.repair._score_map import ScoreMap


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
class Band:
    """The groups' distributions, and their weights in the barycentre, which sum to 1.

    Examples
    --------
    >>> half = np.array([0.5, 1.0])
    >>> groups = [Distribution(np.array([0.2, 0.4]), half), Distribution(np.array([0.6, 0.8]), half)]
    >>> band = Band(groups, np.array([0.5, 0.5]))
    >>> [moved.values.round(3).tolist() for moved in band.maps(0.5)]
    [[0.2, 0.6], [0.4, 0.8]]
    >>> [moved.values.round(3).tolist() for moved in band.maps(0.0)]
    [[0.4, 0.6], [0.4, 0.6]]
    """

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

    def maps(self, width: float, reach: float = 0.0) -> list[ScoreMap]:
        """Return each group's map into the band of a width.

        Stretches of wider gaps whose half-width, as a fraction of the score range, is at most `reach` stay as
        they are.
        """
        grid, lowest, centre, highest = self._envelope
        lowest, highest = lowest.copy(), highest.copy()
        # Any stretch at all carries a window of half-width 0.
        _kernels.narrow(*self._units, lowest, centre, highest, width, reach if reach > 0.0 else -1.0)
        return [
            ScoreMap(group.scores, _kernels.move(*group, grid, lowest, centre, highest), self.score_range)
            for group in self.distributions
        ]
