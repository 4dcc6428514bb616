"""How many people an audit needs: the least MCDP that it finds, and the rows that a wanted MCDP takes.

A disparity is found where the audit's test rejects parity for some pair: a deal of the groups at random and,
of more than two groups, the bootstrap that confirms it, both adjusted for all pairs and epsilons of the
audit. What the gap of a pair must exceed for that, c, depends on the group sizes and, because of windows, on
how scores are spread: as many people as the groups differ by are taken to be close to one threshold, where
windows do not see them, and the others spread evenly. Ties make c less. Where the true gap of two groups is
d at some threshold, the test finds it at least as often as the measured gap *at that threshold* exceeds c:
P(X / n_a - Y / n_b > c) with X ~ Bin(n_a, p_a), Y ~ Bin(n_b, p_b), p_a - p_b = d, least over p_b. The
hardest to find are groups that differ around one threshold and nowhere else, which is what is supposed. They
have a little more power: elsewhere the gap over sqrt(1/n_a + 1/n_b) is nearly a Brownian bridge, and on its
way from z at the threshold to 0 at an end of the scores, with a share q of the people, it exceeds c with
probability exp(-2 c (c - z) / q). Of several groups, the others are taken to be like one of the two that
differ most, or halfway between them, whichever is found the least often, and the gaps of all pairs count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from localparity._types import FloatArray, IntArray, Seed
from localparity._validation import InputError, as_count, as_epsilons, as_fraction, as_probability, as_rng
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import ScoreCounts
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.predictions import Predictions
from localparity.uncertainty._bands import check_resamples
from localparity.uncertainty._deviations import deviation_resamples, variances_of
from localparity.uncertainty._noise_floor import as_sizes
from localparity.uncertainty._permutation import critical_first, parity_resamples
from localparity.uncertainty._resampling import Draws, Resampled, studentised_pairs

# Of more people than this, what the test rejects depends on the shares of the groups alone.
_MANY_PEOPLE, _MANY_OF_A_GROUP = 4000, 1000
_LEAST_MCDP = 1e-4
# How often people at or below a threshold are drawn, and for a first idea: the power is off by 0.3 points.
_DRAWS, _FEW = 20_000, 2000
_SURE = 8.0  # standard deviations of a binomial number beyond which nothing is drawn
_NEARLY_NORMAL = 10**6  # binomial numbers of more people than this are drawn as normal ones
_MOST_CLOSE = 0.9  # at most such a share is close to the threshold: were all, windows would see nobody
_CLOSE = 1e-4  # how close that is, in units of the range
_ROUNDS = 2
_MORE = 200  # where a number of people is not enough, one part in so many is added
_FINENESS = 1000  # answers are good to one part in so many
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Detectable:
    """The least MCDP that an audit finds with some probability.

    Attributes
    ----------
    mcdp : float or None
        What the audit finds, whichever pair of groups differs by as much; None where some pair is too small
        for anything to be found between them.
    pairs : dict
        The same for each pair, by the places of its two groups.
    group_sizes : tuple of int
        The people of each group.
    power : float
        The probability with which it is found.
    confidence : float
        One less the probability with which parity is rejected at parity.

    Examples
    --------
    >>> import localparity as lp
    >>> found = lp.minimum_detectable([1, 500, 500], random_state=0)
    >>> found.mcdp is None, found.pairs[0, 1] is None, round(found.pairs[1, 2], 1)
    (True, True, 0.1)
    """

    mcdp: float | None
    pairs: dict[tuple[int, int], float | None]
    group_sizes: tuple[int, ...]
    power: float
    confidence: float


def minimum_detectable(
    group_sizes: Sequence[int],
    *,
    power: float = 0.8,
    confidence: float = 0.95,
    epsilons: Sequence[float] = PAPER_EPSILONS,
    n_resamples: int = 10_000,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> Detectable:
    """Find the least MCDP(0) that an audit of groups of these sizes finds with a given probability.

    It is found where some pair of an `audit` at these epsilons has an adjusted p-value of at most
    1 - `confidence`. The two groups are taken to differ around one threshold alone, where that is hardest to
    find; a shift of a whole group is found more often. Of several groups, any two may be those that differ
    most, and the others are like one of them or halfway between. Rows are assumed to be independent and to
    weigh 1, and the scores of all but those who make the gap to be spread evenly over their range.

    An audit adjusts for all of its epsilons, which costs power at epsilon 0; ``epsilons=[0]`` plans for one
    that looks nowhere else, and for `permutation_test` of two groups. For a criterion that looks at labels,
    give the sizes of the groups among the people with the label.

    Parameters
    ----------
    group_sizes : sequence of int
        The number of people in each group, two groups or more.
    power : float
        The probability with which the disparity is to be found.
    confidence : float
        One less the probability with which parity is rejected at parity.
    epsilons : sequence of float
        The epsilons of the audit, of which 0 is one.
    n_resamples : int
        How many times the groups are dealt to find out what the test rejects. With 10,000, the power is off
        by some 0.5 points.
    random_state : int, Generator or None
        The same seed gives the same result.
    n_jobs : int, optional
        How many resamples run at a time, -1 for as many as there are cores.

    Returns
    -------
    Detectable
        `mcdp`, and that of each of the `pairs`.

    Examples
    --------
    >>> import localparity as lp
    >>> round(lp.minimum_detectable([300, 500], random_state=0).mcdp, 2)
    0.13
    """
    sizes, at = as_sizes(group_sizes), _as_epsilons(epsilons)
    power, confidence = as_probability(power, "power"), as_probability(confidence)
    rng = as_rng(random_state)
    draws, uniforms = Draws(n_resamples, rng, n_jobs), rng.random((sizes.size, _DRAWS))
    check_resamples(as_count(n_resamples, "n_resamples"), confidence)
    about = _worst(Threshold(_about(sizes.size, confidence), uniforms[:, :_FEW]).least_gaps(sizes, power))
    critical = needed_to_reject(sizes, 1.0 if about is None else about, at, confidence, draws)
    gaps = Threshold(critical, uniforms).least_gaps(sizes, power)
    return Detectable(_worst(gaps), gaps, tuple(sizes.tolist()), power, confidence)


def _worst(gaps: Mapping[tuple[int, int], float | None]) -> float | None:
    """What is found between any two groups, None where between some nothing is."""
    values = [value for value in gaps.values() if value is not None]
    return max(values) if len(values) == len(gaps) else None


def rows_needed(
    group_sizes: Sequence[int],
    *,
    mcdp: float,
    power: float = 0.8,
    confidence: float = 0.95,
    epsilons: Sequence[float] = PAPER_EPSILONS,
    n_resamples: int = 10_000,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> tuple[int, ...]:
    """Find how many people of each group an audit needs to find a given MCDP(0), at the same shares.

    What is found, and under which assumptions, is as in `minimum_detectable`.

    Parameters
    ----------
    group_sizes : sequence of int
        The number of people in each group, two groups or more; their shares are kept.
    mcdp : float
        The MCDP that is to be found, between whichever pair of groups.
    power : float
        The probability with which it is to be found.
    confidence : float
        One less the probability with which parity is rejected at parity.
    epsilons : sequence of float
        The epsilons of the audit, of which 0 is one.
    n_resamples : int
        How many times the groups are dealt to find out what the test rejects.
    random_state : int, Generator or None
        The same seed gives the same result.
    n_jobs : int, optional
        How many resamples run at a time, -1 for as many as there are cores.

    Returns
    -------
    tuple of int
        The people of each group.

    Examples
    --------
    >>> import localparity as lp
    >>> needed = lp.rows_needed([300, 500], mcdp=0.1, random_state=0)
    >>> 520 < needed[0] < 560, round(needed[0] / sum(needed), 2)
    (True, 0.38)
    """
    sizes, at = as_sizes(group_sizes), _as_epsilons(epsilons)
    power, confidence = as_probability(power, "power"), as_probability(confidence)
    if as_fraction(mcdp, "mcdp") < _LEAST_MCDP:
        raise InputError(f"must be >= {_LEAST_MCDP:g}, got {mcdp:g}", "mcdp")
    rng = as_rng(random_state)
    uniforms = rng.random((sizes.size, _DRAWS))
    draws = Draws(n_resamples, rng, n_jobs)
    check_resamples(as_count(n_resamples, "n_resamples"), confidence)
    critical = _about(sizes.size, confidence)
    # What the test rejects hardly depends on how many people there are, so that this settles soon.
    for _ in range(_ROUNDS):
        needed = Threshold(critical, uniforms).fewest(sizes, mcdp, power)
        critical = needed_to_reject(needed, mcdp, at, confidence, draws)
    needed = Threshold(critical, uniforms).fewest(sizes, mcdp, power)
    # But of few people it jumps from one number of them to the next, so that it is looked at once more.
    differ = _two_smallest(sizes)
    while True:
        critical = needed_to_reject(needed, mcdp, at, confidence, draws)
        if Threshold(critical, uniforms).power(needed, differ, mcdp) >= power:
            return tuple(needed.tolist())
        needed = _with_shares(sizes, int(needed.sum()) + 1 + int(needed.sum()) // _MORE)


def _two_smallest(sizes: IntArray) -> tuple[int, int]:
    first, second = np.argsort(sizes, kind="stable")[:2].tolist()
    return first, second


def _with_shares(shares: IntArray, people: int) -> IntArray:
    """As many people, in the shares of some sizes, rounded up."""
    return np.asarray(np.ceil(shares / shares.sum() * people - _ROUNDING), dtype=np.int64)


def _as_epsilons(epsilons: Sequence[float]) -> FloatArray:
    """Check the epsilons of an audit that finds an MCDP(0)."""
    distinct = np.unique(as_epsilons(epsilons, "epsilons"))
    if 0.0 not in distinct:
        raise InputError(f"must contain 0, got {distinct.tolist()}", "epsilons")
    return distinct


class Critical(NamedTuple):
    """What the studentised gap of a pair must exceed: by the deal of groups, and by the bootstrap."""

    dealt: float
    confirmed: float = 0.0

    def gaps(self, sizes: IntArray) -> FloatArray:
        """What the gap of each pair must exceed."""
        people = sizes.astype(np.float64)
        dealt, confirmed = (
            studentised_pairs(Comparison(), variances, sizes).scale
            for variances in (1.0 / sizes, variances_of(people, people, 1.0 / people))
        )
        return np.maximum(self.dealt / dealt, self.confirmed / confirmed)


def _about(n_groups: int, confidence: float) -> Critical:
    """About what must be exceeded: Kolmogorov's quantile, with a share of the error for each pair."""
    error = (1.0 - confidence) / (n_groups * (n_groups - 1) / 2)
    quantile = float(np.sqrt(0.5 * np.log(2.0 / error)))
    return Critical(quantile, quantile if n_groups > 2 else 0.0)


