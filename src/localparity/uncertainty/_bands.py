"""How far a pair's true gap may be from the measured one, everywhere at once: the one confidence band.

MCDP(epsilon) of a pair is off by no more than its gap is off at the worst threshold, whatever epsilon: bands
around every gap give intervals for all pairs, labels and epsilons that hold together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from heapq import heappop, heappush
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, get_args

import numpy as np

from localparity._types import FloatArray, IntervalMethod
from localparity._validation import InputError, as_choice, as_count, as_probability, setting
from localparity.counts._comparison import EVERYONE, Comparison
from localparity.counts._score_counts import ScoreCounts
from localparity.metrics._gap_curve import GapCurve, units_of
from localparity.uncertainty._deviations import deviation_resamples, deviations_of
from localparity.uncertainty._resampling import Draws, Resampled, critical_value, least_resamples, repeat

if TYPE_CHECKING:
    from localparity.uncertainty._intervals import MeasuredPair

ComparedPair: TypeAlias = "GapCurve | MeasuredPair"
Number = float | FloatArray
_HALVINGS = 30
_FOR_SCALE = 0.1  # the part of an error that the share of a group in the population takes


@cache
def _normal_table() -> tuple[FloatArray, FloatArray]:
    values = np.arange(-9.0, 9.0, 1.0 / 512)
    return values, np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in values.tolist()])


def normal_cdf(values: FloatArray) -> FloatArray:
    """The standard normal distribution function, by lines between 9,216 of its values, without scipy.

    It is off by at most 1.2e-7, and below -1, where lines lie above it, by at most one part in 25,000.
    """
    return np.asarray(np.interp(values, *_normal_table()))


class IndependentSamples(NamedTuple):
    """Two independent samples whose gap, times a scale, is that of a pair.

    Of a group and everyone, these are the group and the rest, and the scale is the share of the rest, which
    is random too: F_g - F_all = (1 - p_g)(F_g - F_rest).
    """

    scale: float
    sizes: tuple[float, float]

    @classmethod
    def of(cls, pair: ComparedPair) -> IndependentSamples:
        """The samples that a pair compares."""
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
        """The ends of Clopper and Pearson for the scale in the population, each but for an `error`."""
        if not self.shared:
            return 1.0, 1.0
        from scipy.special import betaincinv

        first, rest = self.sizes
        return float(betaincinv(rest, first + 1, error)), float(1.0 - betaincinv(first, rest + 1, error))


def deviation_tail(sizes: tuple[Number, Number], radius: Number) -> FloatArray:
    r"""Bound the probability that the gap of two independent samples is off by more than a radius somewhere.

    The gap of samples a and b is off by at most the larger of two sums of the largest errors of their
    distributions, in opposite directions. Each error exceeds x with probability at most :math:`e^{-2 n x^2}`
    (Massart, 1990, where that is below a half, and Smirnov's exact distribution elsewhere; ties make it less
    likely): it is at most a Rayleigh variable. With A = 2 n_a, B = 2 n_b, T = A + B and the radius r, one of
    the sums exceeds r with probability at most

    .. math:: \frac{2}{T} \Big[ B e^{-A r^2} + A e^{-B r^2} + A B r \sqrt{\pi / T} \, e^{-A B r^2 / T}
        \Big( \operatorname{erf} \frac{A r}{\sqrt T} + \operatorname{erf} \frac{B r}{\sqrt T} \Big) \Big].

    It needs independent rows of one weight, and holds for F_a and F_b at two thresholds, too.
    """
    first, second = (2.0 * size for size in sizes)
    both, square = first + second, radius * radius
    alone = second * np.exp(-first * square) + first * np.exp(-second * square)
    scaled = radius / np.sqrt(both)
    errors = 2.0 * sum(normal_cdf(math.sqrt(2.0) * side * scaled) for side in (first, second)) - 2.0
    shared = np.sqrt(np.pi) * first * second * scaled * np.exp(-first * second * square / both)
    return np.asarray(2.0 / both * (alone + shared * errors))


def band_radius(sizes: tuple[Number, Number], error: float) -> FloatArray:
    """How far the gap of two independent samples is off anywhere, but for a probability `error`."""
    # Either distribution may be off by this much, by the inequality of Dvoretzky, Kiefer and Wolfowitz.
    high = np.sqrt(0.5 * math.log(4.0 / error)) * sum(1.0 / np.sqrt(size) for size in sizes)
    low = np.zeros_like(high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = deviation_tail(sizes, middle) > error
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(high)


def pair_radii(pairs: Sequence[ComparedPair], error: float) -> FloatArray:
    """The radius of the band of each pair by itself; everyone has the groups' shares of the sample."""
    scales, sizes = zip(*map(IndependentSamples.of, pairs), strict=True)
    first, second = np.array(sizes).T
    return np.array(scales) * band_radius((first, second), error)


