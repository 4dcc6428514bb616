"""Bands that hold at every look at a stream: how far an average of gaps is off, and what a look may spend."""

from __future__ import annotations

import math

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
