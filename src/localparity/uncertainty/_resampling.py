"""Resamples: the loop over them, the pairs that they compare, and MCDP of each on common thresholds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._progress import Forecast
from localparity._types import FloatArray, Group, IntArray
from localparity._validation import as_count, as_jobs, as_rng
from localparity.counts._comparison import EVERYONE, Comparison
from localparity.metrics._profile import carried_half_widths

_LEAST_DEVIATION = 1e-12  # what a gap's standard deviation counts as at least: below, it is rounding


class PairRows(NamedTuple):
    """The pairs that are compared, by the rows of their two sides, and how a pair's gap is studentised."""

    first: IntArray  # the row of each pair's first and second side; everyone is the last row
    second: IntArray
    # What a gap is multiplied with: one over its standard deviation, up to a factor that all pairs share
    scale: FloatArray


def studentised_pairs(
    comparison: Comparison, variances: FloatArray, totals: FloatArray | IntArray
) -> PairRows:
    """The pairs of groups whose distributions have these variances, and which weigh so much."""
    groups = range(variances.size)
    row_of: dict[Group, int] = {EVERYONE: len(groups), **{group: group for group in groups}}
    pairs = [(row_of[a], row_of[b]) for a, b in comparison.pairs(groups)]
    first, second = np.array(pairs, dtype=np.int64).T
    if comparison.compare == "to_overall":
        # F_g - F_all is (1 - p_g) F_g less p_h F_h of every other group.
        shares = totals / totals.sum()
        variance = _of_others(shares) ** 2 * variances + _of_others(shares**2 * variances)
    else:
        variance = variances[first] + variances[second]
    return PairRows(first, second, 1.0 / np.maximum(np.sqrt(variance), _LEAST_DEVIATION))


def _of_others(values: FloatArray) -> FloatArray:
    """For each of some values, none of which is negative, the sum of all others, to the last digits."""
    before = np.append(0.0, np.cumsum(values[:-1]))
    after = np.append(0.0, np.cumsum(values[:0:-1]))[::-1]
    return np.asarray(before + after)


# MCDP of many gap curves on the same knots. Which knots a window holds does not depend on the gap;
# known once, they leave a range minimum for each window, the smaller of two minima over a power of two knots.

Measure = Callable[[Sequence[np.random.Generator]], FloatArray]
"""The largest MCDP of all pairs at each half-width, plain and then scaled, in a resample of each stream."""


class Measuring(NamedTuple):
    """What measures resamples, how each pair is studentised, and how many thresholds they are measured at."""

    measure: Measure
    scale: FloatArray
    n_knots: int


Source = Callable[[Comparison, FloatArray], Measuring]
"""Measures resamples of one stratum at some half-widths."""


def window_ends(starts: FloatArray, knots: FloatArray, half_widths: FloatArray) -> IntArray:
    """How many knots are at or below the end of a window, for each half-width (rows) and start (columns).

    A run carries a window if it is longer than the half-width, so the window holds every knot at which it
    would not be; from the bottom of the range on, a run counts with its full length.
    """
    counts = np.empty((half_widths.size, starts.size), dtype=np.int64)
    at_start = np.searchsorted(knots, starts, side="right")
    lengths = np.where(starts > 0.0, 0.5, 1.0)
    for row, half_width in enumerate(half_widths.tolist()):
        if half_width == 0.0:
            counts[row] = at_start
            continue
        ends = np.searchsorted(knots, starts + half_width / lengths, side="right")
        # What rounding has put on the wrong side of the end.
        while (beyond := (ends > at_start) & (lengths * (knots[ends - 1] - starts) > half_width)).any():
            ends -= beyond
        padded = np.append(knots, np.inf)
        while (inside := lengths * (padded[ends] - starts) <= half_width).any():
            ends += inside
        counts[row] = ends
    return counts