def band_ends(
    pairs: Sequence[ComparedPair], measured: FloatArray, error: float, *, upper: bool
) -> FloatArray:
    """What MCDP of each pair (rows) is at least, or at most, given what it measures at each epsilon.

    The ends of one pair hold together at all epsilons, but for a probability `error`.
    """
    samples = [IndependentSamples.of(pair) for pair in pairs]
    first, second = np.array([sample.sizes for sample in samples]).T
    for_scale = _FOR_SCALE * error if any(sample.shared for sample in samples) else 0.0
    radii = band_radius((first, second), error - for_scale)
    gaps = measured / np.array([sample.scale for sample in samples])[:, None]
    moved = np.clip(gaps + (radii if upper else -radii)[:, None], 0.0, 1.0)
    return np.asarray(np.array([sample.scale_ends(for_scale)[upper] for sample in samples])[:, None] * moved)


def finite_sample_radii(pairs: Sequence[ComparedPair], confidence: float) -> FloatArray:
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
        raise InputError(
            f"must be >= {least} with {setting(confidence=confidence)}, got {n_resamples}", "n_resamples"
        )


def as_interval_method(method: str | None, counts: ScoreCounts) -> str:
    """How intervals are made: "finite_sample" where rows are independent and weigh 1, else "bootstrap"."""
    if method is None:
        return "finite_sample" if counts.exchangeable else "bootstrap"
    as_choice(method, "method", get_args(IntervalMethod))
    if method == "finite_sample" and not counts.exchangeable:
        why = "clusters" if counts.clusters is not None else "weights"
        raise InputError(
            f"{setting(method='finite_sample')} does not hold with {why}; use {setting(method='bootstrap')}"
        )
    return method


def repair_radii(
    counts: ScoreCounts,
    comparison: Comparison,
    pairs: Sequence[ComparedPair],
    *,
    confidence: float,
    draws: Draws,
) -> FloatArray:
    """The radius by which F_a at one threshold, less F_b at another, may be off; all pairs hold together.

    A repair moves the scores of each group by a separate increasing map, so that it compares the groups at
    two thresholds. With weights, each draw is measured by the largest deviation of one group less the least
    of the other.
    """
    confidence = as_probability(confidence)
    if counts.exchangeable:
        return finite_sample_radii(pairs, confidence)
    check_resamples(draws.n_resamples, confidence)
    strata = deviations_of(counts, comparison)
    farthest = repeat(lambda rng: max(stratum.farthest(comparison, rng) for stratum in strata), draws)
    scale = np.concatenate([stratum.pairs(comparison).scale for stratum in strata])
    return np.asarray(critical_value(farthest.ravel(), confidence) / scale)


def band_radii(
    counts: ScoreCounts,
    comparison: Comparison,
    pairs: Sequence[ComparedPair],
    *,
    confidence: float,
    method: str,
    draws: Draws,
) -> FloatArray:
    """The radius of the band of each of the counts' pairs, all of which hold together."""
    confidence = as_probability(confidence)
    if method == "finite_sample":
        return finite_sample_radii(pairs, confidence)
    check_resamples(as_count(draws.n_resamples, "n_resamples", at_least=0), confidence)
    return bootstrap_radii(deviation_resamples(counts, comparison, np.zeros(1), draws), confidence)


