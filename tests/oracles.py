"""The slow, obvious versions: the definitions, in rational arithmetic, sharing no code with the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from typing import Any

Sample = Sequence[tuple[Fraction, Fraction]]
"""A group: (score, weight) of each of its people."""


def grouping(values: Sequence[Any]) -> tuple[tuple[Any, ...], list[int]] | int:
    """The groups in order, and the place of each row's among them; of values some of which are None, the first row of one."""
    if None in values:
        return [value is None for value in values].index(True)
    found = list(dict.fromkeys(values))
    try:
        names = sorted(found)
    except TypeError:
        names = sorted(found, key=str)
    return tuple(names), [names.index(value) for value in values]


def cdf(sample: Sample, y: Fraction) -> Fraction:
    """The weighted share with a score at or below y."""
    return sum((w for s, w in sample if s <= y), Fraction(0)) / sum((w for _, w in sample), Fraction(0))


def gap(a: Sample, b: Sample, y: Fraction) -> Fraction:
    return cdf(a, y) - cdf(b, y)


def mcdp(a: Sample, b: Sample, epsilon: Fraction) -> Fraction:
    """Over windows [y0 - epsilon, y0 + epsilon] cut to [0, 1], the largest of the smallest absolute gap.

    The window's content changes only where one of its ends meets a score, so it is enough to try those
    centres, the points between them, and the ends of the range.
    """
    scores = sorted({s for s, _ in (*a, *b)})
    centres = {Fraction(0), Fraction(1)} | {s + shift for s in scores for shift in (-epsilon, epsilon)}
    centres = sorted(c for c in centres if 0 <= c <= 1)
    centres += [(low + high) / 2 for low, high in pairwise(centres)]
    best = Fraction(0)
    for centre in centres:
        low, high = max(Fraction(0), centre - epsilon), min(Fraction(1), centre + epsilon)
        inside = [low, *(s for s in scores if low < s <= high)]
        best = max(best, min(abs(gap(a, b, y)) for y in inside))
    return best


