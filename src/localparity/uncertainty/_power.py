r"""How many people an audit needs: the least MCDP that it finds, and the rows that a wanted MCDP takes.

A disparity is found where the permutation test rejects parity at epsilon 0. Where no two scores are equal,
what MCDP must exceed for that depends on the group sizes alone; scores that are equal make it less, since a
permuted gap is then looked at in fewer places. So let :math:`c` be that number for a pair of groups, and let
their true gap be :math:`\delta` at some threshold. The test finds it at least as often as the measured gap
*at that threshold* exceeds c,

.. math:: P(X / n_a - Y / n_b > c), \quad X \sim B(n_a, p_a), \; Y \sim B(n_b, p_b), \; p_a - p_b = \delta,

and the least of this over :math:`p_b` is a power that no distributions of that MCDP fall short of, whatever
else they do. It is hardly more where the gap is there around one threshold near the middle of the scores and
nowhere else. A shift of a whole group has a gap at many thresholds and is found somewhat more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from localparity._types import IntArray, Seed
from localparity._validation import as_count, as_fraction, as_probability
from localparity.counts._comparison import Comparison
from localparity.metrics._kernels import largest_gaps
from localparity.uncertainty._bands import check_resamples
from localparity.uncertainty._pairs import pair_rows
from localparity.uncertainty._resampling import Draws, critical_value, repeat

_MANY_PEOPLE = 10_000
_MANY_OF_A_GROUP = 1000
"""Of more people than this, what the test rejects depends on the shares of the groups alone."""

_LEAST_MCDP = 1e-4
_PLACES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Where between its ends the nuisance is tried."""

_SURE = 7.0
"""Standard deviations of a binomial number beyond which nothing is counted."""

_ROUNDS = 4
_FINENESS = 1000
"""Rows are counted to one part in so many."""

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
    >>> found = lp.minimum_detectable([2, 500, 500], random_state=0)
    >>> found.mcdp is None, found.pairs[0, 1] is None, round(found.pairs[1, 2], 2)
    (True, True, 0.12)
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
    n_resamples: int = 10_000,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> Detectable:
    """Find the least MCDP(0) that an audit of groups of these sizes finds with a given probability.

    It is found where `permutation_test`, at epsilon 0, has a p-value of at most 1 - `confidence`. The power
    holds for any distributions of the scores: they are taken to differ around one threshold alone, near the
    middle of the scores, which is the hardest to find. Of several groups, any pair may be the one that
    differs, and the test looks at all of them. Rows are assumed to be independent and to weigh 1.

    An audit at several epsilons adjusts for all of them, which costs it some power at epsilon 0. For a
    criterion that looks at labels, give the sizes of the groups among the people with the label.

    Parameters
    ----------
    group_sizes : sequence of int
        The number of people in each group, two groups or more.
    power : float
        The probability with which the disparity is to be found.
    confidence : float
        One less the probability with which parity is rejected at parity.
    n_resamples : int
        How many times the groups are dealt to find out what the test rejects.
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
    sizes = as_sizes(group_sizes)
    power, confidence = as_probability(power, "power"), as_probability(confidence)
    draws = Draws(n_resamples, random_state, n_jobs)
    critical = _critical_value(sizes, confidence, draws)
    found: dict[tuple[int, int], float | None] = {}
    known: dict[tuple[int, int], float | None] = {}
    for first, second in combinations(range(sizes.size), 2):
        pair = sizes[[first, second]]
        key = (int(pair.min()), int(pair.max()))
        if key not in known:
            known[key] = _least_gap(pair, critical, power)
        found[first, second] = known[key]
    values = [value for value in found.values() if value is not None]
    worst = max(values) if len(values) == len(found) else None
    return Detectable(worst, found, tuple(sizes.tolist()), power, confidence)


def rows_needed(
    group_sizes: Sequence[int],
    *,
    mcdp: float,
    power: float = 0.8,
    confidence: float = 0.95,
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
    >>> 480 < needed[0] < 520, round(needed[0] / sum(needed), 2)
    (True, 0.38)
    """
    sizes = as_sizes(group_sizes)
    power, confidence = as_probability(power, "power"), as_probability(confidence)
    if as_fraction(mcdp, "mcdp") < _LEAST_MCDP:
        raise ValueError(f"mcdp must be >= {_LEAST_MCDP:g}, got {mcdp:g}")
    draws = Draws(n_resamples, random_state, n_jobs)
    critical = _critical_value(sizes, confidence, draws)
    # What the test rejects hardly depends on how many people there are, so that this settles soon.
    for _ in range(_ROUNDS):
        needed = _fewest(sizes, mcdp, critical, power)
        before, critical = critical, _critical_value(needed, confidence, draws)
        if critical <= before:
            break
    return tuple(needed.tolist())