def needed_to_reject(
    sizes: IntArray, gap: float, epsilons: FloatArray, confidence: float, draws: Draws
) -> Critical:
    """What gaps must exceed at epsilon 0 for an audit at some epsilons to reject parity.

    A share `gap` of all people is close to one threshold.
    """
    # Of very many people a sample is dealt, in the same shares.
    fewer = np.ceil(sizes * min(1.0, _MANY_PEOPLE / sizes.sum())).astype(np.int64)
    counts = _spread(np.maximum(fewer, np.minimum(sizes, _MANY_OF_A_GROUP)), min(gap, _MOST_CLOSE))

    def critical(resampled: Resampled) -> float:
        return critical_first(np.zeros((1, epsilons.size)), resampled.scaled, confidence)

    dealt = critical(parity_resamples(counts, Comparison(), epsilons, draws))
    if sizes.size == 2:
        return Critical(dealt)
    return Critical(dealt, critical(deviation_resamples(counts, Comparison(), epsilons, draws)))


def _spread(sizes: IntArray, close: float) -> ScoreCounts:
    """Groups that are alike, without ties: some people close to the middle, the others spread evenly."""
    groups = np.repeat(np.arange(sizes.size), sizes)
    places = np.concatenate([(np.arange(size) + 0.5) / size for size in sizes.tolist()])
    ranks = np.empty(groups.size)
    ranks[np.argsort(places, kind="stable")] = (np.arange(groups.size) + 0.5) / groups.size
    ends = 0.5 + np.array([-0.5, 0.5]) * close
    scores = np.interp(ranks, [0.0, *ends, 1.0], [0.0, 0.5 - _CLOSE, 0.5 + _CLOSE, 1.0])
    return ScoreCounts.from_predictions(Predictions.from_arrays(None, scores, sensitive_features=groups))


