"""How long a monitor takes to find a drift: its own detector, on people who are drawn again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from localparity._types import FloatArray, IntArray, Seed
from localparity._validation import InputError, as_count, as_fraction, as_probability, as_rng
from localparity.monitoring._alarms import CUTOFFS, EDGES, ONE_PERIOD, Detector, Look
from localparity.monitoring._periods import SKETCH_SHARE
from localparity.monitoring._watch import Watch
from localparity.uncertainty._bands import band_radius
from localparity.uncertainty._looks import look_share
from localparity.uncertainty._noise_floor import as_sizes

_FIRST_DAY = np.datetime64("2001-01-01")
_MOST_PERIODS = 3000


def periods_needed(
    group_sizes: Sequence[int],
    *,
    mcdp: float,
    max_mcdp: float = 0.0,
    quiet: int = 365,
    power: float = 0.8,
    alarm_rate: float = 0.05,
    n_runs: int = 400,
    random_state: Seed = None,
) -> int | None:
    """Find how many periods a `Monitor` takes to raise an alarm, once MCDP(0) is above its bound.

    Monitors are simulated: in each period every group has its people. After some quiet periods, in which the
    groups are alike, the two smallest groups differ by `mcdp` at the median score, and less at all others.
    The other groups stay as they were, halfway between the two. Rows are independent, scores have no ties,
    and each period comes in one batch.

    Parameters
    ----------
    group_sizes : sequence of int
        The number of people of each group in a period, two groups or more.
    mcdp : float
        MCDP(0) after the quiet periods.
    max_mcdp : float
        The bound of the monitor, below `mcdp`.
    quiet : int
        How many periods there were before.
    power : float
        The probability of an alarm within the periods returned.
    alarm_rate : float
        The monitor's own: the most that the probability of a false alarm, ever, may be.
    n_runs : int
        How many monitors are simulated. With 400, the probability is off by some 2 points.
    random_state : int, Generator or None
        The same seed gives the same result.

    Returns
    -------
    int or None
        The number of periods; None where more than 3,000 are needed.

    Examples
    --------
    >>> import localparity as lp
    >>> lp.monitoring.periods_needed([200, 200], mcdp=0.2, quiet=0, n_runs=100, random_state=0)
    2
    """
    sizes, bound = as_sizes(group_sizes), as_fraction(max_mcdp, "max_mcdp")
    if as_fraction(mcdp, "mcdp") <= bound:
        raise InputError(f"must be above max_mcdp={bound:g}, got {mcdp:g}", "mcdp")
    as_count(quiet, "quiet", at_least=0)
    needed = as_probability(power, "power") * as_count(n_runs, "n_runs")
    watch, rng = Watch(max_mcdp=bound, alarm_rate=alarm_rate), as_rng(random_state)
    simulated = _Monitors(watch, sizes, n_runs)
    for _ in range(quiet):
        simulated.add(0.0, rng)
    found = np.zeros(n_runs, dtype=bool)
    for period in range(1, _MOST_PERIODS + 1):
        found |= simulated.add(mcdp, rng)
        if found.sum() >= needed:
            return period
    return None


class _Monitors:
    """Many monitors that get periods of the same sizes, on counts of people at or below each cutoff."""

    def __init__(self, watch: Watch, sizes: IntArray, runs: int) -> None:
        self._watch, self._sizes, self._runs = watch, sizes.tolist(), runs
        self._detector = Detector(watch)
        # The cutoffs that split people into equal parts, and the median.
        self._edges = np.append(np.arange(1, CUTOFFS + 1) / (CUTOFFS + 1), 0.5)
        self._edges.sort()
        self._cutoffs = np.flatnonzero(self._edges != 0.5)
        self._signs = np.zeros(sizes.size)
        self._signs[np.argsort(sizes, kind="stable")[:2]] = 1.0, -1.0

    def add(self, mcdp: float, rng: np.random.Generator) -> FloatArray:
        """Whether each monitor raises an alarm in the next period, in which MCDP is as told."""
        # The gap rises in a line to the median, and falls in one from there.
        half = mcdp * np.minimum(self._edges, 1.0 - self._edges)
        counts = [
            self._draw(size, self._edges + sign * half, rng)
            for size, sign in zip(self._sizes, self._signs.tolist(), strict=True)
        ]
        none = np.zeros((self._runs, EDGES), dtype=np.int64)
        look = Look(
            str(_FIRST_DAY + self._detector.look),
            {(place, None): size for place, size in enumerate(self._sizes)},
            {
                (place, None): np.concatenate([some[:, self._cutoffs], none], axis=1)
                for place, some in enumerate(counts)
            },
        )
        alarms = self._detector.add(look) >= self._detector.needed
        return np.asarray(alarms | np.any(list(self._by_itself(counts)), axis=0))

    def _draw(self, size: int, below: FloatArray, rng: np.random.Generator) -> IntArray:
        """How many people of a group are at or below each edge, in each monitor."""
        shares = np.diff(below, prepend=0.0, append=1.0)
        return rng.multinomial(size, shares, size=self._runs).cumsum(axis=1)[:, :-1]

    def _by_itself(self, counts: Sequence[IntArray]) -> Iterator[FloatArray]:
        """Whether the gap of each pair is above the bound in one period by itself."""
        pairs = list(combinations(range(len(self._sizes)), 2))
        error = ONE_PERIOD * self._watch.alarm_rate * look_share(self._detector.look) / len(pairs)
        for first, second in pairs:
            sizes = self._sizes[first], self._sizes[second]
            gap = np.abs(counts[first] / sizes[0] - counts[second] / sizes[1]).max(axis=1)
            radius = float(band_radius((float(sizes[0]), float(sizes[1])), (1.0 - SKETCH_SHARE) * error))
            enough = min(sizes) >= self._watch.min_group_size
            yield np.asarray(enough & (gap - radius > (self._watch.max_mcdp or 0.0)))