def as_sizes(group_sizes: Sequence[int]) -> IntArray:
    """Check the sizes of two groups or more."""
    listed = group_sizes if isinstance(group_sizes, Iterable) else [group_sizes]
    sizes = np.array([as_count(size, "group_sizes") for size in listed])
    if sizes.size < 2:
        raise ValueError(f"group_sizes must have at least two sizes, got {sizes.size}")
    return sizes


def _critical_value(sizes: IntArray, confidence: float, draws: Draws) -> float:
    """What the largest studentised gap of all pairs must exceed for parity to be rejected.

    Of very many people a sample is dealt, in the same shares.
    """
    check_resamples(as_count(draws.n_resamples, "n_resamples"), confidence)
    fewer = np.ceil(sizes * min(1.0, _MANY_PEOPLE / sizes.sum())).astype(np.int64)
    sizes = np.maximum(fewer, np.minimum(sizes, _MANY_OF_A_GROUP))
    first, second, scale = pair_rows(Comparison(), 1.0 / sizes, sizes)
    codes, groups = np.repeat(np.arange(sizes.size), sizes), np.arange(sizes.size)
    people = np.arange(codes.size), groups, np.append(sizes, codes.size), np.stack([first, second], axis=1)

    def one(rng: np.random.Generator) -> float:
        order, *others = people
        return float((scale * largest_gaps(order, rng.permutation(codes), *others)).max())

    return critical_value(repeat(one, draws).ravel(), confidence)


def _least_power(pair: IntArray, gap: float, critical: float) -> float:
    """The least probability with which the measured gap at a threshold exceeds what the test needs.

    `gap` is the true one. Both signs of it are alike: people at or below a threshold change places with those
    above it.
    """
    from scipy.special import bdtr
    from scipy.stats import binom

    few, many = pair.min(), pair.max()
    needed = critical * np.sqrt(1.0 / few + 1.0 / many) + _ROUNDING
    found = 1.0
    for place in _PLACES:
        lower = (1.0 - gap) * place
        share = lower + gap
        reach = _SURE * np.sqrt(few * share * (1.0 - share)) + 1.0
        below = np.arange(max(0.0, np.floor(few * share - reach)), min(few, few * share + reach) + 1.0)
        others = np.floor(many * (below / few - needed))
        chances = binom.pmf(below, few, share) * bdtr(np.maximum(others, 0.0), many, lower)
        found = min(found, float(chances[others >= 0.0].sum()))
    return found


def _least_gap(pair: IntArray, critical: float, power: float) -> float | None:
    """The least gap that is found between two groups with some probability."""
    from scipy.optimize import brentq

    if _least_power(pair, 1.0, critical) < power:
        return None
    return float(brentq(lambda gap: _least_power(pair, gap, critical) - power, 0.0, 1.0, xtol=1e-6))


def _fewest(shares: IntArray, mcdp: float, critical: float, power: float) -> IntArray:
    """The fewest people, in some shares, of whom the two smallest groups differ by so much and are found to.

    How many people a group has is rounded up.
    """
    of_one = shares / shares.sum()

    def sizes(people: int) -> IntArray:
        return np.asarray(np.ceil(of_one * people - _ROUNDING), dtype=np.int64)

    def found(people: int) -> bool:
        return _least_power(np.sort(sizes(people))[:2], mcdp, critical) >= power

    enough = shares.size
    while not found(enough):
        enough *= 2
    low = enough // 2
    while enough - low > 1 + enough // _FINENESS:
        middle = (low + enough) // 2
        low, enough = (low, middle) if found(middle) else (middle, enough)
    return sizes(enough)
