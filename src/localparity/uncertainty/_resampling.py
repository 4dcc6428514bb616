"""What the bootstrap and the permutation test share: groups on common scores, seeds, and the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from os import cpu_count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._validation import FloatArray, Group, as_count, as_rng
from localparity.metrics._counts import ScoreCounts, Stratum
from localparity.metrics._groups import EVERYONE, pairs_of
from localparity.metrics._profile import carried_half_widths, find_runs, mcdp_of_runs

IntArray = NDArray[np.int64]

MOST_KNOTS = 2**15
"""Resamples are seen at no more thresholds than this; between two of them lies 1 / 2**15 of the people."""


def one_by_one(rows: int, knots: int) -> bool:
    """Whether rows are drawn faster one by one than knot by knot."""
    return rows <= 4 * knots


class Draws(NamedTuple):
    """How many resamples there are, from which seed, how many at a time, and who is told of each."""

    n_resamples: int
    random_state: Any = None
    n_jobs: int | None = None
    on_resample: Callable[[], object] | None = None


@dataclass(frozen=True, eq=False)
class Pool:
    """The groups of one stratum on the distinct scores of all of them together.

    With weights, a group stands for as many equally weighted rows as would be as precise, its effective size,
    and these have the weighted distribution.

    Attributes
    ----------
    unit_knots : ndarray
        The distinct scores, as fractions of the score range.
    weights : ndarray
        For each group, the weight at each knot; without weights, its rows there.
    sizes : ndarray
        For each group, its rows, or with weights its effective size.
    weighted : bool
        Whether there are weights.
    """

    unit_knots: FloatArray
    weights: NDArray[Any]
    sizes: IntArray
    weighted: bool = False

    @classmethod
    def of_stratum(cls, stratum: Stratum, score_range: tuple[float, float]) -> Pool:
        """Lay the groups of a stratum on their common scores."""
        knots = np.unique(np.concatenate([atoms.scores for atoms in stratum.values()]))
        weighted = any(atoms.units is not None for atoms in stratum.values())
        weights = np.zeros((len(stratum), knots.size), dtype=np.float64 if weighted else np.int64)
        for group, atoms in enumerate(stratum.values()):
            weights[group, np.searchsorted(knots, atoms.scores)] = atoms.weights
        sizes = [atoms.effective_size if weighted else atoms.size for atoms in stratum.values()]
        low, high = score_range
        return cls((knots - low) / (high - low), weights, np.ceil(sizes).astype(np.int64), weighted)

    def coarsened(self, most_knots: int) -> Pool:
        """The pool on no more than about `most_knots` knots, between which about as many people lie.

        What lies between two kept knots is counted at the upper one, so the distributions are the same at
        every kept knot. Sums of hypergeometric counts over neighbouring knots are hypergeometric counts, and
        those of multinomial counts multinomial ones: drawing from the coarser pool is drawing from all people
        and looking at fewer thresholds, nothing less.

        Examples
        --------
        >>> rows = np.array([[2, 0, 1, 1], [1, 1, 2, 0]])
        >>> pool = Pool(np.array([0.1, 0.2, 0.3, 0.4]), rows, rows.sum(axis=1))
        >>> coarse = pool.coarsened(2)
        >>> coarse.unit_knots, coarse.weights.tolist()
        (array([0.2, 0.4]), [[2, 2], [2, 2]])
        """
        if self.unit_knots.size <= most_knots:
            return self
        below = self.distributions(self.weights, "between_groups").mean(axis=0)
        cell = np.ceil(below * most_knots - 1e-9)
        ends = np.flatnonzero(np.append(cell[1:] > cell[:-1], True))
        begins = np.append(0, ends[:-1] + 1)
        weights = np.add.reduceat(self.weights, begins, axis=1)
        return replace(self, unit_knots=self.unit_knots[ends], weights=weights)

    @cached_property
    def knots_of_rows(self) -> list[IntArray | None]:
        """For each group that is drawn row by row, the place of each of its rows among the knots."""
        knots = np.arange(self.unit_knots.size)
        return [
            np.repeat(knots, rows) if one_by_one(int(size), knots.size) else None
            for rows, size in zip(self.weights, self.sizes, strict=True)
        ]

    def draw(self, shares: Sequence[FloatArray], rng: np.random.Generator) -> FloatArray:
        """As many people of each group as its size, from a distribution each, weighing as the group does."""
        drawn = [rng.multinomial(size, share) for size, share in zip(self.sizes, shares, strict=True)]
        scale = self.weights.sum(axis=1) / self.sizes
        return np.asarray(np.stack(drawn) * scale[:, None], dtype=np.float64)

    def distributions(self, weights: NDArray[Any], compare: str) -> FloatArray:
        """The groups' cumulative distributions under some weights, and everyone's last where it is wanted."""
        if compare == "to_overall":
            weights = np.vstack([weights, weights.sum(axis=0)])
        below = np.cumsum(weights, axis=1, dtype=np.float64)
        return below / below[:, -1:]


def pools_of(counts: ScoreCounts, criterion: str) -> list[Pool]:
    """A pool for each label that a criterion compares, coarse enough to be drawn from often."""
    strata = counts.strata(criterion).values()
    return [Pool.of_stratum(stratum, counts.score_range).coarsened(MOST_KNOTS) for stratum in strata]


def worst_mcdp(pool: Pool, weights: NDArray[Any], compare: str, reach: FloatArray) -> FloatArray:
    """MCDP at several half-widths of the worst of the pairs that are compared."""
    distributions = pool.distributions(weights, compare)
    groups = range(len(pool.sizes))
    row_of: dict[Group, int] = {EVERYONE: len(groups), **{group: group for group in groups}}
    worst = np.zeros(reach.size)
    for a, b in pairs_of(groups, compare):
        runs = find_runs(pool.unit_knots, distributions[row_of[a]] - distributions[row_of[b]])
        worst = np.maximum(worst, mcdp_of_runs(*runs, reach))
    return worst


class Resampled(NamedTuple):
    """MCDP at each epsilon of the people themselves, and of each resample (rows), at the same thresholds."""

    seen: FloatArray
    values: FloatArray


Reweigh = Callable[[Pool, np.random.Generator], NDArray[Any]]
"""Draws new weights for the groups of a pool."""


def resample(
    pools: Sequence[Pool],
    reweigh: Reweigh,
    draws: Draws,
    *,
    compare: str,
    epsilons: FloatArray,
    resolution: float = 0.0,
) -> Resampled:
    """MCDP at each epsilon in each of many resamples.

    Every resample has a random stream of its own, spawned from the seed, so that the result does not depend
    on how many of them run at a time.
    """
    n_resamples = as_count(draws.n_resamples, "n_resamples")
    streams = as_rng(draws.random_state).spawn(n_resamples)
    reach = carried_half_widths(epsilons, resolution)

    def measure(weights: Iterable[NDArray[Any]]) -> FloatArray:
        pairs = zip(pools, weights, strict=True)
        values = [worst_mcdp(pool, drawn, compare, reach) for pool, drawn in pairs]
        return np.asarray(np.max(values, axis=0), dtype=np.float64)

    def one(stream: np.random.Generator) -> FloatArray:
        return measure(reweigh(pool, stream) for pool in pools)

    jobs = _jobs(draws.n_jobs)
    found = np.empty((n_resamples, epsilons.size))
    with ThreadPoolExecutor(jobs) as executor:
        results = executor.map(one, streams) if jobs > 1 else map(one, streams)
        for row, values in enumerate(results):
            found[row] = values
            if draws.on_resample is not None:
                draws.on_resample()
    return Resampled(measure(pool.weights for pool in pools), found)


def resample_counts(
    counts: ScoreCounts, reweigh: Reweigh, draws: Draws, criterion: str, compare: str, epsilons: FloatArray
) -> Resampled:
    """MCDP at each epsilon in each of many resamples of counts."""
    pools = pools_of(counts, criterion)
    resolution = counts.resolution
    return resample(pools, reweigh, draws, compare=compare, epsilons=epsilons, resolution=resolution)


def _jobs(n_jobs: int | None) -> int:
    if n_jobs is None:
        return 1
    return as_count(cpu_count() or 1 if n_jobs == -1 else n_jobs, "n_jobs")
