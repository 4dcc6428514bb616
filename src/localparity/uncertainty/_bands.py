"""How far a pair's true gap may be from the measured one, everywhere at once: the one confidence band.

MCDP(epsilon) of a pair is off by no more than its gap is off at the worst threshold, whatever epsilon. A band
around every gap that holds with some probability therefore gives intervals for all pairs, labels and epsilons
that hold together with that probability, at parity and on plateaus too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, get_args

import numpy as np

from localparity._types import FloatArray, Group, IntervalMethod
from localparity._validation import as_choice, as_count, as_probability
from localparity.counts._comparison import EVERYONE, Comparison
from localparity.counts._score_counts import ScoreCounts
from localparity.uncertainty._deviations import deviations_of
from localparity.uncertainty._normal import normal_cdf
from localparity.uncertainty._resampling import (
    Draws,
    Resampled,
    critical_value,
    deviation_resamples,
    least_resamples,
    repeat,
)

Number = float | FloatArray
_HALVINGS = 30
_FOR_SCALE = 0.1
"""The part of an error that the share of a group in the population takes."""

INTERVAL_METHODS: tuple[str, ...] = get_args(IntervalMethod)


class Compared(Protocol):
    """Two groups among the people of a label: a `GapCurve`, or what was measured of one."""

    @property
    def groups(self) -> tuple[Group, Group]: ...
    @property
    def label(self) -> int | None: ...
    @property
    def sizes(self) -> tuple[float, float]: ...


class IndependentSamples(NamedTuple):
    """Two independent samples whose gap, times a scale, is that of a pair.

    Of a group and everyone, these are the group and the rest, since
    :math:`F_g - F_{all} = (1 - p_g)(F_g - F_{rest})`. The scale is then the share of the rest in the sample,
    and everyone is a sample of the population, so that the share is random too.
    """

    scale: float
    sizes: tuple[float, float]

    @classmethod
    def of(cls, pair: Compared) -> IndependentSamples:
        """Return the samples that a pair compares."""
        first, second = pair.sizes
        if pair.groups[1] is not EVERYONE:
            return cls(1.0, pair.sizes)
        rest = second - first
        return cls(rest / second, (first, rest))

    @property
    def shared(self) -> bool:
        """Whether one of the samples is the rest of everyone."""
        return self.scale < 1.0

    def scale_ends(self, error: float) -> tuple[float, float]:
        """Return what the scale is at least and at most in the population, each but for an `error`.

        The share of the rest is a binomial one: these are the ends of Clopper and Pearson.

        Examples
        --------
        >>> [round(end, 3) for end in IndependentSamples(0.9, (20, 180)).scale_ends(0.05)]
        [0.858, 0.933]
        """
        if not self.shared:
            return 1.0, 1.0
        from scipy.special import betaincinv

        first, rest = self.sizes
        return float(betaincinv(rest, first + 1, error)), float(1.0 - betaincinv(first, rest + 1, error))


def deviation_tail(sizes: tuple[Number, Number], radius: Number) -> FloatArray:
    r"""Bound the probability that the gap of two independent samples is off by more than a radius somewhere.

    The gap of samples a and b is off by at most the larger of :math:`D_a^+ + D_b^-` and
    :math:`D_a^- + D_b^+`, the largest errors of the two distributions in opposite directions. Each exceeds x
    with probability at most :math:`e^{-2 n x^2}` (Massart, 1990, where that is below a half, and Smirnov's
    exact distribution elsewhere; ties make it less likely), so that it is at most a Rayleigh variable, and
    a and b are independent. With A = 2 n_a, B = 2 n_b, T = A + B and the radius r, one of the two sums
    exceeds r with probability at most

    .. math:: \frac{2}{T} \Big[ B e^{-A r^2} + A e^{-B r^2} + A B r \sqrt{\pi / T} \, e^{-A B r^2 / T}
        \Big( \operatorname{erf} \frac{A r}{\sqrt T} + \operatorname{erf} \frac{B r}{\sqrt T} \Big) \Big].

    It needs independent rows of one weight, nothing else. It holds for the gap between F_a at any threshold
    and F_b at any other one, too: scores may be repaired in between.

    Examples
    --------
    >>> deviation_tail((1000, 1000), 0.1).round(5)
    np.float64(0.00051)
    """
    first, second = (2.0 * size for size in sizes)
    both, square = first + second, radius * radius
    alone = second * np.exp(-first * square) + first * np.exp(-second * square)
    reach = radius / np.sqrt(both)
    errors = 2.0 * sum(normal_cdf(math.sqrt(2.0) * side * reach) for side in (first, second)) - 2.0
    shared = np.sqrt(np.pi) * first * second * reach * np.exp(-first * second * square / both)
    return np.asarray(2.0 / both * (alone + shared * errors))


def band_radius(sizes: tuple[Number, Number], error: float) -> FloatArray:
    """Return how far the gap of two independent samples is off anywhere, but for a probability `error`.

    Examples
    --------
    >>> band_radius((np.array([1000, 100]), np.array([1000, 10_000])), 0.05).round(4)
    array([0.0712, 0.1423])
    """
    # Either distribution may be off by this much, by the inequality of Dvoretzky, Kiefer and Wolfowitz.
    high = np.sqrt(0.5 * math.log(4.0 / error)) * sum(1.0 / np.sqrt(size) for size in sizes)
    low = np.zeros_like(high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = deviation_tail(sizes, middle) > error
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(high)


def pair_radii(pairs: Sequence[Compared], error: float) -> FloatArray:
    """Return the radius of the band of each pair by itself; everyone has the groups' shares of the sample."""
    samples = [IndependentSamples.of(pair) for pair in pairs]
    first, second = np.array([each.sizes for each in samples]).T
    return np.array([each.scale for each in samples]) * band_radius((first, second), error)


