"""People drawn from distributions that are known: what promises are simulated on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rng = np.random.Generator


class Drawn(NamedTuple):
    """A sample: scores, groups, and what else a function of the package takes."""

    scores: Floats
    groups: NDArray[Any]
    options: dict[str, Any] = {}  # noqa: RUF012
    labels: NDArray[Any] | None = None


Design = Callable[[Rng], Drawn]


def powers(sizes: Sequence[int], exponents: Sequence[float], decimals: int | None = None) -> Design:
    """Each group's scores have the distribution function y to some power, and may be rounded."""

    def draw(rng: Rng) -> Drawn:
        groups = np.repeat(np.arange(len(sizes)), sizes)
        scores = rng.random(groups.size) ** (1.0 / np.asarray(exponents))[groups]
        return Drawn(scores if decimals is None else scores.round(decimals), groups)

    return draw


def deciles(sizes: Sequence[int]) -> Design:
    """Whole scores from 1 to 10: equally likely in one group, ever more so in the other."""
    shares = np.array([np.full(10, 0.1), np.arange(1, 11) / 55])

    def draw(rng: Rng) -> Drawn:
        groups = np.repeat([0, 1], sizes)
        scores = np.concatenate([rng.choice(10, n, p=p) + 1.0 for n, p in zip(sizes, shares, strict=True)])
        return Drawn(scores, groups, {"score_range": (1, 10)})

    return draw


DECILES_MCDP = float(np.abs(np.cumsum(np.full(10, 0.1)) - np.cumsum(np.arange(1, 11) / 55)).max())


def plateau(sizes: Sequence[int], height: float) -> Design:
    """The gap is one number from 0.2 to 0.8, as a repair leaves it."""

    def draw(rng: Rng) -> Drawn:
        groups = np.repeat([0, 1], sizes)
        place = rng.random(groups.size)
        low = 0.2 + 0.5 * height * (1 - 2 * groups)
        inside = np.where(place < low, 0.0, np.where(place < low + 0.6, 0.2, 0.8))
        return Drawn(inside + np.where(inside == 0.2, 0.6, 0.2) * rng.random(groups.size), groups)

    return draw


def binary(sizes: Sequence[int], shares: Sequence[float]) -> Design:
    """Two scores, of which each group has the lower with some probability."""

    def draw(rng: Rng) -> Drawn:
        groups = np.repeat([0, 1], sizes)
        return Drawn(np.where(rng.random(groups.size) < np.asarray(shares)[groups], 0.2, 0.8), groups)

    return draw


def shares_drawn(shares: Sequence[float], low: Sequence[float], size: int) -> Design:
    """People of a population: the group is drawn first, with its share, then one of two scores."""

    def draw(rng: Rng) -> Drawn:
        groups = rng.choice(len(shares), size, p=shares)
        # A group of whom nobody was drawn cannot be compared.
        groups[: len(shares)] = np.where(
            np.isin(np.arange(len(shares)), groups), groups[: len(shares)], np.arange(len(shares))
        )
        return Drawn(np.where(rng.random(size) < np.asarray(low)[groups], 0.2, 0.8), groups)

    return draw


def crossing(sizes: Sequence[int], height: float) -> Design:
    """Three scores: the gap is a number from the first to the second, and less that number to the third."""
    outer = np.array([[0.4 + 0.5 * height], [0.4 - 0.5 * height]])
    shares = np.hstack([outer, 1.0 - 2.0 * outer, outer])

    def draw(rng: Rng) -> Drawn:
        groups = np.repeat([0, 1], sizes)
        scores = [rng.choice([0.2, 0.5, 0.8], n, p=p) for n, p in zip(sizes, shares, strict=True)]
        return Drawn(np.concatenate(scores), groups)

    return draw


def waves(sizes: Sequence[int], height: float) -> Design:
    """The gap is a sine of one period, so that the curves cross in the middle."""
    places = np.linspace(0.0, 1.0, 20_001)
    below = places + height * np.sin(2.0 * np.pi * places)

    def draw(rng: Rng) -> Drawn:
        ranks = rng.random(sum(sizes))
        groups = np.repeat([0, 1], sizes)
        return Drawn(np.where(groups == 1, ranks, np.interp(ranks, below, places)), groups)

    return draw


