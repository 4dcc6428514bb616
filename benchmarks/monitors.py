"""How often monitors raise a false alarm, and how soon they find a drift.

`python -m benchmarks.monitors` writes results/monitors.md and results/monitor_delays.csv; `--jobs` says how
many processes simulate, and `--out` writes to another folder.

Many monitors are simulated at a time, on counts: a batch is the number of people at each of 100 scores. The
detector is the package's own, on arrays with one more axis. Tests hold simulated monitors against real ones.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from functools import cache
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks._commit import current_commit
from benchmarks._designs import Floats, Rng
from localparity.monitoring import Watch
from localparity.monitoring._alarms import CUTOFFS, EDGES, ONE_PERIOD, Detector, Look, first_cutoffs
from localparity.uncertainty._bands import band_radius
from localparity.uncertainty._looks import average_radius, look_share

RESULTS = Path(__file__).parents[1] / "results"
ALARM_RATE, SIZE, SCORES, YEAR = 0.05, 200, 100, 365
VALUES = (np.arange(SCORES) + 0.5) / SCORES
BAND = 0.9  # a tenth of the error is left to the sketches
START = np.datetime64("2026-01-01")
_DAYS_KEPT = 128  # as long as batches may be late


class Batch(NamedTuple):
    """The people of two groups in a batch, its day, how high everyone's scores are, and the true MCDP.

    The gap has its peak at the middle, or is the same from the lowest score to the highest.
    """

    day: int
    sizes: tuple[int, int]
    mcdp: float = 0.0
    tilt: float = 0.0
    everywhere: bool = False

    def shares(self) -> tuple[Floats, Floats]:
        """The share of either group that has each score."""
        first = np.exp(self.tilt * VALUES)
        first /= first.sum()
        if self.everywhere:
            first = (1.0 - 2.0 * self.mcdp) * first
            first[[0, -1]] += self.mcdp
            moved = np.eye(SCORES)[-1] - np.eye(SCORES)[0]
        else:
            low = first * (VALUES < 0.5)
            moved = (first - low) / (first - low).sum() - low / low.sum()
        return first, first + self.mcdp * moved

    def draw(self, rng: Rng, runs: int) -> np.ndarray:
        """The people of either group at or below each score, in each of many monitors."""
        both = zip(self.sizes, self.shares(), strict=True)
        return np.stack([rng.multinomial(size, share, size=runs) for size, share in both], axis=1).cumsum(-1)


class Monitors:
    """Many monitors that get batches of the same sizes at the same times."""

    def __init__(self, watch: Watch, runs: int) -> None:
        self.watch, self.detector = watch, Detector(watch)
        self.bound = watch.max_mcdp or 0.0
        self.total = np.zeros((runs, SCORES))
        self.places = np.broadcast_to(_places(np.array(first_cutoffs((0.0, 1.0)))), (runs, CUTOFFS))
        self.edges = _places(np.arange(EDGES) / EDGES)
        self.day, self.people, self.chosen_at = -1, 0, 0
        self.days: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def add(self, batch: Batch, counts: np.ndarray) -> np.ndarray:
        """Whether each monitor raises an alarm at a batch."""
        if batch.day != self.day and self.people and self.people >= 2 * self.chosen_at:
            wanted = np.arange(1, CUTOFFS + 1) / (CUTOFFS + 1) * self.people
            self.places = (self.total[:, None, :] < wanted[:, None] - 1e-9).sum(axis=-1)
            self.chosen_at = self.people
        self.day = batch.day
        self.total += counts.sum(axis=1)
        self.people += sum(batch.sizes)
        none = np.zeros((*counts.shape[:-1], 1), dtype=np.int64)
        padded = np.concatenate([counts, none], axis=-1)  # place -1 has nobody
        places = self.places[:, None, :] % (SCORES + 1)
        if self.watch.epsilon > 0.0:
            places = np.broadcast_to(self.edges % (SCORES + 1), (1, 1, EDGES))
        seen = np.take_along_axis(padded, places, axis=-1)
        if self.watch.epsilon > 0.0:
            seen = np.concatenate([np.zeros((*seen.shape[:-1], CUTOFFS), dtype=np.int64), seen], axis=-1)
        keys = [(key, None) for key, size in zip("fm", batch.sizes, strict=True) if size]
        look = Look(
            str(START + np.timedelta64(batch.day, "D")),
            {(key, None): batch.sizes["fm".index(key)] for key, _ in keys},
            {(key, None): seen[:, "fm".index(key)] for key, _ in keys},
        )
        alarms = self.detector.add(look) >= self.detector.needed
        return np.asarray(alarms | self._by_itself(batch, counts))

    def _by_itself(self, batch: Batch, counts: np.ndarray) -> np.ndarray | bool:
        """Whether the day of a batch is above the bound by itself; at epsilon 0 alone."""
        known, sizes = self.days.get(batch.day, (0, np.zeros(2, dtype=int)))
        counts, sizes = known + counts, sizes + batch.sizes
        self.days[batch.day] = counts, sizes
        if len(self.days) > _DAYS_KEPT:
            del self.days[min(self.days)]
        if self.watch.epsilon > 0.0 or sizes.min() < self.watch.min_group_size:
            return False
        error = BAND * ONE_PERIOD * self.watch.alarm_rate * look_share(self.detector.look)
        gap = np.abs(counts[:, 0] / sizes[0] - counts[:, 1] / sizes[1]).max(axis=-1)
        return np.asarray(gap - radius(*sizes.tolist(), error) > self.bound + 1e-12)


def _places(cutoffs: Floats) -> np.ndarray:
    """The place of the highest score at or below each cutoff, -1 where there is none."""
    return np.searchsorted(VALUES, cutoffs, side="right") - 1


@cache
def radius(first: int, second: int, error: float) -> float:
    return float(band_radius((float(first), float(second)), error))


# What may be false: batches of days within the bound.

Schedule = Callable[[Rng, int], Iterator[Batch]]


def steady(mcdp: float, *, everywhere: bool = False) -> Schedule:
    """Days of 200 + 200 people."""
    return lambda _, days: (Batch(day, (SIZE, SIZE), mcdp, 0.0, everywhere) for day in range(days))


def drifting(mcdp: float) -> Schedule:
    """The shares of the groups trade places, and scores rise and fall with the seasons and the weeks."""

    def batches(rng: Rng, days: int) -> Iterator[Batch]:
        for day in range(days):
            share = 0.05 + 0.9 * day / days
            sizes = tuple(max(int(number), 1) for number in rng.poisson([400 * share, 400 * (1 - share)]))
            tilt = 1.5 * np.sin(2 * np.pi * day / YEAR) + 0.5 * (day % 7 == 6)
            yield Batch(day, (sizes[0], sizes[1]), mcdp, tilt)

    return batches


def tiny(mcdp: float) -> Schedule:
    """From none to six people of one group a day, beside 300."""
    return lambda rng, days: (Batch(day, (int(rng.integers(0, 7)), 300), mcdp) for day in range(days))


def one_by_one(mcdp: float) -> Schedule:
    """People come one by one, up to eight a day; on many days there is one."""

    def batches(rng: Rng, days: int) -> Iterator[Batch]:
        for day in range(days):
            for _ in range(1 if day % 3 else int(rng.integers(1, 9))):
                yield Batch(day, (1, 0) if rng.random() < 0.5 else (0, 1), mcdp, np.sin(day / 50))

    return batches


def late(mcdp: float) -> Schedule:
    """A day comes in four parts, a fifth of them up to five days late; one in a hundred opens a day again."""

    def batches(rng: Rng, days: int) -> Iterator[Batch]:
        parts = np.repeat(np.arange(days), 4)
        delay = rng.integers(1, 6, parts.size) * (rng.random(parts.size) < 0.2)
        delay += 90 * (rng.random(parts.size) < 0.01)
        for place in np.argsort(parts + delay, kind="stable").tolist():
            day = int(parts[place])
            yield Batch(day, (SIZE // 4, SIZE // 4), mcdp, np.sin(2 * np.pi * day / YEAR))

    return batches


class Design(NamedTuple):
    """Monitors that are always within the bound."""

    what: str
    schedule: Schedule
    bound: float = 0.0
    epsilon: float = 0.0
    draws: int = 2000


DESIGNS = [
    Design("parity", steady(0.0)),
    Design("an MCDP of 0.05 at the middle, bound 0.05", steady(0.05), 0.05),
    Design(
        "a gap of 0.05 from the lowest score to the highest, bound 0.05", steady(0.05, everywhere=True), 0.05
    ),
    Design("parity; shares of groups trade places, seasons", drifting(0.0)),
    Design("0.05, bound 0.05; shares of groups trade places, seasons", drifting(0.05), 0.05),
    Design("parity; 0 to 6 people of one group a day, 300 of the other", tiny(0.0)),
    Design("parity; people come one by one, 1 to 8 a day, seasons", one_by_one(0.0)),
    Design("parity; 4 batches a day, a fifth of them late, some by three months, seasons", late(0.0)),
    Design("parity, epsilon 0.05", steady(0.0), 0.0, 0.05),
]


def false_alarms(design: Design, runs: int, rng: Rng, *, years: int = 10) -> int:
    """How many monitors of some years ever raise an alarm."""
    watch = Watch(max_mcdp=design.bound, epsilon=design.epsilon, alarm_rate=ALARM_RATE)
    monitors, alarmed = Monitors(watch, runs), np.zeros(runs, dtype=bool)
    for batch in design.schedule(rng, years * YEAR):
        alarmed |= monitors.add(batch, batch.draw(rng, runs))
    return int(alarmed.sum())


DRIFTS = ((0.4, 30), (0.2, 60), (0.1, 120), (0.05, 400))
WATCHED = {"from the first day": 0, "after a year": YEAR, "after ten years": 10 * YEAR}


def days_until_found(monitors: Monitors, rng: Rng, drift: float, most: int) -> Floats:
    """How many days it takes until MCDP, from now on so far above the bound, is found; infinity if more."""
    runs, first = len(monitors.total), monitors.day + 1
    found = np.full(runs, np.inf)
    for day in range(most):
        batch = Batch(first + day, (SIZE, SIZE), monitors.bound + drift)
        alarms = monitors.add(batch, batch.draw(rng, runs))
        found[alarms & np.isinf(found)] = day + 1.0
        if np.isfinite(found).all():
            break
    return found


def delays(runs: int, rng: Rng, starts: dict[str, int] = WATCHED) -> dict[tuple[float, str], Floats]:
    """Days until drifts from parity, with a bound of 0, are found."""
    monitors = Monitors(Watch(max_mcdp=0.0, alarm_rate=ALARM_RATE), runs)
    found, day = {}, 0
    for name, start in starts.items():
        for day in range(day, start):  # noqa: B020
            batch = Batch(day, (SIZE, SIZE))
            monitors.add(batch, batch.draw(rng, runs))
        day = start
        for drift, most in DRIFTS:
            found[drift, name] = days_until_found(deepcopy(monitors), rng, drift, most)
    return found


def sequence_misses(rng: Rng, years: int = 1) -> bool:
    """Whether the interval since the start, of days whose MCDP rises and falls, misses on any day."""
    days = np.arange(1, years * YEAR + 1)
    mcdp = 0.2 * np.sin(days / 30.0) ** 2
    reach = [average_radius(2.0 / (SIZE * day), BAND * ALARM_RATE * look_share(day)) for day in days.tolist()]
    drawn = [
        np.diff(Batch(0, (SIZE, SIZE), value).draw(rng, 1)[0], axis=0)[0] / SIZE for value in mcdp.tolist()
    ]
    measured = np.abs(np.cumsum(drawn, axis=0)).max(axis=1) / days
    return bool((np.abs(measured - np.cumsum(mcdp) / days) > reach).any())


CHUNK = 125
SEED = 37


def _chunk(place: int, number: int) -> Any:
    """A part of the simulations: of a design, of the delays, or of intervals since the start."""
    rng = np.random.default_rng([SEED, place, number])
    if place < len(DESIGNS):
        return false_alarms(DESIGNS[place], CHUNK, rng)
    if place == len(DESIGNS):
        return delays(CHUNK, rng)
    return sum(sequence_misses(rng) for _ in range(CHUNK))


HEADING = """\
# Monitors over ten years