@dataclass(frozen=True, eq=False)
class Ranges:
    """Half-open ranges of places, at each half-width (rows) one from each start (columns)."""

    begins: IntArray  # where each range begins and ends
    ends: IntArray

    @classmethod
    def at_knots(cls, knots: FloatArray, half_widths: FloatArray) -> Ranges:
        """The knots of the windows that start at each knot."""
        return cls(np.arange(knots.size), window_ends(knots, knots, half_widths))

    @cached_property
    def levels(self) -> IntArray:
        """The largest power of two that each range holds, as an exponent; -1 of an empty range."""
        return np.asarray(np.frexp(np.maximum(self.ends - self.begins, 0))[1] - 1, dtype=np.int64)

    @cached_property
    def _of_level(self) -> list[list[tuple[IntArray, IntArray]]]:
        """At each level and half-width, where the two halves of the ranges begin."""
        halves = []
        for level in range(int(self.levels.max(initial=-1)) + 1):
            places = [np.flatnonzero(row == level) for row in self.levels]
            ends = [row[at] - (1 << level) for row, at in zip(self.ends, places, strict=True)]
            halves.append([(self.begins[at], end) for at, end in zip(places, ends, strict=True)])
        return halves

    def places(self, width: int, levels: int) -> NDArray[np.int32]:
        """Where the two halves of each range begin in a flat table of levels; behind it of an empty range."""
        halves = np.stack(np.broadcast_arrays(self.begins, self.ends - (1 << np.maximum(self.levels, 0))))
        places = np.where(self.levels < 0, levels * width, self.levels * width + halves)
        return places.astype(np.int32)

    def largest_minimum(self, values: FloatArray) -> FloatArray:
        """At each half-width (columns) the largest of the ranges' least values, for each row of values."""
        largest = np.zeros((len(values), len(self.ends)))
        # What lies past the last whole power of two is no range's and stays unset.
        spare = [np.zeros_like(values) for _ in self._of_level[1:3]]
        for level, rows in enumerate(self._of_level):
            if level:
                half = 1 << (level - 1)
                out = spare[(level - 1) % 2]
                np.minimum(values[:, :-half], values[:, half:], out=out[:, :-half])
                values = out
            for row, (begins, ends) in enumerate(rows):
                if begins.size:
                    least = values.take(begins, axis=1, mode="clip")
                    if level:
                        np.minimum(least, values.take(ends, axis=1, mode="clip"), out=least)
                    np.maximum(largest[:, row], least.max(axis=1), out=largest[:, row])
        return largest


def mcdp_of_pairs(shares: FloatArray, pairs: PairRows, ranges: Ranges) -> FloatArray:
    """MCDP of each pair (rows) at each half-width, between the groups' distributions (rows)."""
    return ranges.largest_minimum(
        np.stack([_gap(shares[a], shares[b]) for a, b, _ in zip(*pairs, strict=True)])
    )


def worst_of_pairs(shares: FloatArray, pairs: PairRows, ranges: Ranges) -> FloatArray:
    """The largest MCDP of all pairs at each half-width, plain and scaled, in each resample (columns)."""
    worst, scaled = np.zeros((2, shares.shape[1], len(ranges.ends)))
    for first, second, scale in zip(*pairs, strict=True):
        mcdp = ranges.largest_minimum(_gap(shares[first], shares[second]))
        np.maximum(worst, mcdp, out=worst)
        np.maximum(scaled, scale * mcdp, out=scaled)
    return np.hstack([worst, scaled])


def measuring_rows(
    draw: Callable[[np.random.Generator], IntArray],
    pairs: PairRows,
    knots: FloatArray,
    half_widths: FloatArray,
) -> Measuring:
    """Resamples that are drawn as the rows of each group, and of everyone, at each knot."""
    ranges = Ranges.at_knots(knots, half_widths)

    def measure(streams: Sequence[np.random.Generator]) -> FloatArray:
        below = np.stack([np.cumsum(draw(stream), axis=1) for stream in streams], axis=1)
        return worst_of_pairs(below / below[:, :, -1:], pairs, ranges)

    return Measuring(measure, pairs.scale, knots.size)


def _gap(first: FloatArray, second: FloatArray) -> FloatArray:
    """The absolute gap, which is 0 at the last knot."""
    gap = first - second
    np.abs(gap, out=gap)
    gap[..., -1] = 0.0
    return gap


def equal_cells(mass: NDArray[np.number], n_cells: int) -> IntArray:
    """The last place of each of about so many cells of about as much mass; a heavy score is one alone."""
    if mass.size <= n_cells:
        return np.arange(mass.size)
    size = mass.sum() / n_cells
    cell = np.ceil(np.cumsum(mass) / size - 1e-9)
    alone = mass >= size
    return np.flatnonzero(np.append((cell[1:] > cell[:-1]) | alone[1:] | alone[:-1], True))


