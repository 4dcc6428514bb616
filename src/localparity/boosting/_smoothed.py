r"""Smoothed cumulative distributions of whole training sets, known everywhere at the cost of one pass.

The smoothed distribution of some people is a sum of one sigmoid a person. Their scores are counted into bins
that are narrow beside the sigmoid's width, 1/temperature, with four moments each: Taylor's series of the sigmoid
about the middle of a bin then gives the sum at every point of a grid by a convolution. Values and slopes on
the grid make a cubic spline. Bins of 1/64 of the sigmoid's width keep the spline within
:math:`10^{-10}` of the sum, whatever the number of rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from localparity._validation import FloatArray
from localparity.boosting._kernels import ORDERS

_BINS_PER_WIDTH = 64
_LEAST_BINS = 512

LARGEST_TEMPERATURE = 4096.0


class Spline(NamedTuple):
    """Values and slopes on an equally spaced grid of [0, 1], the last axis; between them a cubic."""

    values: FloatArray
    slopes: FloatArray

    def difference(self, first: int, second: int) -> Spline:
        """Of the splines on the first axis, one less another."""
        return Spline(self.values[first] - self.values[second], self.slopes[first] - self.slopes[second])


class Smoother:
    """Makes smoothed cumulative distributions of binned moments, at one temperature.

    Parameters
    ----------
    temperature : float
        The steepness of the sigmoid.

    Examples
    --------
    >>> smoother = Smoother(20.0)
    >>> moments = np.zeros((1, smoother.bins, 4))
    >>> moments[0, :, 0] = 1.0 / smoother.bins
    >>> float(smoother.spline(moments).values[0, smoother.bins // 2].round(6))
    0.5
    """

    def __init__(self, temperature: float) -> None:
        from scipy import fft

        self.temperature = temperature
        wanted = max(_LEAST_BINS, math.ceil(_BINS_PER_WIDTH * temperature))
        self.bins = int(fft.next_fast_len(wanted, real=True))
        self._length = int(fft.next_fast_len(2 * self.bins + 1, real=True))
        distance = np.arange(self._length)
        distance[distance > self.bins] -= self._length  # what lies left of a bin comes round the end
        bumps = _sigmoid_derivatives(temperature * (distance - 0.5) / self.bins, ORDERS + 1)
        self._kernels = fft.rfft(bumps, axis=1)

    def spline(self, moments: FloatArray) -> Spline:
        """The smoothed distribution of each cell of people.

        Parameters
        ----------
        moments : ndarray of shape (cells, bins, 4)
            What `bin_moments` counted, each cell's weights summing to one.

        Returns
        -------
        Spline
            With a row a cell.
        """
        from scipy import fft

        counted = fft.rfft(moments.transpose(0, 2, 1), self._length, axis=2)
        sums = np.stack(
            [
                (counted * self._kernels[:ORDERS]).sum(axis=1),
                (counted * self._kernels[1:]).sum(axis=1) * self.temperature,
            ]
        )
        values, slopes = fft.irfft(sums, self._length, axis=2)[:, :, : self.bins + 1]
        return Spline(values, slopes)


def _sigmoid_derivatives(argument: FloatArray, orders: int) -> FloatArray:
    """The sigmoid and its derivatives of order 1 to orders - 1, a row each."""
    from scipy.special import expit

    value = expit(argument)
    bump = value * expit(-argument)
    odd = 1.0 - 2.0 * value
    rows = [value, bump, bump * odd, bump * (1.0 - 6.0 * bump), bump * odd * (1.0 - 12.0 * bump)]
    return np.stack(rows[:orders])