`python -m benchmarks.monitors` at {commit}. The alarm rate is 0.05. Monitors are simulated on counts, by the
package's own detector, for ten years of days that are within the bound all the time. A day has 200 + 200
people where nothing else is said, and epsilon is 0. At epsilon 0.05, single days are not looked at.

| monitors within the bound: any alarm | may happen in | happened in, with its Monte Carlo error | draws |
|---|---|---|---|
"""
DELAYS = """
Days until a drift from parity is found, with a bound of 0: the median, and what 95% need at most ({draws:,}
monitors; `monitor_delays.csv`). The gap has its peak at one cutoff, the median.

| MCDP | {starts} |
|---|{columns}
"""


def main() -> None:
    """Simulate every design and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--commit", default=None, help="where git is not there to ask")
    options = parser.parse_args()
    chunks = [design.draws // CHUNK for design in DESIGNS] + [8, 16]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("fork")) as pool:
        # The longest first.
        parts = {
            (place, number): pool.submit(_chunk, place, number)
            for place in sorted(range(len(chunks)), key=lambda place: (place != 8, place != 9, place))
            for number in range(chunks[place])
        }
        lines, holds = [], True
        names = [design.what for design in DESIGNS]
        for place, what in [*enumerate(names), (len(chunks) - 1, "")]:
            draws = CHUNK * chunks[place]
            share = sum(parts[place, number].result() for number in range(chunks[place])) / draws
            error = sqrt(max(share * (1.0 - share), 1.0 / draws) / draws)
            holds &= share <= ALARM_RATE
            what = what or "a year in which MCDP rises and falls: an interval since the start misses"
            lines.append(f"| {what} | {ALARM_RATE:g} | {share:.4f} ± {error:.4f} | {draws:,} |")
            print(lines[-1], flush=True)
        tables = [parts[len(DESIGNS), number].result() for number in range(chunks[len(DESIGNS)])]
    rows = [["MCDP", *WATCHED]]
    for drift, _ in DRIFTS:
        found = [np.concatenate([table[drift, name] for table in tables]) for name in WATCHED]
        quantiles = [np.quantile(days, [0.5, 0.95], method="higher") for days in found]
        rows.append([f"{drift:g}", *(f"{median:g} (95%: {late:g})" for median, late in quantiles)])
    commit = options.commit or current_commit()
    table = DELAYS.format(draws=CHUNK * 8, starts=" | ".join(WATCHED), columns="---|" * len(WATCHED))
    text = HEADING.format(commit=commit) + "\n".join(lines) + "\n" + table
    text += "\n".join(f"| {' | '.join(row)} |" for row in rows[1:]) + "\n"
    (options.out / "monitors.md").write_text(text, encoding="utf-8")
    with (options.out / "monitor_delays.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    print(text[text.index("\nDays") :])
    if not holds:
        sys.exit("a promise does not hold")


if __name__ == "__main__":
    main()
