"""What the bootstrap and the permutation test share: groups on common scores, seeds, and the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from os import cpu_count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._validation import FloatArray, as_choice, as_count
from localparity.metrics._counts import ScoreCounts, Stratum
from localparity.metrics._groups import COMPARISONS
from localparity.metrics._profile import carried_half_widths, find_runs, mcdp_of_runs

IntArray = NDArray[np.int64]

MOST_ROWS_ONE_BY_ONE = 2 * 10**7
"""Up to so many rows are drawn one by one, which is faster; more of them score by score, which is smaller."""


@dataclass(frozen=True, eq=False)
class Pool:
    """The groups of one stratum on the distinct scores of all of them together.

    Attributes
    ----------
    unit_knots : ndarray
        The distinct scores, as fractions of the score range.
    rows : ndarray
        For each group, how many of its rows lie at each knot.
    weights : ndarray or None
        For each group, the weight at each knot; None where it is the rows.
    """

    unit_knots: FloatArray
    rows: IntArray
    weights: FloatArray | None

    @classmethod
    def of_stratum(cls, stratum: Stratum, score_range: tuple[float, float]) -> Pool:
        """Lay the groups of a stratum on their common scores."""
        knots = np.unique(np.concatenate([atoms.scores for atoms in stratum.values()]))
        weighted = any(atoms.units is not None for atoms in stratum.values())
        rows = np.zeros((len(stratum), knots.size), dtype=np.int64)
        weights = np.zeros(rows.shape) if weighted else None
        for group, atoms in enumerate(stratum.values()):
            places = np.searchsorted(knots, atoms.scores)
            rows[group, places] = atoms.rows
            if weights is not None:
                weights[group, places] = atoms.weights
        low, high = score_range
        return cls((knots - low) / (high - low), rows, weights)

    @cached_property
    def sizes(self) -> IntArray:
        """How many rows each group has."""
        return np.asarray(self.rows.sum(axis=1), dtype=np.int64)

    @cached_property
    def knots_of_rows(self) -> list[IntArray]:
        """For each group, the place of each of its rows among the knots."""
        return [np.repeat(np.arange(rows.size), rows) for rows in self.rows]

    def distributions(self, weights: NDArray[Any], compare: str) -> FloatArray:
        """The groups' cumulative distributions under some weights, and everyone's last where it is wanted."""
        if compare == "to_overall":
            weights = np.vstack([weights, weights.sum(axis=0)])
        below = np.cumsum(weights, axis=1, dtype=np.float64)
        return below / below[:, -1:]


def pools_of(counts: ScoreCounts, criterion: str, min_group_size: int = 1) -> list[Pool]:
    """A pool for each label that a criterion compares."""
    strata = counts.strata(criterion, min_group_size=min_group_size)
    return [Pool.of_stratum(stratum, counts.score_range) for stratum in strata.values()]


def worst_mcdp(pool: Pool, weights: NDArray[Any], compare: str, reach: FloatArray) -> FloatArray:
    """MCDP at several half-widths of the worst of the pairs that are compared."""
    distributions = pool.distributions(weights, compare)
    groups = len(pool.rows)
    if compare == "to_overall":
        pairs = [(group, groups) for group in range(groups)]
    else:
        pairs = [(a, b) for b in range(groups) for a in range(b)]
    worst = np.zeros(reach.size)
    for a, b in pairs:
        runs = find_runs(pool.unit_knots, distributions[a] - distributions[b])
        worst = np.maximum(worst, mcdp_of_runs(*runs, reach))
    return worst


Reweigh = Callable[[Pool, np.random.Generator], NDArray[Any]]
"""Draws new weights for the groups of a pool."""


def resample(
    pools: Sequence[Pool],
    reweigh: Reweigh,
    *,
    compare: str,
    epsilons: FloatArray,
    resolution: float,
    n_resamples: int,
    random_state: Any,
    n_jobs: int | None = None,
    on_resample: Callable[[], object] | None = None,
) -> FloatArray:
    """MCDP at each epsilon (columns) in each of many resamples (rows).

    Every resample has a random stream of its own, spawned from `random_state`, so that the result does not
    depend on how many of them run at a time.
    """
    as_choice(compare, "compare", COMPARISONS)
    n_resamples = as_count(n_resamples, "n_resamples")
    jobs = 1 if n_jobs is None else as_count(n_jobs if n_jobs != -1 else cpu_count() or 1, "n_jobs")
    streams = np.random.default_rng(random_state).spawn(n_resamples)
    reach = carried_half_widths(epsilons, resolution)

    def one(stream: np.random.Generator) -> FloatArray:
        measure = partial(worst_mcdp, compare=compare, reach=reach)
        values = [measure(pool, reweigh(pool, stream)) for pool in pools]
        return np.asarray(np.max(values, axis=0), dtype=np.float64)

    found = np.empty((n_resamples, epsilons.size))
    with ThreadPoolExecutor(jobs) as executor:
        results = executor.map(one, streams) if jobs > 1 else map(one, streams)
        for row, values in enumerate(results):
            found[row] = values
            if on_resample is not None:
                on_resample()
    return found