def mcdp_algorithm_2(a: Sample, b: Sample, epsilon: Fraction, k: int) -> Fraction:
    """The paper's Algorithm 2, line by line; points past the end of the range have no gap."""
    delta = epsilon / k
    best = min(abs(gap(a, b, j * delta)) for j in range(k + 1))
    last = -(-1 // delta) - 2 * k
    for j in range(1, last + 1):
        best = max(best, min(abs(gap(a, b, i * delta)) for i in range(j, j + 2 * k)))
    return best


def abcc(a: Sample, b: Sample) -> Fraction:
    """The integral of the absolute gap over [0, 1]."""
    knots = sorted({Fraction(0), Fraction(1)} | {s for s, _ in (*a, *b)})
    return sum((abs(gap(a, b, low)) * (high - low) for low, high in pairwise(knots)), Fraction(0))


def mean(sample: Sample) -> Fraction:
    return sum((s * w for s, w in sample), Fraction(0)) / sum((w for _, w in sample), Fraction(0))


def rate(sample: Sample, threshold: Fraction) -> Fraction:
    return 1 - cdf(sample, threshold)


def spdd(a: Sample, b: Sample, n_thresholds: int) -> Fraction:
    grid = [Fraction(i, n_thresholds - 1) for i in range(n_thresholds)]
    return sum((abs(gap(a, b, t)) for t in grid), Fraction(0)) / n_thresholds


def worst_pair(groups: Sequence[Sample], metric: Callable[[Sample, Sample], Fraction]) -> Fraction:
    return max(metric(a, b) for a, b in combinations(groups, 2))


def worst_to_overall(groups: Sequence[Sample], metric: Callable[[Sample, Sample], Fraction]) -> Fraction:
    everyone = [person for group in groups for person in group]
    return max(metric(group, everyone) for group in groups)


def every_deal(scores: Sequence[Fraction], sizes: Sequence[int]) -> Iterator[list[Sample]]:
    """Every way to deal people out to groups of these sizes, each as likely as any other under parity."""
    if len(sizes) == 1:
        yield [[(score, Fraction(1)) for score in scores]]
        return
    for chosen in combinations(range(len(scores)), sizes[0]):
        left = [score for place, score in enumerate(scores) if place not in chosen]
        for others in every_deal(left, sizes[1:]):
            yield [[(scores[place], Fraction(1)) for place in chosen], *others]


def quantile(sample: Sample, u: Fraction) -> Fraction:
    """The lowest score at which the cumulative distribution reaches u."""
    return min(s for s, _ in sample if cdf(sample, s) >= u)


def barycentre_quantile(groups: Sequence[Sample], u: Fraction) -> Fraction:
    """The mean of the groups' quantiles, each with its share of the weight."""
    weights = [sum((w for _, w in group), Fraction(0)) for group in groups]
    means = (w * quantile(group, u) for w, group in zip(weights, groups, strict=True))
    return sum(means, Fraction(0)) / sum(weights, Fraction(0))


def barycentre_cdf(groups: Sequence[Sample], y: Fraction) -> Fraction:
    """The highest level whose quantile is at or below y."""
    levels = {cdf(group, s) for group in groups for s, _ in group}
    return max((u for u in levels if barycentre_quantile(groups, u) <= y), default=Fraction(0))


def band(groups: Sequence[Sample], y: Fraction, width: Fraction) -> tuple[Fraction, Fraction]:
    """The two ends between which the groups' distributions are clipped at a threshold."""
    shares = [cdf(group, y) for group in groups]
    low, high = min(shares), max(shares)
    if high - low <= width:
        return low, high
    centre = barycentre_cdf(groups, y)
    share = width / (high - low)
    return centre - (centre - low) * share, centre + (high - centre) * share


def repair(groups: Sequence[Sample], width: Fraction) -> list[dict[Fraction, Fraction]]:
    """Of each group, where its scores go: the nearest places in the band, and ties parted where they can be."""
    levels = {cdf(group, s) for group in groups for s, _ in group}
    places = {s for group in groups for s, _ in group} | {barycentre_quantile(groups, u) for u in levels}
    ends = {y: band(groups, y, width) for y in sorted(places)}
    return [_part_ties(_clip(groups, group, ends), sorted(places)) for group in groups]


def _clip(
    groups: Sequence[Sample], group: Sample, ends: dict[Fraction, tuple[Fraction, Fraction]]
) -> dict[Fraction, tuple[Fraction, Fraction, Fraction]]:
    """Of each score, the nearest place in the band, and the earliest and the latest."""
    found = {}
    for score in sorted({s for s, _ in group}):
        level = cdf(group, score)
        before = level - sum(w for s, w in group if s == score) / sum(w for _, w in group)
        earliest = min(y for y, (_, high) in ends.items() if high >= level)
        latest = min(y for y, (low, _) in ends.items() if low > before)
        wanted = score if earliest <= latest else barycentre_quantile(groups, (before + level) / 2)
        first, last = sorted([earliest, latest])
        found[score] = (min(max(wanted, first), last), earliest, latest)
    return found


def _part_ties(
    clipped: dict[Fraction, tuple[Fraction, Fraction, Fraction]], places: list[Fraction]
) -> dict[Fraction, Fraction]:
    """Of all ways to send the first of a tie before its place and the last behind it, the one that parts most."""
    moved = {}
    for here in places:
        tied = [(score, *bounds) for score, (place, *bounds) in clipped.items() if place == here]
        ways = [
            (ahead, behind)
            for ahead in range(len(tied))
            for behind in range(len(tied) - ahead)
            if all(earliest < here for _, earliest, _ in tied[:ahead])
            and all(latest > here for _, _, latest in tied[len(tied) - behind :])
        ]
        ahead, behind = max(ways, key=sum, default=(0, 0))
        index = places.index(here)
        down = (here - places[max(index - 1, 0)]) / 2
        up = (places[min(index + 1, len(places) - 1)] - here) / 2
        for i, (score, *_) in enumerate(tied):
            moved[score] = here
            if i < ahead:
                moved[score] -= down * (ahead - i) / (ahead + 1)
            if i >= len(tied) - behind:
                moved[score] += up * (i - len(tied) + behind + 1) / (behind + 1)
    return moved


def worst_split(
    scores: Sequence[Fraction], feature: Sequence[Fraction], epsilon: Fraction, least: int
) -> tuple[Fraction, Fraction]:
    """The largest MCDP between the people at or below a value of a feature and those above it, and the value."""
    best = (Fraction(-1), Fraction(0))
    for value in sorted(set(feature)):
        low = [(s, Fraction(1)) for s, f in zip(scores, feature, strict=True) if f <= value]
        high = [(s, Fraction(1)) for s, f in zip(scores, feature, strict=True) if f > value]
        if min(len(low), len(high)) >= max(least, 1):
            found = mcdp(low, high, epsilon)
            if found > best[0]:
                best = (found, value)
    return best


def adjusted_p_values(
    seen: Sequence[Sequence[Fraction]], null: Sequence[Sequence[Fraction]]
) -> list[list[Fraction]]:
    """Of each pair at each epsilon: how often parity would give any pair at any epsilon as small a p-value.

    `seen` has a row for each pair, `null` for each resample the largest of all pairs. The data is one resample.
    """
    resamples = [[max(column) for column in zip(*seen, strict=True)], *null]
    epsilons = range(len(resamples[0]))

    def p_value(value: Fraction, epsilon: int) -> Fraction:
        return Fraction(sum(other[epsilon] >= value for other in resamples), len(resamples))

    least = [min(p_value(each[epsilon], epsilon) for epsilon in epsilons) for each in resamples]
    return [
        [Fraction(sum(each <= p_value(row[e], e) for each in least), len(least)) for e in epsilons]
        for row in seen
    ]


def best_selection(
    scores: Any, shares: Any, strata: Any, *, weights: Any, rate: float, bound: float
) -> tuple[float, float]:
    """The most positives, as a share of everyone, of a selection at a rate, and the largest difference it has.

    A linear programme over the probability of each row to be selected. `shares[i, k]` is how much of the people
    of constraint k row i is; within each stratum any two constraints' shares differ by at most the bound.
    """
    import numpy as np
    from scipy.optimize import linprog

    parts = np.asarray(weights) / np.sum(weights)
    pairs = [(a, b) for a, b in permutations(range(len(strata)), 2) if strata[a] == strata[b]]
    differences = np.array([shares[:, a] - shares[:, b] for a, b in pairs])
    found = linprog(
        -parts * scores,
        A_ub=differences,
        b_ub=np.full(len(pairs), bound),
        A_eq=parts[None, :],
        b_eq=[rate],
        bounds=(0.0, 1.0),
        method="highs",
    )
    return -float(found.fun), float((differences @ found.x).max())


def every_assignment(first: Sample, second: Sample, unknown: Sample) -> Iterator[tuple[Sample, Sample]]:
    """Every way in which people of unknown group may be of the one or the other."""
    for chosen in product((True, False), repeat=len(unknown)):
        joined = [person for person, is_first in zip(unknown, chosen, strict=True) if is_first]
        others = [person for person, is_first in zip(unknown, chosen, strict=True) if not is_first]
        yield [*first, *joined], [*second, *others]


def fewest_changes(
    groups: Sequence[Sample], changes: Iterator[tuple[int, Sequence[Sample]]], bound: Fraction
) -> int | None:
    """The least number of changes whose groups are on the other side of a bound of MCDP(0)."""
    passes = mcdp(*groups, Fraction(0)) <= bound
    found = [number for number, changed in changes if (mcdp(*changed, Fraction(0)) <= bound) != passes]
    return min(found, default=None)


def every_wrong_group(first: Sample, second: Sample) -> Iterator[tuple[int, Sequence[Sample]]]:
    """Every way in which people may be in the wrong one of two groups, with their number; none is empty."""
    people = [(person, 0) for person in first] + [(person, 1) for person in second]
    for wrong in product((0, 1), repeat=len(people)):
        found: tuple[list[Any], list[Any]] = ([], [])
        for (person, group), is_wrong in zip(people, wrong, strict=True):
            found[group ^ is_wrong].append(person)
        if all(found):
            yield sum(wrong), found


def every_addition(first: Sample, second: Sample, unknown: Sample) -> Iterator[tuple[int, Sequence[Sample]]]:
    """Every way in which some people of unknown group may join the groups, with their number."""
    for chosen in product((0, 1, 2), repeat=len(unknown)):
        joined = [[p for p, to in zip(unknown, chosen, strict=True) if to == group] for group in (1, 2)]
        yield len(joined[0]) + len(joined[1]), ([*first, *joined[0]], [*second, *joined[1]])
