"""The map that a group's scores go through."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """An increasing map of the score range to itself: straight lines from knot to knot.

    The ends of the range stay where they are, unless they are knots that moved. Between two knots that stay,
    every score stays, to the last bit.

    Attributes
    ----------
    knots, values : ndarray
        Scores, ascending, and what each of them becomes.
    score_range : tuple of float
        The lowest and the highest score there can be.

    Examples
    --------
    >>> halve = ScoreMap(np.array([0.2, 0.8]), np.array([0.1, 0.4]))
    >>> halve(np.array([0.1, 0.2, 0.5, 1.0]))
    array([0.05, 0.1 , 0.25, 1.  ])
    """

    knots: FloatArray
    values: FloatArray
    score_range: tuple[float, float] = (0.0, 1.0)

    @cached_property
    def _before(self) -> NDArray[np.int64]:
        # Imported here: numba is not loaded with the package.
        from localparity.models.repair import _kernels

        return _kernels.guide(self.knots, *self.score_range)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """What each score becomes."""
        from localparity.models.repair import _kernels

        return _kernels.follow(scores, self.knots, self.values, self._before, *self.score_range)
