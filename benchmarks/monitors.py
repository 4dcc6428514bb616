"""How often monitors raise a false alarm, and how soon they find a drift.

`python -m benchmarks.monitors` writes results/monitors.md and results/monitor_delays.csv.

Monitors are simulated on counts: a day is the number of people at each of 100 scores, and the gaps of all
windows are differences of running sums. Only the radii of the bands and the share of the alarm rate are
the package's own.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks._commit import current_commit
from benchmarks._designs import Floats, Rng
from localparity.monitoring._alarms import alarm_share
from localparity.uncertainty._bands import band_radius
from localparity.uncertainty._looks import average_radius, look_share

RESULTS = Path(__file__).parents[1] / "results" / "monitors.md"
DELAYS = RESULTS.with_name("monitor_delays.csv")
ALARM_RATE, SIZE, SCORES, YEAR, SOON = 0.05, 200, 100, 365, 30
LENGTHS = [2**scale for scale in range(9)]
# A tenth of the error is left to the sketches.
BAND = 0.9


def daily_gaps(rng: Rng, mcdp: Floats) -> Floats:
    """The measured gap at each score on days with some true MCDP, of 200 + 200 people each.

    Scores are even in one group. In the other, some of the lower half are in the upper half: the gap has its
    peak at the one threshold in the middle.
    """
    even = np.full(SCORES, 1.0 / SCORES)
    moved = np.where(np.arange(SCORES) < SCORES // 2, -2.0, 2.0) / SCORES
    first = rng.multinomial(SIZE, even, size=mcdp.size)
    second = rng.multinomial(SIZE, even + mcdp[:, None] * moved)
    return np.asarray(np.cumsum(first - second, axis=1) / SIZE)


@cache
def radii(start: int, days: int, length: int) -> Floats:
    """The radius of the band of a window of some length at each of some days, with one batch a day."""
    errors = [BAND * ALARM_RATE * alarm_share(start + day, 0, length) for day in range(1, days + 1)]
    return np.array([radius(SIZE * length, length, error) for error in errors])


def radius(size: float, length: int, error: float) -> float:
    """The radius of the band of a window of some length, with as many people in either group."""
    return float(band_radius((size, size), error)) if length == 1 else average_radius(2.0 / size, error)


def alarms(gaps: Floats, bound: float, start: int = 0) -> dict[int, Floats]:
    """For each length of window, the days on which it raises an alarm; the first day is day ``start + 1``."""
    running = np.concatenate([np.zeros((1, SCORES)), np.cumsum(gaps, axis=0)])
    found = {}
    for length in LENGTHS:
        if length <= len(gaps):
            largest = np.abs(running[length:] - running[:-length]).max(axis=1) / length
            above = largest - radii(start, len(gaps), length)[length - 1 :] > bound
            found[length] = np.flatnonzero(above) + length - 1
    return found


def false_alarm(years: int, bound: float) -> Callable[[Rng], bool]:
    """Whether a monitor of days whose MCDP is the bound ever raises an alarm."""

    def fails(rng: Rng) -> bool:
        gaps = daily_gaps(rng, np.full(years * YEAR, bound))
        return any(days.size for days in alarms(gaps, bound).values())

    return fails


def days_until_found(
    rng: Rng, years: int, drift: float, *, bound: float = 0.0, before: float = 0.0, days: int = SOON
) -> float:
    """How many days after some years an MCDP that rises above the bound is found; infinity if after more."""
    earlier = min(years * YEAR, LENGTHS[-1])
    gaps = daily_gaps(rng, np.repeat([before, bound + drift], [earlier, days]))
    found = alarms(gaps, bound, years * YEAR - earlier)
    return min(
        (day + 1.0 - earlier for each in found.values() for day in each if day >= earlier), default=np.inf
    )


def late_drift(years: int, bound: float, before: float) -> Callable[[Rng], bool]:
    """Whether a rise to 0.10 above the bound after some years is not found within 30 days."""
    return lambda rng: days_until_found(rng, years, 0.1, bound=bound, before=before) > SOON


def sequence_misses(years: int) -> Callable[[Rng], bool]:
    """Whether the interval since the start, of days whose MCDP rises and falls, misses on any day."""
    days = np.arange(1, years * YEAR + 1)
    mcdp = 0.2 * np.sin(days / 30.0) ** 2
    reach = [average_radius(2.0 / (SIZE * day), BAND * ALARM_RATE * look_share(day)) for day in days.tolist()]

    def fails(rng: Rng) -> bool:
        measured = np.abs(np.cumsum(daily_gaps(rng, mcdp), axis=0)).max(axis=1) / days
        return bool((np.abs(measured - np.cumsum(mcdp) / days) > reach).any())

    return fails


def late_batches(days: int, batches: int = 4, late: float = 0.2, latest: int = 5) -> Callable[[Rng], bool]:
    """Whether days at parity that come in parts, some of them days late, ever raise an alarm at any look."""

    def fails(rng: Rng) -> bool:
        parts = np.repeat(np.arange(days), batches)
        delay = rng.integers(1, latest + 1, parts.size) * (rng.random(parts.size) < late)
        running, rows = np.zeros((days + 1, SCORES)), np.zeros(days + 1)
        newest = 0
        for look, day in enumerate(parts[np.argsort(parts + delay, kind="stable")], start=1):
            newest = max(newest, day)
            first, second = rng.multinomial(SIZE // batches, np.full(SCORES, 1.0 / SCORES), size=2)
            running[day + 1 :] += np.cumsum(first - second)
            rows[day + 1 :] += SIZE // batches
            if _alarm_at(look, day, newest, running, rows):
                return True
        return False

    return fails


def _alarm_at(look: int, day: int, newest: int, running: Floats, rows: Floats) -> bool:
    """Whether any window that holds a day raises an alarm at a look."""
    for length in LENGTHS:
        ends = np.arange(max(day, length - 1), min(day + length - 1, newest) + 1) + 1
        if not ends.size:
            continue
        people = rows[ends] - rows[ends - length]
        largest = np.abs(running[ends] - running[ends - length]).max(axis=1) / people
        error = BAND * ALARM_RATE * alarm_share(look, newest - day, length)
        # The window with the most people has the least radius.
        if largest.max() > radius(people.max(), length, error) and any(
            gap > radius(size, length, error) for gap, size in zip(largest, people, strict=True)
        ):
            return True
    return False


class Design(NamedTuple):
    """Something that may happen with no more than a stated probability."""

    what: str
    stated: float
    fails: Callable[[Rng], bool]
    draws: int = 2000


DESIGNS = [
    Design("ten years at parity: any alarm", ALARM_RATE, false_alarm(10, 0.0)),
    Design("ten years of an MCDP of 0.05, bound 0.05: any alarm", ALARM_RATE, false_alarm(10, 0.05)),
    Design(
        "a year at parity, 4 batches a day, 20% of them late: any alarm", ALARM_RATE, late_batches(YEAR), 200
    ),
]
DESIGNS += [
    Design(f"{when}, {what}: not found within 30 days", 0.05, late_drift(years, bound, before))
    for years, when in ((0, "from the first day"), (1, "after a year"), (10, "after ten years"))
    for what, bound, before in (
        ("parity becomes an MCDP of 0.10, bound 0", 0.0, 0.0),
        ("0.05 becomes 0.15, bound 0.05", 0.05, 0.05),
        ("parity becomes 0.15, bound 0.05", 0.05, 0.0),
    )
]
DESIGNS += [
    Design(
        "a year in which MCDP rises and falls: an interval since the start misses", 0.05, sequence_misses(1)
    )
]


def _fails(place: int, seeds: list[np.random.SeedSequence]) -> int:
    return sum(DESIGNS[place].fails(np.random.default_rng(seed)) for seed in seeds)


def simulate(place: int, draws: int, jobs: int = 2) -> float:
    """The share of monitors that failed."""
    seeds = np.random.SeedSequence([18, place]).spawn(draws)
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        parts = [pool.submit(_fails, place, seeds[start::8]) for start in range(8)]
        return sum(part.result() for part in parts) / draws


HEADING = """\
# Monitors over ten years