# Upper ends for MCDP, which are much shorter than a band. Some pair of groups, of people of some label, has
# the largest MCDP(epsilon) in the population, and some window carries it. Neither depends on the sample, so
# only their own error counts, and the largest upper end over pairs holds with the probability of one.
#
# Epsilon 0. The window is one threshold, where the measured gap is a difference of two independent binomial
# shares, and the measured MCDP is at least that. A true MCDP of d is rejected where P(X / n_a - Y / n_b <=
# measured) is at most alpha for all X ~ Bin(n_a, p), Y ~ Bin(n_b, q) with p - q = d, and the upper end is
# the largest d that is not. The probability falls with d and rises with the measured value, so the end fails
# with probability at most alpha, at any sizes and with ties. Samples of up to 1,000 rows are summed over
# their values. The law of a larger one is bounded by the inequality of Zubkov and Serov (2013), P(X <= k)
# <= Phi(sign(x - p) sqrt(2 n KL(x, p))), x = (k + 1) / n, 0 <= k < n, with the divergence KL of two Bernoulli
# laws. Where the smaller sample is so small beside the other that its values show, lines between the steps of
# its distribution bound it. The probability is then smooth in p: its supremum is taken over a grid.
#
# Epsilon > 0. In the population some window [l, r] carries MCDP(epsilon) = d: the gap is at least d in size
# at l, at r and everywhere between. None of this depends on the sample. So a gap of d at one threshold is
# rejected by what is measured at l with a probability of at most 0.9 alpha, and by what is measured at r with
# at most alpha / 30. Either the gap has one sign inside: then nowhere is the measured one below d by more
# than the radius of the band, in that direction alone, but for 2 alpha / 30. Or its sign turns at a score z,
# where it jumps: then it is d just below z and -d at z, two more thresholds at which a gap of d is rejected
# with at most alpha / 30 each. The upper end is the largest d that some window passes in either way, of this
# length or a longer one. It holds at any sizes, for one epsilon at a time. What is not rejected at l is not
# rejected at epsilon 0 either, and a longer window is one of those that a smaller epsilon allows, so the ends
# never rise with epsilon. On a plateau the end is as far from the gap as at epsilon 0; where the gap falls to
# both sides, half-way between the margins at l and at r. The largest d is sought over a grid of gaps at l:
# windows with less there are rejected above the end of the least gap on the grid that no window has, and
# there are none with more.
#
# A group and everyone. F_g - F_all = q (F_g - F_rest), where q is the share of the rest in the population.
# Neither factor is known. Of a true share q and gap d to the rest, let p1 = P(Bin(n, q) <= rows of the rest)
# and p2 = sup P(gap <= measured), the tail above for the sizes of the sample. Each is at most u with
# probability u or less, the second whatever the first is. So with w1^2 + w2^2 = 1 and the normal quantile z,
# P(w1 z(p1) + w2 z(p2) <= z(alpha)) <= alpha (Stouffer's method): given p1 = u this happens with at most a
# probability c(u) that falls with u and integrates to alpha. Two changes keep the set of (q, d) that are not
# rejected small where one p-value says nothing. A share outside of Clopper and Pearson's ends at eta alpha,
# or p2 <= eta alpha, rejects alone, for which Stouffer's method has (1 - 3 eta) alpha left. And p2 > 1 -
# kappa counts as 1 - kappa, which adds rejections only where c(u) >= 1 - kappa: to a set of u no larger than
# the level divided by 1 - kappa, at most kappa each; a level that is 1 - kappa times as large pays for it.
# The weights may depend on (q, d): w1 : w2 = 2 (1 - q) d : sqrt(1 - d^2), as the standard deviations of the
# two estimates are in what they add to the product. The upper end is the largest product q d that is not
# rejected, in large samples nearly as short as if variances were added.