def band_ends(pairs: Sequence[Compared], measured: FloatArray, error: float, *, upper: bool) -> FloatArray:
    """Return what MCDP of each pair (rows) is at least, or at most, given what it measures at each epsilon.

    The ends of one pair hold together at all epsilons, but for a probability `error`. The scale of a group
    and everyone takes a part of the error, and the gap to the rest what is left.
    """
    samples = [IndependentSamples.of(pair) for pair in pairs]
    first, second = np.array([each.sizes for each in samples]).T
    for_scale = _FOR_SCALE * error if any(each.shared for each in samples) else 0.0
    radii = band_radius((first, second), error - for_scale)
    gaps = measured / np.array([each.scale for each in samples])[:, None]
    moved = np.clip(gaps + (radii if upper else -radii)[:, None], 0.0, 1.0)
    return np.asarray(np.array([each.scale_ends(for_scale)[upper] for each in samples])[:, None] * moved)


def finite_sample_radii(pairs: Sequence[Compared], confidence: float) -> FloatArray:
    """The radius of each pair's band; all hold together, since the error is shared by the pairs."""
    return pair_radii(pairs, (1.0 - confidence) / len(pairs))


def bootstrap_radii(deviated: Resampled, confidence: float) -> FloatArray:
    """The radius of each pair's band, from resamples of the deviations; all hold together."""
    check_resamples(deviated.supremum.size, confidence)
    return np.asarray(critical_value(deviated.supremum, confidence) / deviated.scale)


def check_resamples(n_resamples: int, confidence: float) -> None:
    """Raise a ValueError where there are too few resamples for a band of a confidence."""
    least = least_resamples(confidence)
    if n_resamples < least:
        raise ValueError(f"n_resamples must be >= {least} with confidence={confidence:g}, got {n_resamples}")


def as_interval_method(method: str | None, counts: ScoreCounts) -> str:
    """How intervals are made: "finite_sample" where rows are independent and weigh 1, else "bootstrap"."""
    if method is None:
        return "finite_sample" if counts.exchangeable else "bootstrap"
    as_choice(method, "method", INTERVAL_METHODS)
    if method == "finite_sample" and not counts.exchangeable:
        why = "clusters" if counts.clusters is not None else "weights"
        raise ValueError(f"method='finite_sample' does not hold with {why}; use method='bootstrap'")
    return method


def bootstrap_band(
    counts: ScoreCounts, comparison: Comparison, confidence: float, draws: Draws
) -> FloatArray:
    """The radius of the band of each of the counts' pairs, by the multiplier bootstrap; all hold together."""
    check_resamples(as_count(draws.n_resamples, "n_resamples", at_least=0), confidence)
    found = deviation_resamples(counts, comparison, np.zeros(1), draws)
    return bootstrap_radii(found, confidence)


def repair_radii(
    counts: ScoreCounts,
    comparison: Comparison,
    pairs: Sequence[Compared],
    *,
    confidence: float,
    draws: Draws,
) -> FloatArray:
    """The radius by which F_a at one threshold, less F_b at another, may be off; all pairs hold together.

    A repair moves the scores of each group by an increasing map of its own, so that it compares the groups at
    two thresholds. The finite-sample band holds for those (`deviation_tail`). With weights, each draw of the
    multiplier bootstrap is measured by the largest deviation of one group less the least of the other.
    """
    confidence = as_probability(confidence)
    if counts.exchangeable:
        return finite_sample_radii(pairs, confidence)
    check_resamples(draws.n_resamples, confidence)
    deviations = deviations_of(counts, comparison)
    found = repeat(lambda rng: max(each.farthest(comparison, rng) for each in deviations), draws)
    scale = np.concatenate([each.pairs(comparison).scale for each in deviations])
    return np.asarray(critical_value(found.ravel(), confidence) / scale)


def band_radii(
    counts: ScoreCounts,
    comparison: Comparison,
    pairs: Sequence[Compared],
    *,
    confidence: float,
    method: str,
    draws: Draws,
) -> FloatArray:
    """The radius of the band of each of the counts' pairs, all of which hold together."""
    confidence = as_probability(confidence)
    if method == "finite_sample":
        return finite_sample_radii(pairs, confidence)
    return bootstrap_band(counts, comparison, confidence, draws)
