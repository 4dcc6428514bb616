"""What holds at every look at a stream: bands around averages of gaps, evidence, the shares of looks."""

from __future__ import annotations

import math

import numpy as np

from localparity._types import FloatArray, IntArray

_DECAY = 1.1
_ALL_LOOKS = 10.584448464950803
"""Riemann's zeta function of 1.1: the sum of all shares before they are divided by it."""


def look_share(look: int) -> float:
    """The share of the error that a look, numbered from 1, may spend; the shares of all looks sum to 1.

    By the union bound, bands that each fail with at most this share of an error ever fail with at most that
    error, however the looks depend on each other. The share decreases slowly: that of day 3,650 is 1 / 87,700
    and that of day 365 is 1 / 7,000, for which a band is 5% shorter.
    """
    return float(look**-_DECAY / _ALL_LOOKS)


def average_radius(variance: float, error: float) -> float:
    r"""How far an average of gaps may be from its expectation, anywhere, but for a probability of `error`.

    Let independent rows i have scores :math:`X_i` of any distributions :math:`F_i`, and weights :math:`c_i`
    that are positive in one group, negative in the other, and sum to at most 1 in absolute value in either.
    The average of the gaps of several periods is such a sum, where :math:`c_i` is :math:`w_t / n_t` or
    :math:`-w_t / m_t` for a period with a weight :math:`w_t`. Then, for every number of blocks k,

    .. math::
        D(y) = \sum_i c_i (1[X_i \le y] - F_i(y)), \qquad
        P\left(\sup_y |D(y)| > \sqrt{\frac{V}{2} \ln\frac{2 k}{\text{error}}} + \frac{2}{k}\right)
        \le \text{error}, \qquad V = \sum_i c_i^2.

    *Proof.* :math:`H = \sum_i |c_i| F_i / 2` increases from 0 to at most 1. Cut the thresholds at
    :math:`y_j = \inf\{y : H(y) \ge j / k\}` into at most k blocks :math:`[y_j, y_{j+1})`, inside each of
    which H increases by at most 1 / k. For y in a block, replace y by the upper end of the block, from the
    left, in the first group's indicators, and by its lower end in the second group's: neither makes the sum
    smaller, and the expectation changes by at most :math:`2 (H(y_{j+1}-) - H(y_j)) \le 2 / k`. So D(y) is
    at most 2 / k above a sum of independent variables with mean 0, each in an interval of length
    :math:`|c_i|`, which exceeds x with a probability of at most :math:`\exp(-2 x^2 / V)` (Hoeffding, 1963,
    theorem 2). The same holds for -D with the groups exchanged, which makes at most 2k sums in all. ∎

    The k used here is close to the best one. The inequality of Dvoretzky, Kiefer and Wolfowitz, and the
    confidence sequence of Howard and Ramdas (2022, *Sequential estimation of quantiles with applications to
    A/B testing and best-arm identification*), ask for one distribution in all periods and for equal weights.
    """
    blocks = math.ceil(4.0 * math.sqrt(2.0 * math.log(2.0 / error) / variance))
    return math.sqrt(0.5 * variance * math.log(2.0 * blocks / error)) + 2.0 / blocks


BETS = 0.0025 * 2.0 ** np.arange(8)
"""How far above the bound a gap is taken to be, one bet each: from a quarter of a point to 32 points."""
_MOST_STAKED = 0.75
_LEAST_VARIANCE = 1e-12
_MOST_LOG = 500.0


def evidence_factors(
    rows: tuple[IntArray, IntArray], sizes: tuple[int, int], centre: FloatArray, bound: float
) -> FloatArray:
    r"""The e-values of one period against a gap of at most `bound` at some cutoffs, one for each bet.

    Let n rows of the first group and m of the second be independent, and let :math:`X_i` and :math:`Y_j` be
    1 for those at or below a cutoff, with probabilities whose averages are p and q. For any a and b with
    :math:`a - b = \text{bound}` and any stake :math:`s \ge 0` with :math:`s a \le n` and
    :math:`s (1 - b) \le m`, all chosen before the period,

    .. math::
        E = \prod_{i=1}^n \left(1 + \frac{s}{n} (X_i - a)\right)
            \prod_{j=1}^m \left(1 - \frac{s}{m} (Y_j - b)\right)

    is an e-value: it is at least 0, and its expectation is at most 1 wherever :math:`p - q \le \text{bound}`.

    *Proof.* No factor is negative. The factors are independent, so that the expectation of E is the product
    of :math:`1 + (s / n)(p_i - a)` and :math:`1 - (s / m)(q_j - b)`. By :math:`1 + x \le e^x` it is at most
    :math:`\exp(s (p - a) - s (q - b)) = \exp(s (p - q - \text{bound})) \le 1`. ∎

    Rows need not be alike, and groups may have any sizes. With :math:`s = d / v`, where v is the variance of
    the measured gap at a and b, ln E grows by about :math:`s (p - q - \text{bound}) - s^2 v / 2`, the most
    for a gap of bound + d. This is the two-sample e-variable of Turner, Ly and Grünwald (2024, *Generic
    E-variables for exact sequential k-sample tests that allow for optional stopping*), for a null hypothesis
    on a difference of shares. Close to shares of 0 and 1 it needs far fewer rows than Hoeffding's inequality.
    A centre that is off costs power alone.

    Parameters
    ----------
    rows : tuple of ndarray
        The rows of either group at or below each cutoff, in the last axis.
    sizes : tuple of int
        n and m.
    centre : ndarray
        The share of both groups that is expected at or below each cutoff.
    bound : float
        The most that the first group's share may be above the second's.

    Returns
    -------
    ndarray
        With one more axis, for the bets.
    """
    (x, y), (n, m) = (some[..., None] for some in rows), sizes
    b = np.clip(centre - bound * n / (n + m), 0.0, 1.0 - bound)[..., None]
    a = b + bound
    variance = np.maximum(a * (1.0 - a) / n + b * (1.0 - b) / m, _LEAST_VARIANCE)
    most = _MOST_STAKED / np.maximum(a / n, (1.0 - b) / m)
    stake = np.minimum(BETS / variance, most)
    first, second = stake / n, stake / m
    log = x * np.log1p(first * (1.0 - a)) + (n - x) * np.log1p(-first * a)
    log += y * np.log1p(-second * (1.0 - b)) + (m - y) * np.log1p(second * b)
    return np.asarray(np.exp(np.minimum(log, _MOST_LOG)))