# Where chances are tried between the least and the most that are possible, closer together near both.
_PLACES = np.sin(0.5 * np.pi * np.sin(0.5 * np.pi * np.linspace(0.0, 1.0, 49)[:, None]) ** 2) ** 2
_ROUNDING = 1e-9  # measured gaps and sums of shares that differ by less count as equal
_MOST_SUMMED = 1000
_CELLS = 96
_FINENESS = 1024  # ends are good to one part in so many of Hoeffding's margin
_TINY = 1e-300
_MOST_CLOSE = 50  # so many pairs all have the shortest end
# The part of an error that windows take, and that of each threshold of theirs but the first.
_FOR_WINDOWS, _FOR_END = 0.1, 0.1 / 3.0
_GRID = 128  # how many measured gaps are tried at the left end of a window
_MOST_STEPS = 4096  # a curve of more steps is looked at in as many blocks, each as high as its highest step
# Of a group and everyone: the part of an error with which either p-value rejects alone, and how near to 1
# they count as no nearer.
_ETA, _KAPPA = 0.02, 0.05
_NEARLY = 1e-6
_SHARES = 257
_PARTS = 200


def hoeffding_margin(sizes: tuple[float, float], error: float) -> float:
    """How far a difference of two shares may be below the true one, by Hoeffding's inequality."""
    first, second = sizes
    return math.sqrt(0.5 * math.log(1.0 / error) * (1.0 / first + 1.0 / second))


def threshold_end(measured: float, sizes: tuple[float, float], error: float) -> float:
    """What the largest gap of two samples is at most, but for a probability `error`."""
    if measured >= 1.0:
        return 1.0
    tail, quantile = _GapTail(measured, sizes), NormalDist().inv_cdf
    low, high = measured, min(measured + hoeffding_margin(sizes, error), 1.0)
    least = (high - low) / _FINENESS
    # The normal quantile of the tail is nearly a line in the gap, which says where to look next: beside its
    # crossing, so that both ends come close to it.
    target, at_low, at_high = (quantile(chance) for chance in (error, 0.6, 0.1 * error))
    beside = 0.4 * least
    while high - low > least:
        share = min(max((at_low - target) / (at_low - at_high), 0.05), 0.95)
        middle = low + share * (high - low) + min(beside, 0.04 * (high - low))
        at_middle = quantile(min(max(tail(middle), _TINY), 1.0 - _ROUNDING))
        if at_middle > target:
            low, at_low, beside = middle, at_middle, max(2.0 * beside, 0.4 * least)
        else:
            high, at_high, beside = middle, at_middle, min(2.0 * beside, -0.4 * least)
    return high


def shared_end(measured: float, sizes: tuple[float, float], error: float) -> float:
    """What the largest gap of a group and everyone is at most, from the sizes of it and of the rest."""
    region = _Region(measured, sizes, error)
    low, high = region.gaps
    shortest, intervals = (high - low) / _PARTS, [(0.0, low, high)]
    while True:
        product, begin, end = heappop(intervals)
        if end - begin <= shortest:
            return min(max(-product, measured), 1.0)
        middle = 0.5 * (begin + end)
        for part in ((begin, middle), (middle, end)):
            heappush(intervals, (-region.largest_product(*part), *part))


