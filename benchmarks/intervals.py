"""Whether intervals hold, and how long they are; `make promises` writes results/intervals.md."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from math import log, sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import localparity as lp
from benchmarks import _designs as designs
from benchmarks._commit import current_commit
from benchmarks._designs import Design, Drawn
from localparity.metrics._gap_curve import gap_curves

RESULTS = Path(__file__).parents[1] / "results" / "intervals.md"
DRAWS = 2000
CONFIDENCE = 0.95


class Setting(NamedTuple):
    """People drawn from distributions whose MCDP is known, and how it is measured."""

    what: str
    design: Design
    truth: float
    options: dict[str, Any] = {}  # noqa: RUF012


PARITY, APART = (1.0, 1.0), (1.0, 2.0)
SETTINGS = [
    Setting("y and y^2, 1,000 and 1,000", designs.powers((1000, 1000), APART), 0.25),
    Setting("parity, 1,000 and 1,000", designs.powers((1000, 1000), PARITY), 0.0),
    Setting("parity, 30 and 30", designs.powers((30, 30), PARITY), 0.0),
    Setting("two scores, 55% and 45%, 1,000 and 1,000", designs.binary((1000, 1000), (0.55, 0.45)), 0.1),
    Setting("two scores, 95% and 5%, 40 and 40", designs.binary((40, 40), (0.95, 0.05)), 0.9),
    Setting("two scores, 60% and 40%, 100 and 10,000", designs.binary((100, 10_000), (0.6, 0.4)), 0.2),
    Setting("y and y^2, 60 and 6,000", designs.powers((60, 6000), APART), 0.25),
    Setting("scores from 1 to 10, 200 and 200", designs.deciles((200, 200)), designs.DECILES_MCDP),
    Setting("six groups of 200, one differs", designs.powers([200] * 6, [1.0] * 5 + [2.0]), 0.25),
    Setting("six groups of 200, all alike", designs.powers([200] * 6, [1.0] * 6), 0.0),
    Setting("equalized odds, 600, alike", designs.labelled(600), 0.0, {"criterion": "equalized_odds"}),
    Setting(
        "plateau of 0.1, epsilon 0.05, 1,000 and 1,000",
        designs.plateau((1000, 1000), 0.1),
        0.1,
        {"epsilon": 0.05},
    ),
    Setting(
        "a gap of 0.15 whose sign changes in the window, epsilon 0.2, 100 and 10,000",
        designs.crossing((100, 10_000), 0.15),
        0.15,
        {"epsilon": 0.2},
    ),
    Setting(
        "each of three groups with everyone, 300, 200 and 100",
        designs.powers((300, 200, 100), (1.0, 1.0, 1.0)),
        0.0,
        {"compare": "to_overall"},
    ),
]


def dkw_margin(drawn: Drawn, options: dict[str, Any]) -> float:
    """The margin of the worst pair by the inequality of Dvoretzky, Kiefer and Wolfowitz for all groups."""
    rows = lp.Predictions.from_arrays(
        drawn.labels, drawn.scores, sensitive_features=drawn.groups, **drawn.options
    )
    who = {key: options[key] for key in ("criterion", "compare") if key in options}
    curves = gap_curves(lp.ScoreCounts.from_predictions(rows), lp.Comparison(**who))
    distributions = len({(curve.label, group) for curve in curves for group in curve.groups})
    worst = max(curves, key=lambda curve: curve.mcdp(options.get("epsilon", 0.0)))
    share = log(2.0 * distributions / (1.0 - CONFIDENCE)) / 2.0
    return sum(sqrt(share / size) for size in worst.sizes)


def draw(place: int, seed: np.random.SeedSequence) -> tuple[bool, bool, float, float]:
    """Whether the interval and the upper bound hold, and the margins of both upper ends over DKW's."""
    setting = SETTINGS[place]
    drawn = setting.design(np.random.default_rng(seed))
    options = {**drawn.options, **setting.options}
    both, upper = (
        lp.mcdp_interval(
            drawn.labels,
            drawn.scores,
            sensitive_features=drawn.groups,
            confidence=CONFIDENCE,
            side=side,
            **options,
        )
        for side in ("both", "upper")
    )
    margin = dkw_margin(drawn, setting.options)
    held = both.low - 1e-9 <= setting.truth <= both.high + 1e-9
    ends = [(found.high - found.estimate) / margin for found in (both, upper)]
    return held, upper.high >= setting.truth - 1e-9, *ends


def _draws(place: int, seeds: list[np.random.SeedSequence]) -> list[tuple[bool, bool, float, float]]:
    return [draw(place, seed) for seed in seeds]


def simulate(draws: int = DRAWS, jobs: int = 2) -> Iterator[tuple[Setting, np.ndarray]]:
    """Each setting, and the means of what is drawn."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        for place, setting in enumerate(SETTINGS):
            seeds = np.random.SeedSequence([18, place]).spawn(draws)
            parts = [pool.submit(_draws, place, seeds[start::8]) for start in range(8)]
            yield setting, np.mean([row for part in parts for row in part.result()], axis=0)


HEADING = """\
# Intervals: how often they hold, and how long they are

`python -m benchmarks.intervals` at {commit}: {draws:,} draws a row from distributions whose MCDP is known, at
a confidence of 95%. The Monte Carlo error of a coverage of 95% is {error:.1%}. Margins go from the estimate
to the upper end, as a share of the margin that the inequality of Dvoretzky, Kiefer and Wolfowitz gives for
all groups together; ends are cut at 1.

| design | interval holds | upper bound holds | margin of the interval | margin of the upper bound |
|---|---|---|---|---|
"""


def main() -> None:
    """Simulate, and write the table."""
    error = sqrt(CONFIDENCE * (1.0 - CONFIDENCE) / DRAWS)
    lines = [HEADING.format(commit=current_commit(), draws=DRAWS, error=error)]
    for setting, (held, upper, both_margin, upper_margin) in simulate():
        lines.append(
            f"| {setting.what} | {held:.1%} | {upper:.1%} | {both_margin:.3f} | {upper_margin:.3f} |\n"
        )
        print(lines[-1], end="", flush=True)
    RESULTS.write_text("".join(lines))


if __name__ == "__main__":
    main()
