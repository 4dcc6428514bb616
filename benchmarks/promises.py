"""How often promises fail against known truth; `make promises` writes results/promises.md."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

import blind_designs as blind
from benchmarks import _designs as designs
from benchmarks import _failures as failures
from benchmarks._commit import current_commit
from benchmarks._designs import Rng

RESULTS = Path(__file__).parents[1] / "results" / "promises.md"
DRAWS = 1000


class Promise(NamedTuple):
    """Something that may fail with no more than a stated probability.

    Attributes
    ----------
    what, design : str
        What is promised, and of whom.
    stated : float or None
        How often it may fail; None where nothing is promised and the table only shows what happens.
    fails : callable
        Draws once and says whether it failed.
    draws : int
        How often it is drawn.
    """

    what: str
    design: str
    stated: float | None
    fails: Callable[[Rng], bool]
    draws: int = DRAWS


TEST = "test at 5%"
PARITY, APART = (1.0, 1.0), (1.0, 2.0)
EIGHT = designs.powers([200] * 8, [1.0] * 7 + [2.0])
TINY = designs.powers((300, 300, 4), (1.0, 1.0, 1.0))
FIVE, TEN_TO_ONE = blind.mixed((0.5, 0.2, 0.15, 0.1, 0.05)), blind.mixed((36.0, 1.0), decimals=1)
SIZED, BOOTSTRAP = "interval, finite_sample", "interval, bootstrap"
BLIND, UPPER = "group-blind repair, confidence 0.9", "upper end, confidence 0.9"
PROMISES = [
    Promise(SIZED, "parity, 30 and 30", 0.05, failures.misses(designs.powers((30, 30), PARITY), 0.0)),
    Promise(SIZED, "y and y^2, 60 and 6,000", 0.05, failures.misses(designs.powers((60, 6000), APART), 0.25)),
    Promise(
        SIZED,
        "deciles, 200 and 200",
        0.05,
        failures.misses(designs.deciles((200, 200)), designs.DECILES_MCDP),
    ),
    Promise(SIZED, "eight groups of 200, one differs", 0.05, failures.misses(EIGHT, 0.25)),
    Promise(
        SIZED,
        "all pairs of eight groups",
        0.05,
        failures.misses_some_pair(designs.powers([200] * 8, [1.0] * 8)),
    ),
    Promise(
        SIZED,
        "equalized odds, 300",
        0.05,
        failures.misses(designs.labelled(300), 0.0, criterion="equalized_odds"),
    ),
    Promise(
        BOOTSTRAP,
        "parity, 200 and 200",
        0.05,
        failures.misses(designs.powers((200, 200), PARITY), 0.0, method="bootstrap"),
    ),
    Promise(
        BOOTSTRAP,
        "parity, 8 and 200",
        0.05,
        failures.misses(designs.powers((8, 200), PARITY), 0.0, method="bootstrap"),
    ),
    Promise(
        BOOTSTRAP,
        "plateau of 0.05, 500 and 500",
        0.05,
        failures.misses(designs.plateau((500, 500), 0.05), 0.05, method="bootstrap"),
    ),
    Promise(
        BOOTSTRAP,
        "plateau of 0.1, epsilon 0.05, 1,000 and 1,000",
        0.05,
        failures.misses(designs.plateau((1000, 1000), 0.1), 0.1, method="bootstrap", epsilon=0.05),
    ),
    Promise(
        BOOTSTRAP,
        "y and y^2, 100 and 100",
        0.05,
        failures.misses(designs.powers((100, 100), APART), 0.25, method="bootstrap"),
    ),
    Promise(
        BOOTSTRAP,
        "two scores, 5% and 0%, 20 and 2,000",
        0.05,
        failures.misses(designs.binary((20, 2000), (0.05, 0.0)), 0.05, method="bootstrap"),
    ),
    Promise(
        BOOTSTRAP, "eight groups of 200, one differs", 0.05, failures.misses(EIGHT, 0.25, method="bootstrap")
    ),
    Promise(
        BOOTSTRAP,
        "all pairs, one group of 4",
        0.05,
        failures.misses_some_pair(TINY, method="bootstrap", n_resamples=199),
    ),
    Promise(
        BOOTSTRAP,
        "weights that say nothing, 300 and 3,000",
        0.05,
        failures.misses(designs.weighted((300, 3000), designs.half), 0.0),
    ),
    Promise(
        BOOTSTRAP,
        "the lowest 10% sampled 1/10 as often, 300 and 3,000",
        0.05,
        failures.misses(designs.weighted((300, 3000), designs.lowest_tenth_rare), 0.0),
    ),
    Promise(
        BOOTSTRAP,
        "the lowest 20% sampled 1/50 as often, 1,000 and 3,000",
        0.05,
        failures.misses(designs.weighted((1000, 3000), designs.lowest_fifth_rarer), 0.0),
    ),
    Promise(
        BOOTSTRAP,
        "the same, y^2 and y",
        0.05,
        failures.misses(designs.weighted((1000, 3000), designs.lowest_tenth_rare, 2.0), 0.25),
    ),
    Promise(
        BOOTSTRAP,
        "5 rows a person, 100 and 100 people",
        0.05,
        failures.misses(designs.clustered(100, 5), 0.0),
    ),
    Promise(
        BOOTSTRAP, "5 rows a person, 20 and 20 people", 0.05, failures.misses(designs.clustered(20, 5), 0.0)
    ),
    Promise(
        BOOTSTRAP,
        "households of 4 with both groups, 200",
        0.05,
        failures.misses(designs.clustered(100, 4, mixed=True), 0.0),
    ),
    Promise(BOOTSTRAP, "repaired to 0.1, new people, 500 and 500", 0.05, failures.repaired_misses(1.0)),
    Promise(BOOTSTRAP, "repaired to 0, new people, 500 and 500", 0.05, failures.repaired_misses(0.0)),
    Promise(
        BOOTSTRAP,
        "the lowest 10% sampled 1/100 as often: 2 rows stand for them",
        None,
        failures.misses(designs.weighted((2000, 3000), designs.lowest_tenth_rarest), 0.0),
    ),
    Promise(
        BOOTSTRAP,
        "weights without a variance, s^-1.5",
        None,
        failures.misses(designs.weighted((500, 2000), designs.heavy_tailed), 0.0),
    ),
]
PROMISES += [
    Promise(TEST, "5 and 5", 0.05, failures.rejects(designs.powers((5, 5), PARITY))),
    Promise(TEST, "20 and 200, one decimal", 0.05, failures.rejects(designs.powers((20, 200), PARITY, 1))),
    Promise(
        TEST,
        "50 and 50, epsilon 0.05",
        0.05,
        failures.rejects(designs.powers((50, 50), PARITY), epsilon=0.05),
    ),
    Promise(TEST, "six groups of 30", 0.05, failures.rejects(designs.powers([30] * 6, [1.0] * 6))),
    Promise(
        TEST,
        "six groups of 30, each with everyone",
        0.05,
        failures.rejects(designs.powers([30] * 6, [1.0] * 6), compare="to_overall"),
    ),
    Promise(TEST, "300, 300 and 4", 0.05, failures.rejects(TINY)),
    Promise(
        TEST, "equalized odds, 200", 0.05, failures.rejects(designs.labelled(200), criterion="equalized_odds")
    ),
    Promise(
        TEST,
        "weights that say nothing, 300 and 3,000",
        0.05,
        failures.rejects(designs.weighted((300, 3000), designs.half)),
    ),
    Promise(
        TEST,
        "the lowest 10% sampled 1/10 as often, 300 and 3,000",
        0.05,
        failures.rejects(designs.weighted((300, 3000), designs.lowest_tenth_rare)),
    ),
    Promise(TEST, "5 rows a person, 100 and 100 people", 0.05, failures.rejects(designs.clustered(100, 5))),
    Promise(TEST, "5 rows a person, 20 and 20 people", 0.05, failures.rejects(designs.clustered(20, 5))),
    Promise(TEST, "two alike beside 5,000 at one score", 0.05, failures.finds_alike(5000, 0.5, 0.5)),
    Promise(TEST, "two alike beside 2,000 close together", 0.05, failures.finds_alike(2000, 0.45, 0.55)),
    Promise(TEST, "worst split of an age, 120", 0.05, failures.splits),
    Promise(
        TEST,
        "four epsilons, any of them, 300",
        0.05,
        failures.rejects_somewhere(designs.powers((150, 150), PARITY)),
    ),
    Promise(
        "power",
        "0.08 between 2,000 and 2,000, beside 15 at parity: not found",
        0.2,
        failures.accepts(designs.powers((2000, 2000, 15), (1.0, 1.24, 1.0))),
    ),
    Promise(
        "verdict",
        "parity, 150 and 150: a disparity is found",
        0.05,
        failures.finds(designs.powers((150, 150), PARITY)),
    ),
    Promise(
        "verdict",
        "the same, bootstrap",
        0.05,
        failures.finds(designs.powers((150, 150), PARITY), method="bootstrap"),
    ),
    Promise("verdict", "300, 300 and 4: a disparity is found", 0.05, failures.finds(TINY)),
    Promise("band of the worst pair", "2,000 and 10 groups of 100", 0.05, failures.band_misses(10)),
    Promise("band of the worst pair", "2,000 and 30 groups of 100", 0.05, failures.band_misses(30)),
    Promise("repair, confidence 0.9", "0.2, 400 and 400", 0.1, failures.repair_breaks((400, 400), 0.2)),
    Promise(
        "repair, confidence 0.9",
        "0.2, epsilon 0.05, 400 and 400",
        0.1,
        failures.repair_breaks((400, 400), 0.2, epsilon=0.05),
    ),
    Promise(
        "repair, confidence 0.9",
        "0.2, weights, 600 and 600",
        0.1,
        failures.repair_breaks((600, 600), 0.2, weights=True),
    ),
    Promise("sketch, 99% bounds", "two merged sketches", 0.01, failures.sketch_bounds_miss),
]
EQUAL_OPPORTUNITY = {"criterion": "equal_opportunity"}
PROMISES += [
    Promise(BLIND, design, 0.1, failures.blind_breaks(*drawn, **options), 500)
    for design, drawn, options in (
        ("census, 0.1, 8,000 people", (blind.census, 8000, 0.1), {}),
        ("census, 0.25, 1,500 people, wrong probabilities", (blind.census, 1500, 0.25), {"noise": 0.3}),
        ("census, 0.1, epsilon 0.02, 10,000 people", (blind.census, 10_000, 0.1), {"epsilon": 0.02}),
        ("10 to 1, rounded features, 0.25, 3,000 people", (TEN_TO_ONE, 3000, 0.25), {}),
        ("five groups from 50% to 9%, 0.35, 4,000 people", (FIVE, 4000, 0.35), {}),
        ("equal opportunity, census, 0.2, 8,000 people", (blind.census, 8000, 0.2), EQUAL_OPPORTUNITY),
        ("equal opportunity, five groups, 0.4, 8,000 people", (FIVE, 8000, 0.4), EQUAL_OPPORTUNITY),
    )
]
PROMISES += [
    Promise(UPPER, design, 0.1, failures.upper_misses(*drawn))
    for design, drawn in (
        ("two scores, 60% and 40%, 200 and 200", (designs.binary((200, 200), (0.6, 0.4)), 0.2)),
        ("two scores, 60% and 0%, 20 and 2,000", (designs.binary((20, 2000), (0.6, 0.0)), 0.6)),
        ("y and y^2, 30 and 3,000", (designs.powers((30, 3000), APART), 0.25)),
        ("plateau of 0.3, epsilon 0.29, 100 and 1,000", (designs.plateau((100, 1000), 0.3), 0.3, 0.29)),
        (
            "a gap of 0.15 whose sign changes inside the window, epsilon 0.2, 100 and 10,000",
            (designs.crossing((100, 10_000), 0.15), 0.15, 0.2),
        ),
    )
]
EVERYONE, ENDS = "with everyone, finite_sample", "upper ends at nine epsilons, confidence 0.9"
PROMISES += [
    Promise(f"upper end {EVERYONE}", design, 0.05, failures.misses_everyone(*drawn, side="upper"))
    for design, drawn in (
        ("apart, share 0.1 of 200", ((0.1, 0.45, 0.45), (0.0, 1.0, 1.0), 200)),
        ("apart, share 0.1 of 5,000", ((0.1, 0.45, 0.45), (0.0, 1.0, 1.0), 5000)),
        ("99.9% and 0.1%, share 0.3 of 5,000", ((0.3, 0.35, 0.35), (0.001, 0.999, 0.999), 5000)),
        ("99.5% and 0.5%, share 0.3 of 5,000", ((0.3, 0.35, 0.35), (0.005, 0.995, 0.995), 5000)),
        ("98% and 2%, share 0.1 of 1,000", ((0.1, 0.45, 0.45), (0.02, 0.98, 0.98), 1000)),
        ("95% and 5%, share 0.2 of 400", ((0.2, 0.4, 0.4), (0.05, 0.95, 0.95), 400)),
        ("70% and 20%, share 0.2 of 400", ((0.2, 0.4, 0.4), (0.3, 0.8, 0.8), 400)),
        ("80% and 30%, share 0.5 of 40", ((0.5, 0.5), (0.2, 0.7), 40)),
        ("apart, shares 0.4, 0.3, 0.2 and 0.1 of 60", ((0.4, 0.3, 0.2, 0.1), (0.0, 1.0, 1.0, 1.0), 60)),
    )
]
PROMISES += [
    Promise(f"interval {EVERYONE}", design, 0.05, fails)
    for design, fails in (
        ("apart, share 0.1 of 200", failures.misses_everyone((0.1, 0.9), (0.0, 1.0), 200)),
        ("80% and 30%, share 0.5 of 40", failures.misses_everyone((0.5, 0.5), (0.2, 0.7), 40)),
        ("the larger of two, apart, share 0.9 of 300", failures.misses_majority(0.9, 300)),
        ("the larger of two, apart, share 0.99 of 5,000", failures.misses_majority(0.99, 5000)),
    )
]
PROMISES += [
    Promise(ENDS, design, 0.1, failures.upper_misses_somewhere(*drawn, **options))
    for design, drawn, options in (
        ("plateau of 0.3, 100 and 1,000", (designs.plateau((100, 1000), 0.3), lambda epsilon: 0.3), {}),
        ("plateau of 0.05, 500 and 500", (designs.plateau((500, 500), 0.05), lambda epsilon: 0.05), {}),
        (
            "a gap of 0.15 whose sign changes, 100 and 10,000",
            (designs.crossing((100, 10_000), 0.15), lambda epsilon: 0.15),
            {},
        ),
        (
            "y and y^2, 500 and 500",
            (designs.powers((500, 500), APART), lambda epsilon: 0.25 - epsilon**2),
            {},
        ),
        (
            "two scores, 60% and 40%, 30 and 300",
            (designs.binary((30, 300), (0.6, 0.4)), lambda epsilon: 0.2),
            {},
        ),
        (
            "60% and 20%, share 0.3 of 200, with everyone",
            (designs.shares_drawn((0.3, 0.7), (0.6, 0.2), 200), lambda epsilon: 0.28),
            {"compare": "to_overall"},
        ),
    )
]
PROMISES += [
    Promise(TEST, f"sketch, {design}", 0.05, failures.sketch_rejects(*drawn, **options))
    for design, drawn, options in (
        ("k = 64, 20,000 and 20,000", ((20_000, 20_000), 64), {}),
        ("k = 200, 100,000 and 100,000", ((100_000, 100_000), 200), {}),
        ("k = 32, 1,000 and 30,000", ((1000, 30_000), 32), {}),
        (
            "k = 128, three of 10,000, each with everyone, epsilon 0.05",
            ((10_000,) * 3, 128),
            {"compare": "to_overall", "epsilon": 0.05},
        ),
    )
]
PROMISES += [
    Promise("repair with weights, confidence 0.9", design, 0.1, failures.weighted_repair_breaks(*drawn))
    for design, drawn in (
        ("apart, 0.3, 300 and 300", ((300, 300), 0.3, 0.1)),
        ("apart, 0.35, four groups of 150, uneven weights", ((150,) * 4, 0.35, 0.5)),
    )
]
PROMISES += [
    Promise("interval of groups known as probabilities", design, 0.05, failures.soft_misses(*drawn))
    for design, drawn in (
        ("known, two scores, 10% and 30%, 10 and 200", (designs.known((10, 200), (0.1, 0.3)), 0.2)),
        ("known, two scores, 5% alike, 20 and 500", (designs.known((20, 500), (0.05, 0.05)), 0.0)),
        ("known, two scores, 3% and 20%, 30 and 1,000", (designs.known((30, 1000), (0.03, 0.2)), 0.17)),
        ("known, two scores, 40% and 2%, 6 and 300", (designs.known((6, 300), (0.4, 0.02)), 0.38)),
        (
            "probabilities of 0.02 and 0.3, two scores, 60 people",
            (designs.likely(60, (0.02, 0.3), (0.1, 0.6)), abs(0.182 / 0.32 - 0.518 / 1.68)),
        ),
    )
]
WOMEN, MEN = designs.Job(0.75, (0.2, 0.7 / 1.5)), designs.Job(0.25, (0.3, 0.7))
EITHER = (0.2, 0.6)
PROMISES += [
    Promise("a sign is said to turn", design, 0.05, failures.turns(*drawn))
    for design, drawn in (
        ("alike overall, apart in two jobs, 600 people", (600, WOMEN, MEN)),
        ("alike in two jobs, apart overall, 600", (600, designs.Job(0.8, EITHER), designs.Job(0.2, EITHER))),
        ("the first beside a group that differs, 900", (900, WOMEN, MEN, designs.Job(0.5, (0.35, 0.5)))),
    )
]
PROMISES += [
    Promise(
        "power",
        "a sign that turns, 1,000 people: not told",
        0.2,
        failures.does_not_turn(1000, designs.Job(0.85, (0.1, 0.6)), designs.Job(0.15, (0.3, 0.8))),
    )
]


def _fails(place: int, seeds: list[np.random.SeedSequence]) -> int:
    return sum(PROMISES[place].fails(np.random.default_rng(seed)) for seed in seeds)


def simulate(place: int, draws: int | None = None, jobs: int = 2) -> float:
    """The share of draws in which a promise failed."""
    draws = draws or PROMISES[place].draws
    seeds = np.random.SeedSequence([2026, place]).spawn(draws)
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        parts = [pool.submit(_fails, place, seeds[start::8]) for start in range(8)]
        return sum(part.result() for part in parts) / draws


def most_failures(stated: float, draws: int) -> float:
    """The share of failures that a promise that holds exceeds once in some thousand simulations."""
    return stated + 3.5 * sqrt(stated * (1.0 - stated) / draws)


HEADING = """\
# How often promises fail