`python -m benchmarks.monitors` at {commit}. A day has 200 + 200 people, and the alarm rate is 0.05. Monitors
are simulated on counts, with exact sketches, at epsilon 0. The gap has its peak at one threshold.

| monitors | may happen in | happened in, with its Monte Carlo error | draws |
|---|---|---|---|
"""


def delays() -> list[list[str]]:
    """Days until a drift from parity is found, with a bound of 0: the median and the 95% quantile."""
    starts = {"from the first day": 0, "after a year": 1, "after ten years": 10}
    rows = [["MCDP", *starts]]
    for drift, days in ((0.4, 30), (0.2, 60), (0.1, 120), (0.05, 400)):
        rows.append([f"{drift:g}"])
        for years in starts.values():
            rng = np.random.default_rng([years, days])
            found = [days_until_found(rng, years, drift, days=days) for _ in range(500)]
            median, late = np.quantile(found, [0.5, 0.95], method="higher")
            rows[-1].append(f"{median:g} (95%: {late:g})")
    return rows


def main() -> None:
    """Simulate every design and write the tables."""
    lines, holds = [], True
    for place, (what, stated, _, draws) in enumerate(DESIGNS):
        share = simulate(place, draws)
        error = sqrt(max(share * (1.0 - share), 1.0 / draws) / draws)
        holds &= share <= stated
        lines.append(f"| {what} | {stated:g} | {share:.4f} ± {error:.4f} | {draws:,} |")
        print(lines[-1], flush=True)
    RESULTS.write_text(HEADING.format(commit=current_commit()) + "\n".join(lines) + "\n", encoding="utf-8")
    with DELAYS.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(delays())
    if not holds:
        sys.exit("a promise does not hold")


if __name__ == "__main__":
    main()
