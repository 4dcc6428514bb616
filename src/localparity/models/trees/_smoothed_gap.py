"""Smoothed cumulative distributions of whole training sets, known everywhere at the cost of one pass.

The smoothed distribution of some people is a sum of one sigmoid a person. Their scores are counted into bins
that are narrow next to the sigmoid's width, 1/temperature, with four moments each; Taylor's series of the
sigmoid about the middle of a bin then gives the sum at every point of a grid, by a convolution. Values and
slopes on the grid make a cubic spline. With 32 bins to the width, the spline is within :math:`10^{-9}` of
the sum, whatever the number of rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from localparity._types import FloatArray
from localparity.models.trees._kernels import ORDERS, highest_level, spline_slope

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
    """Sums sigmoids of one steepness, the temperature."""

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


# The gap is a cubic spline. Between its nodes, which are the grid and the extrema inside the grid's pieces,
# it is monotone: its maximum is at a node, and where it is above a level is found by one walk over the nodes.


_HAIR = 1e-9


class Maximum(NamedTuple):
    """A disparity, and the thresholds and shares by which it changes.

    When the gap changes, the disparity changes by the sum of the gap's changes at the thresholds times their
    shares, which have the gap's sign.
    """

    value: float
    thresholds: FloatArray
    shares: FloatArray


def soft_maximum(gap: Spline, grid: FloatArray, sharpness: float) -> Maximum:
    r"""Return the p-norm of a smoothed gap over [0, 1], with p the sharpness, which tends to its maximum.

    .. math:: \Bigl(\int_0^1 |g(t)|^p dt\Bigr)^{1/p}
    """
    widths = np.full(grid.size, 1.0 / (grid.size - 1))
    widths[[0, -1]] *= 0.5
    height = np.abs(gap.values)
    top = height.max()
    if top == 0.0:
        return Maximum(0.0, grid, np.zeros(grid.size))
    relative = height / top
    norm = float(widths @ relative**sharpness) ** (1.0 / sharpness)
    shares = widths * (relative / norm) ** (sharpness - 1.0) * np.sign(gap.values)
    return Maximum(float(top * norm), grid, shares)


def largest(gap: Spline, epsilon: float) -> Maximum:
    """Return the max-min point of MCDP(epsilon) of one smoothed gap.

    It is the two ends of a window with the shares that keep the window in balance, or the one threshold
    inside, or at the end of a window that is cut, where the gap is smallest.
    """
    cubics = gap.cubics()
    nodes, heights = _nodes(cubics, gap.values)
    positive, negative = (
        _largest_above(sign * cubics, nodes, sign * heights, epsilon) for sign in (1.0, -1.0)
    )
    if positive.value >= negative.value:
        return positive
    return negative._replace(shares=-negative.shares)


def _nodes(cubics: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the grid and the extrema inside its pieces, in order, with the gap there."""
    _, left, square, cube = cubics.T
    within = square * square - 3.0 * cube * left
    turning = np.flatnonzero((within > 0.0) & (left != 0.0))
    _, left, square, cube = cubics[turning].T
    root = np.sqrt(within[turning])
    # Both roots of left + 2 square u + 3 cube u^2, in the form in which nothing cancels.
    larger = -(square + np.copysign(root, square))
    with np.errstate(divide="ignore"):
        roots = np.concatenate([larger / (3.0 * cube), left / larger])
    inside = (roots > 0.0) & (roots < 1.0)
    piece, u = np.tile(turning, 2)[inside], roots[inside]
    height = np.sum(cubics[piece] * u[:, None] ** np.arange(4), axis=1)
    nodes = np.concatenate([np.arange(values.size), piece + u]) / (values.size - 1)
    order = np.argsort(nodes, kind="stable")
    return nodes[order], np.concatenate([values, height])[order]


def _largest_above(cubics: FloatArray, nodes: FloatArray, heights: FloatArray, epsilon: float) -> Maximum:
    """Return the max-min point where the gap is above 0."""
    level, low, high = highest_level(cubics, nodes, heights, epsilon)
    if low > high:
        return Maximum(0.0, np.zeros(1), np.zeros(1))
    starts, ends = low == nodes[0], high == nodes[-1]
    if high - low > epsilon * (2 - starts - ends) + _HAIR:
        inside = (nodes >= low) & (nodes <= high)
        lowest = int(np.argmin(heights[inside]))
        return Maximum(level, nodes[inside][[lowest]], np.ones(1))
    if starts or ends:
        return Maximum(level, np.array([high if starts else low]), np.ones(1))
    rise, fall = abs(spline_slope(cubics, low)), abs(spline_slope(cubics, high))
    share = fall / (rise + fall) if rise + fall > 0.0 else 0.5
    return Maximum(level, np.array([low, high]), np.array([share, 1.0 - share]))
