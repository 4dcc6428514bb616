"""How far the share of a group above every cutoff may be from the measured one, sharp in the tails too.

A band of one width for all cutoffs, as the inequality of Dvoretzky, Kiefer and Wolfowitz gives, says nothing
where few are selected. Here each number of people selected has the interval of Clopper and Pearson, at one
level for all numbers, which is chosen so that all of the intervals hold together with the confidence asked
for (Aldor-Noiman and others, 2013, *The power to see*). Its probability is computed, not simulated.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from localparity._types import FloatArray, IntArray

_MOST_RANKS = 1500
_TAIL_RANKS = 100
_CLOSE = 0.98
_LEAST_ERROR = 1e-9
_BY_TRANSFORM = 2**17


def shared_error(confidence: float, groups: int) -> float:
    """The error of each of several independent groups whose bands hold together with a confidence.

    Examples
    --------
    >>> round(shared_error(0.95, 1), 4), round(shared_error(0.95, 2), 4)
    (0.05, 0.0253)
    """
    return -math.expm1(math.log(confidence) / groups)


@lru_cache(maxsize=512)
def rate_band(size: int, error: float) -> tuple[FloatArray, FloatArray]:
    r"""Return the ends between which the true rate lies, by how many of a group's rows are selected.

    Let k of n rows have a score above a cutoff t. The k-th highest score lies above t, and of a continuous
    distribution the share above the k-th highest score is the k-th smallest of n uniform numbers,
    :math:`U_{(k)}`, so that the true rate S(t) is at least :math:`U_{(k)}` and, in the same way, at most
    :math:`U_{(k+1)}`. With ties S(t) lies between them all the more. Numbers :math:`l_k` with

    .. math:: P(l_k \le U_{(k)} \le 1 - l_{n+1-k} \text{ for all } k) \ge 1 - \text{error}

    therefore give :math:`l_k \le S(t) \le 1 - l_{n-k}` at all cutoffs together. Here :math:`l_k` is the
    quantile of the distribution of :math:`U_{(k)}`, Beta(k, n + 1 - k), at one level for all k. In groups of
    more than 1,500 rows, k runs over about as many ranks, which are the closer to each other the nearer the
    tails, and a rank between two of them has the end of its neighbour.

    Parameters
    ----------
    size : int
        How many rows the group has.
    error : float
        The probability with which the band may miss.

    Returns
    -------
    tuple of ndarray
        The lower and the upper ends, for 0 to `size` rows selected.

    Examples
    --------
    >>> low, high = rate_band(100, 0.05)
    >>> low[[0, 5, 50, 100]].round(3), high[[0, 5, 50, 100]].round(3)
    (array([0.   , 0.008, 0.346, 0.934]), array([0.066, 0.154, 0.654, 1.   ]))
    """
    ranks = _ranks(size)
    ends = _ends(size, ranks, _local_level(size, error, ranks))
    places = np.searchsorted(ranks, np.arange(size + 1), side="right")
    low = np.concatenate([[0.0], ends])[places]
    high = 1.0 - low[::-1]
    low.flags.writeable = high.flags.writeable = False
    return low, high


def _ranks(size: int) -> IntArray:
    """The ranks whose ends are computed: all, or some that are the closer the nearer the tails."""
    if size <= _MOST_RANKS:
        return np.arange(1, size + 1)
    angles = np.linspace(0.0, 0.5 * np.pi, _MOST_RANKS)
    middle = np.rint(size * np.sin(angles) ** 2).astype(np.int64)
    tail = np.arange(1, _TAIL_RANKS + 1)
    found = np.unique(np.concatenate([tail, middle, size + 1 - tail]))
    return found[found >= 1]


def _ends(size: int, ranks: IntArray, level: float) -> FloatArray:
    from scipy.special import betaincinv

    return np.asarray(betaincinv(ranks, size + 1.0 - ranks, 0.5 * level))


def _local_level(size: int, error: float, ranks: IntArray) -> float:
    """The level of each interval at which all hold together but for an error, from below."""
    if error < _LEAST_ERROR:
        return error / ranks.size  # the union bound, where floats cannot tell a probability from 1
    level = error / (1.0 + 2.0 * math.pow(math.log(ranks.size), 1.5))
    while True:
        missed = 1.0 - hold_probability(size, ranks, _ends(size, ranks, level))
        if _CLOSE * error <= missed <= error:
            return level
        # The error is all but a power of the level, a little below the first: each step is ten times closer.
        level = min(error, level * math.pow(0.5 * (1.0 + _CLOSE) * error / missed, 1.05))


def hold_probability(size: int, ranks: IntArray, ends: FloatArray) -> float:
    """Return the probability that uniform order statistics stay between ends, and their mirror images.

    The number of uniform numbers below u is a Poisson process, given how many there are in all (Khmaladze and
    Shinjikashvili, 2001). It may be less than a rank at that rank's lower end, and must reach a rank at that
    rank's upper end; the distribution of the process that has met all ends so far is carried from one to the
    next.

    Parameters
    ----------
    size : int
        How many uniform numbers there are.
    ranks : ndarray
        Ranks from 1 to `size`, ascending.
    ends : ndarray
        What the order statistic of each rank must not be below; that of rank ``size + 1 - ranks`` must not
        be above 1 less the same.

    Returns
    -------
    float

    Examples
    --------
    >>> round(hold_probability(1, np.array([1]), np.array([0.025])), 12)
    0.95
    """
    places = np.concatenate([ends, 1.0 - ends])
    order = np.argsort(places, kind="stable")
    is_lower_end = order < ranks.size
    reached = np.concatenate([ranks - 1, size + 1 - ranks])[order]
    # The process may go up to what the next lower end allows.
    most = np.minimum.accumulate(np.where(is_lower_end, reached, size)[::-1])[::-1]
    state, low, before = np.ones(1), 0, 0.0
    stops = zip(places[order].tolist(), is_lower_end.tolist(), reached.tolist(), most.tolist(), strict=True)
    for place, at_lower, count, high in stops:
        state = _advance(state, size * (place - before), high - low + 1)
        before = place
        if not at_lower and count > low:
            state, low = state[count - low :], count
    left = size - low - np.arange(state.size)
    mean = size * (1.0 - before)
    reached_all = np.exp(left * math.log(mean) - mean - _log_factorials(left))
    return float(state @ reached_all) / math.exp(size * math.log(size) - size - math.lgamma(size + 1.0))


def _advance(state: FloatArray, mean: float, length: int) -> FloatArray:
    """The distribution of a count after a Poisson number more, cut to a length."""
    if mean <= 0.0:
        return state[:length]
    terms = int(min(length, mean + 10.0 * math.sqrt(mean) + 25.0))
    steps = np.arange(terms)
    chances = np.exp(steps * math.log(mean) - mean - _first_log_factorials(_power_of_two(terms))[:terms])
    if state.size * terms <= _BY_TRANSFORM:
        return np.convolve(state, chances)[:length]
    size = _power_of_two(state.size + terms)
    both = np.fft.irfft(np.fft.rfft(state, size) * np.fft.rfft(chances, size), size)
    return np.maximum(both[: min(length, state.size + terms - 1)], 0.0)


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


@lru_cache(maxsize=32)
def _first_log_factorials(count: int) -> FloatArray:
    return _log_factorials(np.arange(count))


def _log_factorials(numbers: IntArray) -> FloatArray:
    from scipy.special import gammaln

    return np.asarray(gammaln(numbers + 1.0))
