"""Whether intervals hold, and how long they are; `make promises` writes results/intervals.md."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from math import cos, pi, sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import localparity as lp
from benchmarks import _designs as designs
from benchmarks._commit import current_commit
from benchmarks._designs import Design

RESULTS = Path(__file__).parents[1] / "results" / "intervals.md"
DRAWS = 2000
CONFIDENCE = 0.95


class Before(NamedTuple):
    """What intervals were at an earlier commit: their mean length, and the margin of upper bounds."""

    length: float
    margin: float


class Setting(NamedTuple):
    """People drawn from distributions whose MCDP is known, and how it is measured."""

    what: str
    design: Design
    truth: float
    before: Before
    options: dict[str, Any] = {}  # noqa: RUF012


PARITY, APART = (1.0, 1.0), (1.0, 2.0)
SETTINGS = [
    Setting("y and y^2, 1,000 and 1,000", designs.powers((1000, 1000), APART), 0.25, Before(0.1204, 0.0374)),
    Setting("y and y^2, 60 and 6,000", designs.powers((60, 6000), APART), 0.25, Before(0.3450, 0.1268)),
    Setting("y and y^2, 5,000 and 5,000", designs.powers((5000, 5000), APART), 0.25, Before(0.0540, 0.0168)),
    Setting("parity, 1,000 and 1,000", designs.powers((1000, 1000), PARITY), 0.0, Before(0.0839, 0.0389)),
    Setting("parity, 30 and 30", designs.powers((30, 30), PARITY), 0.0, Before(0.4786, 0.2358)),
    Setting(
        "55% and 45%, 1,000 and 1,000",
        designs.binary((1000, 1000), (0.55, 0.45)),
        0.1,
        Before(0.1202, 0.0387),
    ),
    Setting("95% and 5%, 40 and 40", designs.binary((40, 40), (0.95, 0.05)), 0.9, Before(0.4600, 0.0728)),
    Setting(
        "60% and 40%, 100 and 10,000", designs.binary((100, 10_000), (0.6, 0.4)), 0.2, Before(0.2609, 0.0953)
    ),
    Setting("60% and 0%, 12 and 400", designs.binary((12, 400), (0.6, 0.0)), 0.6, Before(0.7354, 0.2633)),
    Setting(
        "from 1 to 10, 200 and 200", designs.deciles((200, 200)), designs.DECILES_MCDP, Before(0.2708, 0.0859)
    ),
    Setting(
        "six groups of 200, one differs",
        designs.powers([200] * 6, [1.0] * 5 + [2.0]),
        0.25,
        Before(0.3068, 0.0837),
    ),
    Setting(
        "equalized odds, 600, alike",
        designs.labelled(600),
        0.0,
        Before(0.2538, 0.1111),
        {"criterion": "equalized_odds"},
    ),
    Setting(
        "each of three groups with everyone, 300, 200 and 100",
        designs.powers((300, 200, 100), (1.0, 1.0, 1.0)),
        0.0,
        Before(0.1776, 0.0829),
        {"compare": "to_overall"},
    ),
    Setting(
        "from 1 to 10, epsilon 0.05, 200 and 200",
        designs.deciles((200, 200)),
        designs.DECILES_MCDP,
        Before(0.2704, 0.0860),
        {"epsilon": 0.05},
    ),
    Setting(
        "y and y^2, epsilon 0.05, 500 and 500",
        designs.powers((500, 500), APART),
        0.2475,
        Before(0.1934, 0.0762),
        {"epsilon": 0.05},
    ),
    Setting(
        "y and y^2, epsilon 0.2, 500 and 500",
        designs.powers((500, 500), APART),
        0.21,
        Before(0.2294, 0.1134),
        {"epsilon": 0.2},
    ),
    Setting(
        "y and y^2, epsilon 0.1, 60 and 6,000",
        designs.powers((60, 6000), APART),
        0.24,
        Before(0.4011, 0.1935),
        {"epsilon": 0.1},
    ),
    Setting(
        "plateau of 0.1, epsilon 0.05, 1,000 and 1,000",
        designs.plateau((1000, 1000), 0.1),
        0.1,
        Before(0.1387, 0.0558),
        {"epsilon": 0.05},
    ),
    Setting(
        "plateau of 0.3, epsilon 0.29, 100 and 1,000",
        designs.plateau((100, 1000), 0.3),
        0.3,
        Before(0.3678, 0.1846),
        {"epsilon": 0.29},
    ),
    Setting(
        "a gap of 0.15 whose sign turns in the window, epsilon 0.2, 100 and 10,000",
        designs.crossing((100, 10_000), 0.15),
        0.15,
        Before(0.2758, 0.1510),
        {"epsilon": 0.2},
    ),
    Setting(
        "curves that cross, epsilon 0.1, 400 and 400",
        designs.waves((400, 400), 0.15),
        0.15 * cos(0.2 * pi),
        Before(0.2388, 0.1091),
        {"epsilon": 0.1},
    ),
    Setting(
        "curves that cross, epsilon 0.3, 400 and 400",
        designs.waves((400, 400), 0.15),
        0.0,
        Before(0.1443, 0.1376),
        {"epsilon": 0.3},
    ),
]


class Held(NamedTuple):
    """Whether an interval and an upper bound hold, the interval's length and the margin of the bound."""

    both: bool
    upper: bool
    length: float
    margin: float


