"""The loop over resamples: seeds, threads, and what is measured of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from localparity._progress import Forecast
from localparity._types import FloatArray
from localparity._validation import as_count, as_jobs, as_rng
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import ScoreCounts
from localparity.metrics._profile import carried_half_widths
from localparity.uncertainty._deviations import deviations_of
from localparity.uncertainty._pairs import Measure, PairRows

_VALUES_AT_ONCE = 2**14
_MOST_AT_ONCE, _MOST_STREAMS = 16, 4096
"""Resamples are measured a few together, as many as have about so many values, which a fast cache holds."""


class Draws(NamedTuple):
    """How many resamples there are, from which seed, how many at a time, and who is told of each."""

    n_resamples: int
    random_state: Any = None
    n_jobs: int | None = None
    on_resample: Callable[[], object] | None = None


@dataclass(frozen=True, eq=False)
class Resampled:
    """What was measured of the people themselves and of each resample.

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

    def at_most(self, seen: FloatArray | float) -> Resampled:
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


class Source(Protocol):
    """What resamples of one stratum are drawn from: a `Pool` or `Deviations`."""

    @property
    def n_knots(self) -> int: ...
    def pairs(self, comparison: Comparison) -> PairRows: ...
    def measuring(self, comparison: Comparison, reach: FloatArray) -> Measure: ...


def resample(
    sources: Sequence[Source],
    draws: Draws,
    *,
    comparison: Comparison,
    epsilons: FloatArray,
    seen: FloatArray | float = np.inf,
    resolution: float = 0.0,
) -> Resampled:
    """Measure many resamples of some strata together; `seen` is what the people themselves measure."""
    at = np.union1d(0.0, epsilons)
    reach = carried_half_widths(at, resolution)
    measures = [source.measuring(comparison, reach) for source in sources]

    def several(streams: Sequence[np.random.Generator]) -> FloatArray:
        return np.asarray(np.max([measure(streams) for measure in measures], axis=0))

    n_knots = max(source.n_knots for source in sources)
    found = repeat_together(several, draws, 2 * at.size, at_once=_VALUES_AT_ONCE // n_knots)
    worst, scaled = found[:, : at.size], found[:, at.size :]
    columns = np.searchsorted(at, epsilons)
    scale = np.concatenate([source.pairs(comparison).scale for source in sources])
    seen = np.broadcast_to(seen, (scale.size, epsilons.size))
    # Normal deviations of a group of few effective rows may go beyond what a gap can be.
    worst = np.minimum(worst[:, columns], 1.0)
    return Resampled(seen, scale, scaled[:, 0], worst, scaled[:, columns])


def deviation_resamples(
    counts: ScoreCounts, comparison: Comparison, epsilons: FloatArray, draws: Draws
) -> Resampled:
    """How far each pair's gap may be off: draws of the multiplier bootstrap, at up to 8,192 thresholds.

    Pairs come in the order of the counts' curves.
    """
    deviations = deviations_of(counts, comparison)
    reach = carried_half_widths(epsilons, counts.resolution)
    seen = np.concatenate([each.seen(comparison, reach) for each in deviations])
    return resample(
        deviations, draws, comparison=comparison, epsilons=epsilons, seen=seen, resolution=counts.resolution
    )


def repeat(
    one: Callable[[np.random.Generator], FloatArray | float], draws: Draws, columns: int = 1
) -> FloatArray:
    """What `one` measures (columns) in each of many resamples (rows)."""
    return repeat_together(
        lambda streams: np.array([one(stream) for stream in streams]).reshape(-1, columns), draws, columns
    )


def repeat_together(several: Measure, draws: Draws, columns: int, *, at_once: int = 1) -> FloatArray:
    """What is measured (columns) in each of many resamples (rows), of which a few are measured together.

    Every resample has a random stream of its own, spawned from the seed, so that the result does not depend
    on how many of them run at a time.
    """
    n_resamples = as_count(draws.n_resamples, "n_resamples")
    rng, jobs = as_rng(draws.random_state), as_jobs(draws.n_jobs)
    at_once = int(np.clip(at_once, 1, _MOST_AT_ONCE))
    found = np.empty((n_resamples, columns))
    measured, forecast = 0, Forecast(n_resamples, "resamples")
    with ThreadPoolExecutor(jobs) as executor:
        while measured < n_resamples:
            # Streams take memory, so that there are never many more than are measured next.
            streams = rng.spawn(min(n_resamples - measured, _MOST_STREAMS))
            together = [streams[start : start + at_once] for start in range(0, len(streams), at_once)]
            for rows in executor.map(several, together) if jobs > 1 else map(several, together):
                found[measured : measured + len(rows)] = rows
                measured += len(rows)
                forecast.advance(len(rows))
                if draws.on_resample is not None:
                    for _ in rows:
                        draws.on_resample()
    return found
