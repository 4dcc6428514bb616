r"""Upper ends for MCDP, which are much shorter than a band.

Some pair of groups, of people of some label, has the largest MCDP(epsilon) in the population, and some window
carries it. Neither depends on the sample, so only their own error counts: no other pair, label or window
needs to hold with them, and the largest upper end over pairs holds with the probability of one.

**Epsilon 0.** The window is one threshold. There the measured gap is a difference of two independent binomial
shares, and the measured MCDP of the pair is at least that. A true MCDP of :math:`\delta` is rejected where

.. math:: \sup_{p - q = \delta} P(X / n_a - Y / n_b \le \text{measured}) \le \alpha, \qquad
    X \sim \mathrm{Bin}(n_a, p), \; Y \sim \mathrm{Bin}(n_b, q),

and the upper end is the largest :math:`\delta` that is not. The probability falls with :math:`\delta` and
rises with the measured value, so the true MCDP lies above the upper end with probability at most
:math:`\alpha`, at any sizes and with ties.

The binomial distribution of the larger sample is bounded by the inequality of Zubkov and Serov (2013), for
0 <= k < n,

.. math:: P(X \le k) \le \Phi\big( \operatorname{sign}(x - p) \sqrt{2 n \, \mathrm{KL}(x, p)} \big),
    \qquad x = (k + 1) / n,

with the divergence KL between two Bernoulli laws. The smaller sample is summed over its values. Where it has
more than 1,000 rows, or is so small beside the other that its values show, the larger one is bounded likewise
and integrated. That makes the probability a smooth function of p, whose supremum is taken over a grid.

**Epsilon > 0.** The smallest gap of a whole window has to hold, whose sign may change inside: the band of the
pair alone (`localparity.uncertainty._bands`) holds for every window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from localparity._types import FloatArray
from localparity.metrics._gap_curve import GapCurve
from localparity.uncertainty._bands import Compared, IndependentSamples, pair_radii
from localparity.uncertainty._normal import normal_cdf

# Where chances are tried between the least and the most that are possible, closer together near both.
_PLACES = np.sin(0.5 * np.pi * np.sin(0.5 * np.pi * np.linspace(0.0, 1.0, 49)[:, None]) ** 2) ** 2
# Measured gaps and sums of shares that differ by less count as equal.
_ROUNDING = 1e-9
_MOST_SUMMED = 1000
_CELLS = 96
_HALVINGS = 8
_TINY = 1e-300
# So many pairs all have the shortest end.
_MOST_CLOSE = 50


def hoeffding_margin(sizes: tuple[float, float], error: float) -> float:
    """Return how far a difference of two shares may be below the true one, by Hoeffding's inequality.

    Examples
    --------
    >>> round(hoeffding_margin((1000, 1000), 0.05), 4)
    0.0547
    """
    first, second = sizes
    return math.sqrt(0.5 * math.log(1.0 / error) * (1.0 / first + 1.0 / second))


def threshold_end(measured: float, sizes: tuple[float, float], error: float) -> float:
    """Return what the largest gap of two samples is at most, but for a probability `error`.

    Examples
    --------
    >>> [round(threshold_end(0.1, (n, n), 0.05), 4) for n in (10, 1000, 10_000)]
    [0.5319, 0.1376, 0.1118]
    """
    if measured >= 1.0:
        return 1.0
    tail = _GapTail(measured, sizes)
    low, high = measured, min(measured + hoeffding_margin(sizes, error), 1.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if tail(middle) > error else (low, middle)
    return high


class _GapTail:
    """Bounds how likely the gap of two samples is no larger than measured, where the true one is larger.

    The gap of shares X / n and 1 - Y / m is at most `measured` where X / n + Y / m is at most 1 + `measured`.
    """

    def __init__(self, measured: float, sizes: tuple[float, float]) -> None:
        self._most = 1.0 + measured + _ROUNDING
        smaller, larger = sorted(sizes)
        # Where X / n is known more closely than the values of Y / m are apart, a sum over these rises and
        # falls with the chances, by up to 2% between the two ratios below.
        ratio = smaller / math.sqrt(larger)
        self._sums = smaller <= _MOST_SUMMED and ratio >= 1.2
        self._factor = 1.03 if self._sums and ratio < 2.0 else 1.0
        self._bounded, self._averaged = (larger, smaller) if self._sums else (smaller, larger)

    def __call__(self, gap: float) -> float:
        """Return the largest probability over the chances of X and Y, whose sum is 1 + `gap`."""
        places = np.clip(_PLACES, _ROUNDING, 1.0 - _ROUNDING) * (1.0 - gap)
        chance, other = gap + places, 1.0 - places
        share, weight = (_summed if self._sums else _integrated)(self._averaged, other)
        most = self._most - share
        below = normal_cdf(signed_root(np.clip(most + 1.0 / self._bounded, 0.0, 1.0), chance, self._bounded))
        below[most < 0.0] = 0.0
        below[most >= 1.0] = 1.0
        return self._factor * float((below * weight).sum(axis=1).max())


def signed_root(share: FloatArray, chance: FloatArray, size: float) -> FloatArray:
    """Return the signed root of twice the divergence of `size` draws: near a standard normal value."""
    other = 1.0 - share
    divergence = share * np.log(np.maximum(share, _TINY) / chance)
    divergence += other * np.log(np.maximum(other, _TINY) / (1.0 - chance))
    return np.asarray(np.sign(share - chance) * np.sqrt(2.0 * size * np.maximum(divergence, 0.0)))


def _summed(size: float, chance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each chance, the values that a sample's share can take, and their probabilities."""
    # Farther away than this from its mean, the count lies with a probability below 1e-13.
    reach = math.ceil(4.0 * math.sqrt(size))
    count = np.round(size * chance).astype(np.int64) + np.arange(-reach, reach + 1)
    inside = (count >= 0) & (count <= size)
    count = np.clip(count, 0, int(size))
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, size + 1.0)))])
    ways = factorials[-1] - factorials[count] - factorials[::-1][count]
    weight = np.exp(ways + count * np.log(chance) + (size - count) * np.log1p(-chance))
    return count / size, np.where(inside, weight, 0.0)