`make promises` at {commit}. Each promise was drawn from a distribution whose truth is known. A failure is an
interval or a band that misses the truth, a test that rejects parity at parity, a verdict that finds a
disparity where there is none, an alarm that is false. Where "nothing" is promised, the row shows what happens
when a few rows carry most of a group's weight, of which an audit warns. A repair that is refused promises
nothing and does not fail.

| promise | design | may fail | failed, with its Monte Carlo error | draws |
|---|---|---|---|---|
"""


class Row(NamedTuple):
    """A line of the table."""

    promise: Promise
    failed: float

    @property
    def error(self) -> float:
        """The Monte Carlo error of the share that failed."""
        spread = max(self.failed * (1.0 - self.failed), 1.0 / self.promise.draws)
        return sqrt(spread / self.promise.draws)

    @property
    def holds(self) -> bool:
        """Whether it failed no more often than a promise that holds may."""
        stated = self.promise.stated
        return stated is None or self.failed <= most_failures(stated, self.promise.draws)

    def __str__(self) -> str:
        stated = "nothing" if self.promise.stated is None else f"{self.promise.stated:g}"
        failed = f"{self.failed:.4f} ± {self.error:.4f}"
        verdict = "" if self.holds else " **does not hold**"
        cells = (*self.promise[:2], stated, failed + verdict, f"{self.promise.draws:,}")
        return f"| {' | '.join(cells)} |"


def main() -> None:
    """Simulate every promise and write the table."""
    rows = []
    for place, promise in enumerate(PROMISES):
        rows.append(Row(promise, simulate(place)))
        print(rows[-1], flush=True)
    RESULTS.write_text(
        HEADING.format(commit=current_commit()) + "\n".join(map(str, rows)) + "\n", encoding="utf-8"
    )
    if not all(row.holds for row in rows):
        sys.exit("a promise does not hold")


if __name__ == "__main__":
    main()