# Resamples are measured a few together, as many as have about so many values, which a fast cache holds.
_VALUES_AT_ONCE, _MOST_AT_ONCE, _MOST_STREAMS = 2**14, 16, 4096


class Draws(NamedTuple):
    """How many resamples there are, from which seed, and how many at a time."""

    n_resamples: int
    random_state: Any = None
    n_jobs: int | None = None


@dataclass(frozen=True, eq=False)
class Resampled:
    """What was measured of the people themselves and of each resample."""

    seen: FloatArray  # MCDP of each pair (rows) at each epsilon (columns)
    scale: FloatArray  # what a pair's MCDP is multiplied with to be compared with that of other pairs
    supremum: FloatArray  # for each resample, the largest of all pairs' scaled differences at any threshold
    worst: FloatArray  # for each resample (rows) and epsilon, the largest MCDP of all pairs, plain and scaled
    scaled: FloatArray

    @property
    def studentised(self) -> FloatArray:
        """The scaled MCDP of each pair at each epsilon."""
        return self.seen * self.scale[:, None]

    def at_most(self, seen: FloatArray | float) -> Resampled:
        """The same, where the people may measure as little as `seen`."""
        return replace(self, seen=np.minimum(self.seen, seen))


def critical_value(resamples: FloatArray, confidence: float) -> float:
    """What at most a share of 1 - `confidence` of the resamples and the data exceeds; inf of too few."""
    rank = int(np.ceil(confidence * (resamples.size + 1) - 1e-9))
    return float(np.sort(resamples)[rank - 1]) if rank <= resamples.size else float(np.inf)


def least_resamples(confidence: float) -> int:
    """How many resamples a statement at a confidence takes."""
    return int(np.ceil(1.0 / (1.0 - confidence) - 1e-9)) - 1


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
    half_widths = carried_half_widths(at, resolution)
    strata = [source(comparison, half_widths) for source in sources]

    def several(streams: Sequence[np.random.Generator]) -> FloatArray:
        return np.asarray(np.max([stratum.measure(streams) for stratum in strata], axis=0))

    n_knots = max(stratum.n_knots for stratum in strata)
    measured = repeat_together(several, draws, 2 * at.size, at_once=_VALUES_AT_ONCE // n_knots)
    worst, scaled = measured[:, : at.size], measured[:, at.size :]
    columns = np.searchsorted(at, epsilons)
    scale = np.concatenate([stratum.scale for stratum in strata])
    seen = np.broadcast_to(seen, (scale.size, epsilons.size))
    # Normal deviations of a group of few effective rows may go beyond what a gap can be.
    worst = np.minimum(worst[:, columns], 1.0)
    return Resampled(seen, scale, scaled[:, 0], worst, scaled[:, columns])


def repeat(
    one: Callable[[np.random.Generator], FloatArray | float], draws: Draws, columns: int = 1
) -> FloatArray:
    """What `one` measures (columns) in each of many resamples (rows)."""
    return repeat_together(
        lambda streams: np.array([one(stream) for stream in streams]).reshape(-1, columns), draws, columns
    )


def repeat_together(several: Measure, draws: Draws, columns: int, *, at_once: int = 1) -> FloatArray:
    """What is measured (columns) in each of many resamples (rows), of which a few are measured together.

    Every resample has its random stream: the result does not depend on how many run at a time.
    """
    n_resamples = as_count(draws.n_resamples, "n_resamples")
    rng, jobs = as_rng(draws.random_state), as_jobs(draws.n_jobs)
    at_once = int(np.clip(at_once, 1, _MOST_AT_ONCE))
    values = np.empty((n_resamples, columns))
    measured = 0
    with (
        Forecast(n_resamples, f"drawing {n_resamples:,} resamples") as forecast,
        ThreadPoolExecutor(jobs) as executor,
    ):
        while measured < n_resamples:
            # Streams take memory, so that there are never many more than are measured next.
            streams = rng.spawn(min(n_resamples - measured, _MOST_STREAMS))
            together = [streams[start : start + at_once] for start in range(0, len(streams), at_once)]
            for rows in executor.map(several, together) if jobs > 1 else map(several, together):
                values[measured : measured + len(rows)] = rows
                measured += len(rows)
                forecast.advance(len(rows))
    return values