@dataclass(frozen=True, eq=False)
class Threshold:
    """People at or below the one threshold around which two groups differ."""

    critical: Critical  # what the gap of some pair must exceed for parity to be rejected
    uniforms: FloatArray  # (groups, draws): What numbers of people are drawn with, the same ones for any gap

    def power(self, sizes: IntArray, differ: tuple[int, int], gap: float) -> float:
        """How often the test finds a gap between two groups, where that is the least often."""
        return self._power_at(sizes, self.hardest(sizes, differ, gap))

    def hardest(self, sizes: IntArray, differ: tuple[int, int], gap: float) -> FloatArray:
        """The shares of the groups below the threshold with which a gap between two is hardest to find."""
        # The ends, the middle, and where one of the two groups is split in half.
        places = np.clip([0.0, 1.0 - gap, 0.5 - 0.5 * gap, 0.5 - gap, 0.5], 0.0, 1.0 - gap)
        tried = []
        for lower in np.unique(places).tolist():
            for others in (0.0, 0.5, 1.0) if sizes.size > 2 else (0.0,):
                below = np.full(sizes.size, lower + others * gap)
                below[list(differ)] = lower + gap, lower
                tried.append(below)
        return min(tried, key=lambda below: self._power_at(sizes, below))

    def _power_at(self, sizes: IntArray, below: FloatArray) -> float:
        """How often the test rejects parity, given the share of each group that is below the threshold."""
        measured = [
            _binomial(size, share, uniforms) / size
            for size, share, uniforms in zip(sizes.tolist(), below.tolist(), self.uniforms, strict=True)
        ]
        rejects = np.zeros(self.uniforms.shape[1])
        needed = self.critical.gaps(sizes).tolist()
        for (first, second), least in zip(combinations(range(sizes.size), 2), needed, strict=True):
            scale = 1.0 / np.sqrt(1.0 / sizes[first] + 1.0 / sizes[second])
            gap = measured[first] - measured[second]
            np.maximum(rejects, np.abs(gap) > least + _ROUNDING / scale, out=rejects)
            by_chance = scale * np.abs(gap - (below[first] - below[second]))
            for share in (below.min(), 1.0 - below.max()):
                np.maximum(rejects, _elsewhere(by_chance, share, scale * least), out=rejects)
        return float(rejects.mean())

    def least_gaps(self, sizes: IntArray, power: float) -> dict[tuple[int, int], float | None]:
        """The least gap of each pair that is found with some probability; None where none is."""
        pairs = list(combinations(range(sizes.size), 2))
        # Groups of the same sizes are found alike: the first such pair stands for all.
        like = {frozenset(sizes[list(pair)].tolist()): pair for pair in reversed(pairs)}
        known = {of_sizes: self.least_gap(sizes, pair, power) for of_sizes, pair in like.items()}
        return {pair: known[frozenset(sizes[list(pair)].tolist())] for pair in pairs}

    def least_gap(self, sizes: IntArray, differ: tuple[int, int], power: float) -> float | None:
        """The least gap between two groups that is found with some probability."""
        low, high = 0.0, 1.0
        if self.power(sizes, differ, high) < power:
            return None
        while _FINENESS * (high - low) > high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.power(sizes, differ, middle) >= power else (middle, high)
        return high

    def fewest(self, shares: IntArray, gap: float, power: float) -> IntArray:
        """The fewest people, in some shares, of whom a gap between the two smallest groups is found."""
        differ = _two_smallest(shares)

        def found(people: int) -> bool:
            return self.power(_with_shares(shares, people), differ, gap) >= power

        enough = shares.size
        while not found(enough):
            enough *= 2
        low = enough // 2
        while enough - low > 1 + enough // _FINENESS:
            middle = (low + enough) // 2
            low, enough = (low, middle) if found(middle) else (middle, enough)
        return _with_shares(shares, enough)


def _elsewhere(by_chance: FloatArray, share: float, critical: float) -> FloatArray:
    """How likely a gap that is due to chance exceeds what is needed, on the way to an end of the scores."""
    room = np.maximum(critical - by_chance, 0.0)
    return np.asarray(np.exp(-2.0 * critical * room / max(share, _ROUNDING)))


def _binomial(size: int, share: float, uniforms: FloatArray) -> FloatArray:
    """Binomial numbers, from uniform ones."""
    from scipy.special import bdtr, ndtri

    if size > _NEARLY_NORMAL:
        return np.asarray(np.rint(size * share + np.sqrt(size * share * (1.0 - share)) * ndtri(uniforms)))
    spread = _SURE * np.sqrt(size * share * (1.0 - share)) + 1.0
    lowest = max(0.0, np.floor(size * share - spread))
    numbers = np.arange(lowest, min(float(size), np.ceil(size * share + spread)))
    return np.asarray(lowest + np.searchsorted(bdtr(numbers, size, share), uniforms))