def draw(place: int, seed: np.random.SeedSequence) -> Held:
    """Draw people once, and look at both."""
    setting = SETTINGS[place]
    drawn = setting.design(np.random.default_rng(seed))
    options = {**drawn.options, **setting.options, "confidence": CONFIDENCE}
    both, upper = (
        lp.mcdp_interval(drawn.labels, drawn.scores, sensitive_features=drawn.groups, side=side, **options)
        for side in ("both", "upper")
    )
    holds = both.low - 1e-9 <= setting.truth <= both.high + 1e-9
    return Held(holds, upper.high >= setting.truth - 1e-9, both.high - both.low, upper.high - upper.estimate)


def _draws(place: int, seeds: list[np.random.SeedSequence]) -> list[Held]:
    return [draw(place, seed) for seed in seeds]


def simulate(draws: int = DRAWS, jobs: int = 2) -> Iterator[tuple[Setting, Held]]:
    """Each setting, and the means of what is drawn."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        for place, setting in enumerate(SETTINGS):
            seeds = np.random.SeedSequence([18, place]).spawn(draws)
            parts = [pool.submit(_draws, place, seeds[start::8]) for start in range(8)]
            yield setting, Held(*np.mean([row for part in parts for row in part.result()], axis=0).tolist())


HEADING = """\
# Intervals: how often they hold, and how long they are

`python -m benchmarks.intervals` at {commit}: {draws:,} draws a row from distributions whose MCDP is known, at
a confidence of 95%. The Monte Carlo error of a coverage of 95% is {error:.1%}. The length of an interval is
its mean; the margin of an upper bound goes from the estimate to its end. Both are in points of MCDP; "before"
is f1a4192, on the first 500 of the same draws.

| design | interval holds | upper bound holds | length | before | margin | before |
|---|---|---|---|---|---|---|
"""


def main() -> None:
    """Simulate, and write the table."""
    error = sqrt(CONFIDENCE * (1.0 - CONFIDENCE) / DRAWS)
    lines = [HEADING.format(commit=current_commit(), draws=DRAWS, error=error)]
    for setting, found in simulate():
        lines.append(row(setting, found))
        print(lines[-1], end="", flush=True)
    RESULTS.write_text("".join(lines))


def row(setting: Setting, found: Held) -> str:
    """A line of the table."""
    lengths = found.length, setting.before.length, found.margin, setting.before.margin
    shown = " | ".join(f"{100.0 * length:.2f}" for length in lengths)
    return f"| {setting.what} | {found.both:.1%} | {found.upper:.1%} | {shown} |\n"


if __name__ == "__main__":
    main()
