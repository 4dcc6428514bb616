r"""Smoothed cumulative distributions of whole training sets, known everywhere at the cost of one pass.

The smoothed distribution of some people is a sum of one sigmoid a person. Their scores are counted into bins
that are narrow beside the sigmoid's width, 1/temperature, with four moments each; Taylor's series of the
sigmoid about the middle of a bin then gives the sum at every point of a grid, by a convolution. Values and
slopes on the grid make a cubic spline. With 32 bins to the width, the spline is within :math:`10^{-9}` of
the sum, whatever the number of rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from localparity._types import FloatArray
from localparity.models.trees._kernels import ORDERS

_BINS_PER_WIDTH = 32
_LEAST_BINS = 512


class Spline(NamedTuple):
    """Values and slopes on an equally spaced grid of [0, 1], the last axis; between them a cubic."""

    values: FloatArray
    slopes: FloatArray

    def difference(self, first: int, second: int) -> Spline:
        """Of the splines on the first axis, one less another."""
        return Spline(self.values[first] - self.values[second], self.slopes[first] - self.slopes[second])

    def cubics(self) -> FloatArray:
        """Return the coefficients of 1, u, u^2 and u^3 in each piece, where u goes from 0 to 1."""
        pieces = self.values.size - 1
        low, rise = self.values[:-1], np.diff(self.values)
        left, right = self.slopes[:-1] / pieces, self.slopes[1:] / pieces
        return np.stack([low, left, 3.0 * rise - 2.0 * left - right, left + right - 2.0 * rise], axis=1)


class Smoother:
    """Sums sigmoids of one steepness, the temperature.

    Examples
    --------
    >>> smoother = Smoother(20.0)
    >>> moments = np.zeros((1, smoother.bins, 4))
    >>> moments[0, :, 0] = 1.0 / smoother.bins
    >>> float(smoother.distributions(moments).values[0, smoother.bins // 2].round(6))
    0.5
    """

    def __init__(self, temperature: float) -> None:
        from scipy import fft

        self.temperature = temperature
        wanted = max(_LEAST_BINS, math.ceil(_BINS_PER_WIDTH * temperature))
        self.bins = int(fft.next_fast_len(wanted, real=True))
        self.grid = np.arange(self.bins + 1) / self.bins
        self._length = int(fft.next_fast_len(2 * self.bins + 1, real=True))
        distance = np.arange(self._length, dtype=np.float64)
        distance[distance > self.bins] -= self._length  # what lies to the left comes round the end
        steps = temperature / self.bins
        self._to_grid = fft.rfft(_sigmoid_derivatives((distance - 0.5) * steps), axis=1)
        self._along_grid = fft.rfft(_sigmoid_derivatives(distance * steps)[1:3], axis=1)

    def distributions(self, moments: FloatArray) -> Spline:
        """Return the smoothed distribution of each cell, from moments of shape (n_cells, bins, 4)."""
        counted = self._transform(moments.transpose(0, 2, 1))
        values = self._back((counted * self._to_grid[:ORDERS]).sum(axis=1))
        slopes = self._back((counted * self._to_grid[1:]).sum(axis=1))
        return Spline(values, slopes * self.temperature)

    def bump(self, thresholds: FloatArray, shares: FloatArray) -> Spline:
        r"""Return how fast smoothed distributions fall as a score p rises, summed over thresholds.

        .. math:: \sum_k a_k \tau \sigma'(\tau (t_k - p))

        for thresholds :math:`t_k`, a few or the whole grid, and their signed shares :math:`a_k`.
        """
        if shares.size == self.grid.size:
            values, slopes = self._back(self._transform(shares) * self._along_grid)
        else:
            distance = self.temperature * (self.grid[:, None] - thresholds)
            values, slopes = (row @ shares for row in _sigmoid_derivatives(distance)[1:3])
        return Spline(values * self.temperature, slopes * self.temperature**2)

    def _transform(self, on_grid: FloatArray) -> FloatArray:
        from scipy import fft

        return np.asarray(fft.rfft(on_grid, self._length, axis=-1))

    def _back(self, transformed: FloatArray) -> FloatArray:
        from scipy import fft

        return np.asarray(fft.irfft(transformed, self._length, axis=-1)[..., : self.bins + 1])


def _sigmoid_derivatives(argument: FloatArray) -> FloatArray:
    """Return the sigmoid and its derivatives up to the fourth, on a new first axis."""
    from scipy.special import expit

    value = expit(argument)
    bump = value * expit(-argument)
    odd = 1.0 - 2.0 * value
    return np.stack([value, bump, bump * odd, bump * (1.0 - 6.0 * bump), bump * odd * (1.0 - 12.0 * bump)])