def _integrated(size: float, chance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each chance, values that a sample's share is at least, in the middle of cells, and weights."""
    reach = 7.0 * np.sqrt(chance * (1.0 - chance) / size) + 40.0 / size
    edges = np.clip(chance + reach * np.linspace(-1.0, 1.0, _CELLS + 1), 0.0, 1.0)
    weight = np.diff(normal_cdf(signed_root(edges, chance, size)), prepend=0.0, append=1.0, axis=1)
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
    middle = np.concatenate([np.zeros_like(chance), middle, edges[:, -1:]], axis=1)
    return middle - 1.0 / size, weight


def upper_ends(pairs: Sequence[Compared], epsilons: FloatArray, most: FloatArray, error: float) -> FloatArray:
    """Return what MCDP of each pair is at most at each epsilon, given what it measures at most.

    Each end holds but for a probability `error`, by itself. Of very many pairs, those that cannot have the
    largest end at epsilon 0 take Hoeffding's margin, which is wider and quick to compute.
    """
    ends = most + pair_radii(pairs, error)[:, None]
    for place in np.flatnonzero(epsilons == 0.0):
        ends[:, place] = _threshold_ends(pairs, most[:, place], error)
    return np.minimum(ends, 1.0)


def _threshold_ends(pairs: Sequence[Compared], most: FloatArray, error: float) -> FloatArray:
    """Return what the largest gap of each pair is at most."""
    samples = [IndependentSamples.of(pair) for pair in pairs]
    ends = most + [each.scale * hoeffding_margin(each.sizes, error) for each in samples]
    largest = 0.0
    for number, place in enumerate(np.argsort(-ends)):
        if number >= _MOST_CLOSE and ends[place] <= largest:
            break
        scale, sizes = samples[place]
        ends[place] = scale * threshold_end(most[place] / scale, sizes, error)
        largest = max(largest, ends[place])
    return np.asarray(ends)


def upper_end(curves: Sequence[GapCurve], epsilon: float, confidence: float) -> float:
    """Return what MCDP(epsilon) in the population is at most, with probability `confidence`."""
    epsilons = np.array([epsilon])
    most = np.array([curve.bounds()[1].mcdp_at(epsilons) for curve in curves])
    return float(upper_ends(curves, epsilons, most, 1.0 - confidence).max())
