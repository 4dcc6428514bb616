"""The loop over resamples: seeds, threads, and what is measured of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from os import cpu_count
from typing import Any, NamedTuple

import numpy as np

from localparity._types import FloatArray
from localparity._validation import as_count, as_rng
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import ScoreCounts
from localparity.metrics._profile import carried_half_widths
from localparity.uncertainty._pool import Pool, pools_of


class Draws(NamedTuple):
    """How many resamples there are, from which seed, how many at a time, and who is told of each."""

    n_resamples: int
    random_state: Any = None
    n_jobs: int | None = None
    on_resample: Callable[[], object] | None = None


@dataclass(frozen=True, eq=False)
class Resampled:
    """What was measured of the people themselves and of each resample, at the same thresholds.

    Attributes
    ----------
    seen : ndarray
        MCDP of each pair (rows) at each epsilon (columns).
    scale : ndarray
        What a pair's MCDP is multiplied with to be compared with that of other pairs.
    supremum : ndarray
        For each resample, the largest of all pairs' scaled differences at any threshold.
    worst, scaled : ndarray
        For each resample (rows) and epsilon, the largest MCDP of all pairs, plain and scaled.
    """

    seen: FloatArray
    scale: FloatArray
    supremum: FloatArray
    worst: FloatArray
    scaled: FloatArray

    @property
    def studentised(self) -> FloatArray:
        """The scaled MCDP of each pair at each epsilon."""
        return self.seen * self.scale[:, None]

    def at_most(self, seen: FloatArray) -> Resampled:
        """The same, where the people may measure as little as `seen`."""
        return replace(self, seen=np.minimum(self.seen, seen))


def critical_value(found: FloatArray, confidence: float) -> float:
    """What at most a share of 1 - `confidence` of the resamples exceeds, the data counted as one of them.

    Infinity where there are too few resamples to say.

    Examples
    --------
    >>> critical_value(np.arange(1.0, 20.0), 0.95), critical_value(np.arange(1.0, 19.0), 0.95)
    (19.0, inf)
    """
    place = int(np.ceil(confidence * (found.size + 1) - 1e-9))
    return float(np.sort(found)[place - 1]) if place <= found.size else float(np.inf)


def least_resamples(confidence: float) -> int:
    """How many resamples a statement at a confidence takes.

    Examples
    --------
    >>> least_resamples(0.95), least_resamples(0.999)
    (19, 999)
    """
    return int(np.ceil(1.0 / (1.0 - confidence) - 1e-9)) - 1


Draw = Callable[[Pool, Comparison, np.random.Generator], FloatArray]
"""Draws rows whose differences are the gaps of a resample: `Pool.dealt` or `Pool.deviated`."""


def resample(
    pools: Sequence[Pool],
    draw: Draw,
    draws: Draws,
    *,
    comparison: Comparison,
    epsilons: FloatArray,
    resolution: float = 0.0,
) -> Resampled:
    """Measure the people of some pools, one for each stratum, and many resamples of them."""
    # Imported here: numba is not loaded with the package.
    from localparity.uncertainty._kernels import mcdp_of_pairs, worst_of_pairs

    reach = carried_half_widths(epsilons, resolution)
    pairs = [pool.pairs(comparison, deviated=draw is Pool.deviated) for pool in pools]

    def one(stream: np.random.Generator) -> FloatArray:
        found = [
            worst_of_pairs(pool.unit_knots, draw(pool, comparison, stream), *each, reach)
            for pool, each in zip(pools, pairs, strict=True)
        ]
        measured = [np.concatenate([[supremum], *at]) for supremum, *at in found]
        return np.asarray(np.max(measured, axis=0), dtype=np.float64)

    seen = [
        mcdp_of_pairs(pool.unit_knots, pool.distributions(pool.weights, comparison), *each[:2], reach)
        for pool, each in zip(pools, pairs, strict=True)
    ]
    found = repeat(one, draws, 1 + 2 * reach.size)
    return Resampled(
        np.concatenate(seen),
        np.concatenate([each.scale for each in pairs]),
        found[:, 0],
        found[:, 1 : 1 + reach.size],
        found[:, 1 + reach.size :],
    )


def resample_counts(
    counts: ScoreCounts, comparison: Comparison, draw: Draw, draws: Draws, epsilons: FloatArray
) -> Resampled:
    """Measure counts and many resamples of them; pairs come in the order of the counts' curves."""
    pools = pools_of(counts, comparison)
    return resample(
        pools, draw, draws, comparison=comparison, epsilons=epsilons, resolution=counts.resolution
    )


def repeat(
    one: Callable[[np.random.Generator], FloatArray | float], draws: Draws, columns: int = 1
) -> FloatArray:
    """What `one` measures (columns) in each of many resamples (rows).

    Every resample has a random stream of its own, spawned from the seed, so that the result does not depend
    on how many of them run at a time.
    """
    n_resamples = as_count(draws.n_resamples, "n_resamples")
    streams = as_rng(draws.random_state).spawn(n_resamples)
    jobs = _jobs(draws.n_jobs)
    found = np.empty((n_resamples, columns))
    with ThreadPoolExecutor(jobs) as executor:
        results = executor.map(one, streams) if jobs > 1 else map(one, streams)
        for row, values in enumerate(results):
            found[row] = values
            if draws.on_resample is not None:
                draws.on_resample()
    return found


def _jobs(n_jobs: int | None) -> int:
    if n_jobs is None:
        return 1
    return as_count(cpu_count() or 1 if n_jobs == -1 else n_jobs, "n_jobs")