class _Region:
    """The shares of the rest and the gaps to it that a sample does not reject."""

    def __init__(self, measured: float, sizes: tuple[float, float], error: float) -> None:
        from scipy.special import betainc, ndtri

        samples = IndependentSamples(sizes[1] / sum(sizes), sizes)
        gap = min(measured / samples.scale, 1.0)
        self._alone = _ETA * error
        self._critical = ndtri((1.0 - 3.0 * _ETA) * (1.0 - _KAPPA) * error)
        self._shares = np.linspace(*samples.scale_ends(self._alone), _SHARES)
        self._of_shares = ndtri(betainc(sizes[0], sizes[1] + 1.0, 1.0 - self._shares))
        self._tail = cache(_GapTail(gap, sizes))
        # Products of smaller gaps are below the measured one, and larger gaps are rejected alone.
        high = min(gap + hoeffding_margin(sizes, self._alone), 1.0)
        self.gaps = measured / float(self._shares[-1]), high

    def largest_product(self, begin: float, end: float) -> float:
        """A bound of the products of a share and a gap between `begin` and `end`."""
        from scipy.special import ndtri

        # A gap of 1 leaves its two shares no chance to differ; the tail falls with the gap.
        chance = self._tail(min(begin, 1.0 - _NEARLY))
        if chance <= self._alone:
            return 0.0
        possible = np.zeros(_SHARES, dtype=bool)
        for gap in (begin, end):
            weights = 2.0 * (1.0 - self._shares) * gap, math.sqrt(1.0 - gap * gap)
            summed = weights[0] * self._of_shares + weights[1] * ndtri(min(chance, 1.0 - _KAPPA))
            possible |= summed > self._critical * np.hypot(*weights)
        # Up to the next share: what lies between two that were tried is not left out.
        reached = np.append(self._shares[1:], self._shares[-1])[possible]
        return float(reached.max(initial=0.0)) * end


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
        sums = smaller <= _MOST_SUMMED and ratio >= 1.2
        self._factor = 1.03 if sums and ratio < 2.0 else 1.0
        self._bounded, self._averaged = (larger, smaller) if sums else (smaller, larger)

    def __call__(self, gap: float) -> float:
        """The largest probability over the chances of X and Y, whose sum is 1 + `gap`."""
        places = np.clip(_PLACES, _ROUNDING, 1.0 - _ROUNDING) * (1.0 - gap)
        chance, other = gap + places, 1.0 - places
        average = _summed if self._averaged <= _MOST_SUMMED else _integrated
        share, weight = average(self._averaged, other)
        most = self._most - share
        below = (_exact_cdf if self._bounded <= _MOST_SUMMED else _normal_bound)(most, chance, self._bounded)
        below[most < 0.0] = 0.0
        below[most >= 1.0] = 1.0
        return self._factor * float((below * weight).sum(axis=1).max())


def _exact_cdf(share: FloatArray, chance: FloatArray, size: float) -> FloatArray:
    """For each chance (rows), how likely a sample's share is at most some others, by lines between counts.

    A line between the probabilities of two counts is nowhere below the steps, and is smooth in the chance.
    """
    values, weight = _summed(size, chance)
    below = np.cumsum(weight, axis=1)
    count = np.clip(size * (share - values[:, :1]), 0.0, weight.shape[1] - 1.0)
    floor = np.minimum(count.astype(np.int64), weight.shape[1] - 2)
    first = np.take_along_axis(below, floor, axis=1)
    return np.asarray(first + (count - floor) * (np.take_along_axis(below, floor + 1, axis=1) - first))


def _normal_bound(share: FloatArray, chance: FloatArray, size: float) -> FloatArray:
    """A bound of how likely a sample's share is at most some others, by the normal distribution."""
    return normal_cdf(signed_root(np.clip(share + 1.0 / size, 0.0, 1.0), chance, size))


def signed_root(share: FloatArray, chance: FloatArray, size: float) -> FloatArray:
    """The signed root of twice the divergence of `size` draws: near a standard normal value."""
    other = 1.0 - share
    divergence = share * np.log(np.maximum(share, _TINY) / chance)
    divergence += other * np.log(np.maximum(other, _TINY) / (1.0 - chance))
    return np.asarray(np.sign(share - chance) * np.sqrt(2.0 * size * np.maximum(divergence, 0.0)))


