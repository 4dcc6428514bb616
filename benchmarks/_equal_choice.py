"""The paper's rule, applied to the runs of the search with equal budgets: files of runs in, choices out."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

KEPT_SHARE = 0.95


class EqualRun(NamedTuple):
    """A line of a file of runs; the metrics by their names."""

    dataset: str
    method: str
    setting: int
    seed: int
    strength: float
    metrics: dict[str, float]


class Choice(NamedTuple):
    """The setting chosen for a method, the strength in the middle of those chosen, and validation MCDP(0)."""

    number: int
    strength: float
    mcdp: float


def read_runs(path: Path) -> list[EqualRun]:
    """The runs of a file."""
    with path.open(newline="") as stream:
        return [
            EqualRun(
                row.pop("dataset"),
                row.pop("method"),
                int(row.pop("setting")),
                int(row.pop("seed")),
                float(row.pop("strength")),
                {name: float(value) for name, value in row.items()},
            )
            for row in csv.DictReader(stream)
        ]


def shared_numbers(runs: list[EqualRun], dataset: str) -> int:
    """How many settings every method was judged at: those with smaller numbers than this."""
    done = defaultdict(set)
    for run in runs:
        if run.dataset == dataset:
            done[run.method].add(run.setting)
    return min(next(number for number in range(10**6) if number not in had) for had in done.values())


def best_settings(runs: list[EqualRun], dataset: str) -> dict[str, Choice]:
    """The best setting of each method: ERM's by its AP, the others' by MCDP(0) under the rule."""
    number = shared_numbers(runs, dataset)
    by_setting: dict[tuple[str, int], list[EqualRun]] = defaultdict(list)
    for run in runs:
        if run.dataset == dataset and run.setting < number:
            by_setting[run.method, run.setting].append(run)
    plain = {key: own for key, own in by_setting.items() if key[0] == "erm"}
    erm = max(plain, key=lambda key: fmean(run.metrics["validation_ap"] for run in plain[key]))
    accuracy = {run.seed: run.metrics["validation_ap"] for run in plain[erm]}
    best = {"erm": Choice(erm[1], 0.0, fmean(run.metrics["validation_mcdp_0"] for run in plain[erm]))}
    for (method, setting), own in sorted(by_setting.items()):
        chosen = choose(own, accuracy)
        if method == "erm" or len(chosen) < len(accuracy):
            continue
        mcdp = fmean(run.metrics["validation_mcdp_0"] for run in chosen.values())
        if method not in best or mcdp < best[method].mcdp:
            best[method] = Choice(setting, median(run.strength for run in chosen.values()), mcdp)
    return best


def choose(runs: list[EqualRun], accuracy: dict[int, float]) -> dict[int, EqualRun]:
    """Of each seed, the run with the lowest validation MCDP(0) that keeps 95% of ERM's validation AP."""
    chosen: dict[int, EqualRun] = {}
    for run in runs:
        if run.metrics["validation_ap"] < KEPT_SHARE * accuracy[run.seed]:
            continue
        known = chosen.get(run.seed)
        if known is None or run.metrics["validation_mcdp_0"] < known.metrics["validation_mcdp_0"]:
            chosen[run.seed] = run
    return chosen
