"""A score whose every threshold selects the best set that a bound on the groups' selection rates allows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter1d

from localparity._types import FloatArray, IntArray
from localparity.models.repair.blind import _kernels
from localparity.models.repair.blind._features import BlindRows, GroupFeatures

RATES: FloatArray = np.concatenate(
    [
        np.geomspace(5e-4, 0.1, 40, endpoint=False),
        np.linspace(0.1, 0.97, 65, endpoint=False),
        1.0 - np.geomspace(0.03, 2e-3, 16),
    ]
)
"""The selection rates whose best sets make up a score: dense where few are, or few are not, selected."""

_BAND = 0.01
_ROWS_IN_BAND = 30
_SMOOTHING = 1.5
_TOLERANCE = 2e-4


class NestedScore(NamedTuple):
    """For each selection rate the multipliers and the threshold of its set.

    At rate q, rows with ``score - multipliers(q) . features > threshold(q)`` are selected. Between two rates
    both change linearly. The sets of different rates need not be nested; a row's rank is the share of rates
    at which it is selected, the increasing rearrangement of its selections, and ranks' sets are nested.
    """

    rates: FloatArray
    multipliers: FloatArray
    thresholds: FloatArray

    def __call__(self, scores: FloatArray, features: FloatArray) -> FloatArray:
        """Return the rank of each row, in [0, 1]."""
        return _kernels.rank_rows(scores, features, *self)


class Dual(NamedTuple):
    """The problems of all rates: scores, features, and what counts for which constraint.

    At rate q the most positives are selected by the set whose multipliers and threshold minimise the dual::

        E[(score - threshold - multipliers . features)+] + q threshold + bound sum(multipliers+)

    where the multipliers of each label sum to 0. Its derivatives are the shares of the groups selected. Each
    is taken as the mean of two estimates: the share counted among the group's rows, which has no bias, and
    the share by the predicted probabilities, which has less noise.
    """

    scores: FloatArray
    features: FloatArray
    places: IntArray
    shares: FloatArray
    weights: FloatArray
    strata: IntArray

    @classmethod
    def of(cls, rows: BlindRows, features: GroupFeatures) -> Dual:
        """Return the problems of rows."""
        places = features.places(rows)
        counted = places >= 0
        totals = np.bincount(places[counted], rows.weights[counted], minlength=features.masses.size)
        shares = np.where(counted, rows.weights / np.where(counted, totals[places], 1.0), 0.0)
        columns = features(rows.scores, rows.probabilities)
        return cls(rows.scores, columns, places, shares, rows.weights, features.strata)

    def solve(self, bound: float, start: FloatArray | None = None) -> NestedScore:
        """Return the score whose groups' selection rates differ by at most `bound` at every rate.

        The multipliers are smoothed over the rates, whose neighbours differ by noise; `start` are those of
        another bound.
        """
        found = self.solve_rates(bound, start)
        return self._thresholds(gaussian_filter1d(found, _SMOOTHING, axis=0, mode="nearest"))

    def solve_rates(self, bound: float, start: FloatArray | None = None) -> FloatArray:
        """Return each rate's multipliers.

        The rates are solved from both ends to the middle, each from the solution before it, or from `start`.
        At the ends almost nobody, or everybody, is selected.
        """
        sizes = np.bincount(self.places[self.places >= 0], minlength=self.features.shape[1])
        tolerance = max(_TOLERANCE, 0.5 / max(int(sizes.min()), 1))
        widest = max(_BAND, _ROWS_IN_BAND / self.scores.size)
        found = np.zeros((RATES.size, self.features.shape[1]))
        middle = int(np.searchsorted(RATES, 0.5))
        for places in (range(middle), range(RATES.size - 1, middle - 1, -1)):
            nearest = np.zeros(found.shape[1])
            for place in places:
                rate = float(RATES[place])
                band = min(widest, 0.5 * rate, 0.5 * (1.0 - rate))
                first = nearest if start is None else start[place]
                nearest = _kernels.solve_rate(*self, first, rate, band, bound, tolerance)
                found[place] = nearest
        return found

    def _thresholds(self, multipliers: FloatArray) -> NestedScore:
        """Add the thresholds, and the rates 0 and 1 at which nobody and everybody is selected."""
        total = self.weights.sum()
        inner = [
            _kernels.find_threshold(
                _kernels.margins(self.scores, self.features, row), self.weights, rate * total
            )
            for rate, row in zip(RATES, multipliers, strict=True)
        ]
        farthest = 1.0 + np.abs(multipliers).max() * self.features.sum(axis=1).max()
        return NestedScore(
            np.concatenate([[0.0], RATES, [1.0]]),
            np.vstack([multipliers[:1], multipliers, multipliers[-1:]]),
            np.concatenate([[farthest], inner, [-farthest]]),
        )