def _summed(size: float, chance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each chance, the values that a sample's share can take, and their probabilities."""
    # Farther away than this from its mean, the count lies with a probability below 1e-13.
    spread = math.ceil(4.0 * math.sqrt(size))
    count = np.round(size * chance).astype(np.int64) + np.arange(-spread, spread + 1)
    within = np.clip(count, 0, int(size))
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, size + 1.0)))])
    ways = factorials[-1] - factorials[within] - factorials[::-1][within]
    weight = np.exp(ways + within * np.log(chance) + (size - within) * np.log1p(-chance))
    return count / size, np.where(within == count, weight, 0.0)


def _integrated(size: float, chance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each chance, values that a sample's share is at least, in the middle of cells, and weights."""
    spread = 7.0 * np.sqrt(chance * (1.0 - chance) / size) + 40.0 / size
    edges = np.clip(chance + spread * np.linspace(-1.0, 1.0, _CELLS + 1), 0.0, 1.0)
    weight = np.diff(normal_cdf(signed_root(edges, chance, size)), prepend=0.0, append=1.0, axis=1)
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
    middle = np.concatenate([np.zeros_like(chance), middle, edges[:, -1:]], axis=1)
    return middle - 1.0 / size, weight


class Steps(NamedTuple):
    """Where the steps of a pair's gap begin, in units of the range, and how large it is at most on each.

    Sizes are those of the gap (first row) and of the gap the other way round (second row).
    """

    begins: FloatArray
    sizes: FloatArray

    @classmethod
    def of(cls, curve: GapCurve) -> Steps:
        """The steps from the bottom of the range on; of very many, in blocks as high as their highest."""
        most = curve.bounds()[1]
        knots = units_of(most.knots, most.score_range, most.resolution)
        sizes = np.stack([curve.gap, -curve.gap] if most is curve else [most.gap, most.gap])
        blocks = np.arange(0, knots.size, 1 + (knots.size - 1) // _MOST_STEPS)
        sizes = np.maximum.reduceat(sizes, blocks, axis=1)
        return cls(np.append(0.0, knots[blocks]), np.column_stack([np.zeros(2), sizes]))

    def carries(self, epsilon: float, at_left: float, at_right: float, inside: float) -> bool:
        """Whether gaps of at least these sizes fill some window of half-width epsilon or more.

        All of one sign, or with a jump from at least `at_right` of one sign to as much of the other.
        """
        last = int(np.flatnonzero(self.sizes.max(axis=0) >= at_right).max(initial=-1))
        for size, other in (self.sizes, self.sizes[::-1]):
            starts, stops = np.flatnonzero(size >= at_left), np.flatnonzero(size >= at_right)
            before = np.maximum(size, np.append(-np.inf, size[:-1]))
            turns = np.flatnonzero((before >= at_right) & (other >= at_right))
            if starts.size and turns.max(initial=-1) >= starts[0] and self._reaches(starts[0], last, epsilon):
                return True
            runs = np.flatnonzero(np.diff(size >= inside, prepend=False, append=False)).reshape(-1, 2)
            for begin, end in runs.tolist():
                first = starts[np.searchsorted(starts, begin) :][:1]
                final = stops[: np.searchsorted(stops, end)][-1:]
                if first.size and final.size and self._reaches(first[0], final[0], epsilon):
                    return True
        return False

    def _reaches(self, first: int, last: int, epsilon: float) -> bool:
        """Whether a window may begin on one step and end on another."""
        if first > last:
            return False
        end = float(self.begins[last + 1]) if last + 1 < self.begins.size else 1.0
        # Below the bottom of the range, where windows are cut off, they may reach as far as above it.
        begin = float(self.begins[first]) if self.begins[first] > 0.0 else -end
        return 0.5 * (end - begin) >= epsilon


def upper_ends(pairs: Sequence[MeasuredPair], error: float) -> FloatArray:
    """What MCDP of each pair (rows) is at most at each epsilon.

    Each end holds by itself, but for a probability `error`, and the ends of one pair never rise with epsilon.
    Of many pairs, those that are not highest at any epsilon may have wider ends.
    """
    highest = _threshold_ends(pairs, (1.0 - _FOR_WINDOWS) * error)
    measured = np.array([pair.most for pair in pairs])
    windows = band_ends(pairs, measured, _FOR_WINDOWS * error, upper=True)
    # A band that may fail in one direction fails half as often.
    radii = pair_radii(pairs, 2.0 * (_FOR_WINDOWS - _FOR_END) * error)
    ends = np.minimum(highest[:, None], windows)
    most = np.zeros(ends.shape[1])
    for number, index in enumerate(np.argsort(-highest)):
        pair = pairs[index]
        if number >= _MOST_CLOSE and (ends[index] <= most).all():
            continue
        if pair.groups[1] is not EVERYONE:
            search = _WindowEnds(pair, float(highest[index]), float(radii[index]), error)
            closer = [search(epsilon) for epsilon in pair.epsilons.tolist()]
            ends[index] = np.minimum(closer, highest[index])
        most = np.maximum(most, ends[index])
    return ends


class _WindowEnds:
    """What MCDP of a pair is at most at each epsilon above 0, from the gaps at both ends of its windows."""

    def __init__(self, pair: MeasuredPair, highest: float, radius: float, error: float) -> None:
        self._pair, self._highest, self._radius, self._error = pair, highest, radius, error
        self._end = cache(self._end_of)

    def __call__(self, epsilon: float) -> float:
        """The end: that of the least gap on the grid which, at the left end of a window, is too large."""
        if epsilon == 0.0 or self._is_carried(_GRID, epsilon):
            return self._highest
        low, high = -1, _GRID
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._is_carried(middle, epsilon) else (low, middle)
        return self._end(high, 1.0 - _FOR_WINDOWS)

    def _is_carried(self, place: int, epsilon: float) -> bool:
        """Whether some window has a gap of the grid at its left end, and passes for the end of that."""
        end = self._highest if place == _GRID else self._end(place, 1.0 - _FOR_WINDOWS)
        at_right, inside = self._at_right(end), end - self._radius
        return self._pair.steps.carries(epsilon, self._gap(place), at_right, inside)

    def _at_right(self, end: float) -> float:
        """The least gap that may be measured at the other thresholds of a window; any where 0 may be."""
        least, place = -1.0, 0
        while True:
            # The margin falls with the gap, but for less than 0.2%: up to the next place, it is no wider.
            gap = self._gap(place)
            known = end - 1.002 * (self._end(place, _FOR_END) - gap)
            if known > gap or place > 0:
                least = max(gap, known)
            place += _GRID // 4
            # At the last place this is so: the margin here is wider than that of the end of any gap.
            if least < self._gap(place):
                return least

    def _gap(self, place: int) -> float:
        return self._pair.largest * place / _GRID

    def _end_of(self, place: int, share: float) -> float:
        return threshold_end(self._gap(place), self._pair.sizes, share * self._error)


def _threshold_ends(pairs: Sequence[MeasuredPair], error: float) -> FloatArray:
    """What the largest gap of each pair is at most; of many pairs, some have Hoeffding's wider margin."""
    samples, largest = [IndependentSamples.of(pair) for pair in pairs], [pair.largest for pair in pairs]
    ends = np.array([_quick_end(*known, error) for known in zip(samples, largest, strict=True)])
    highest = 0.0
    for number, index in enumerate(np.argsort(-ends)):
        if number >= _MOST_CLOSE and ends[index] <= highest:
            break
        end_of = shared_end if samples[index].shared else threshold_end
        ends[index] = end_of(largest[index], samples[index].sizes, error)
        highest = max(highest, ends[index])
    return ends


def _quick_end(samples: IndependentSamples, measured: float, error: float) -> float:
    """A bound of the largest gap that no shorter one lies above."""
    alone = _ETA * error if samples.shared else error
    gap = measured / samples.scale + hoeffding_margin(samples.sizes, alone)
    return samples.scale_ends(alone)[1] * min(gap, 1.0)