def labelled(size: int) -> Design:
    """Parity given the label, with base rates that differ."""

    def draw(rng: Rng) -> Drawn:
        groups = rng.integers(0, 2, size)
        labels = (rng.random(size) < 0.3 + 0.4 * groups).astype(int)
        return Drawn(0.5 * rng.random(size) + 0.5 * labels, groups, {}, labels)

    return draw


def weighted(sizes: Sequence[int], keep: Callable[[Floats], Floats], exponent: float = 1.0) -> Design:
    """The first group is sampled by its scores and weighted back; the second is taken as it is."""

    def draw(rng: Rng) -> Drawn:
        kept = np.empty(0)
        while kept.size < sizes[0]:
            scores = rng.random(4 * sizes[0]) ** (1.0 / exponent)
            kept = np.concatenate([kept, scores[rng.random(scores.size) < keep(scores)]])
        kept = kept[: sizes[0]]
        scores = np.concatenate([kept, rng.random(sizes[1])])
        weights = np.concatenate([1.0 / keep(kept), np.ones(sizes[1])])
        return Drawn(scores, np.repeat([0, 1], sizes), {"sample_weight": weights})

    return draw


def clustered(people: int, rows: int, *, mixed: bool = False) -> Design:
    """People of either group with several rows each, all but alike; or households with members of both."""

    def draw(rng: Rng) -> Drawn:
        owner = np.repeat(np.arange(2 * people), rows)
        noise = 0.02 * rng.standard_normal(owner.size)
        scores = np.clip(rng.random(2 * people)[owner] + noise, 0.0, 1.0)
        groups = rng.integers(0, 2, owner.size) if mixed else owner % 2
        return Drawn(scores, groups, {"cluster": owner})

    return draw


class SoftDrawn(NamedTuple):
    """People with two scores, and their probability of the first of two groups."""

    high: NDArray[np.bool_]
    chances: Floats


SoftDesign = Callable[[Rng], SoftDrawn]


def known(sizes: Sequence[int], shares: Sequence[float]) -> SoftDesign:
    """Groups that are known, each with the high score as often as told."""

    def draw(rng: Rng) -> SoftDrawn:
        first = np.repeat([1.0, 0.0], sizes)
        return SoftDrawn(rng.random(first.size) < np.repeat(shares, sizes), first)

    return draw


def likely(size: int, chances: Sequence[float], shares: Sequence[float]) -> SoftDesign:
    """Two kinds of people, as many of each: how likely they are of the first group, and score high."""

    def draw(rng: Rng) -> SoftDrawn:
        kind = rng.integers(0, 2, size)
        return SoftDrawn(rng.random(size) < np.asarray(shares)[kind], np.asarray(chances)[kind])

    return draw


class Job(NamedTuple):
    """Of each group, the share that is in the second of two jobs, and who has the high score in either."""

    second: float
    high: tuple[float, float]


def in_jobs(size: int, *jobs: Job) -> Callable[[Rng], tuple[Floats, NDArray[Any], NDArray[Any]]]:
    """Two scores, groups and jobs; people are of each group as often as of any other."""

    def draw(rng: Rng) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
        groups = rng.integers(0, len(jobs), size)
        second = (rng.random(size) < np.array([job.second for job in jobs])[groups]).astype(int)
        high = np.array([job.high for job in jobs])[groups, second]
        return np.where(rng.random(size) < high, 0.9, 0.1), groups, second

    return draw


# How often a score is sampled; its weight is one over it.


def half(scores: Floats) -> Floats:
    """Half of all."""
    return np.full(scores.shape, 0.5)


def lowest_tenth_rare(scores: Floats) -> Floats:
    """Scores below 0.1 are sampled a tenth as often."""
    return np.where(scores < 0.1, 0.1, 1.0)


def lowest_fifth_rarer(scores: Floats) -> Floats:
    """Scores below 0.2 are sampled a fiftieth as often."""
    return np.where(scores < 0.2, 0.02, 1.0)


def lowest_tenth_rarest(scores: Floats) -> Floats:
    """Scores below 0.1 are sampled a hundredth as often."""
    return np.where(scores < 0.1, 0.01, 1.0)


def heavy_tailed(scores: Floats) -> Floats:
    """Weights have no variance."""
    return np.asarray(np.maximum(scores, 1e-3) ** 1.5)
