"""The table of the search with equal budgets, and which differences between methods are larger than chance.

``python -m benchmarks.equal_table`` reads results/equal_search.csv and results/equal_test.csv and writes
results/equal.md, results/equal.csv (the fresh seeds alone) and results/equal.png. Each seed takes, of a
method's strengths, the run with the lowest validation MCDP(0) that keeps 95% of ERM's validation AP; the
table has what that run measures on the test part. A method is compared with DiffMCDP seed by seed. Parts of
different seeds share people, so that seeds are not independent: the t-test is that of Nadeau and Bengio
(2003), which allows for it, and Holm's method adjusts over the methods.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from benchmarks.equal_search import (
    METHODS,
    EqualRun,
    best_settings,
    choose,
    draw_settings,
    read_runs,
    shared_numbers,
)
from localparity.paper._figures import (
    draw_frontier,
    legend_below,
    look_of,
    panels,
    read_frontier,
    save,
)
from localparity.paper._runs import TITLES
from localparity.report.displays._base import finish, point_to_better, show_percent

# Average precision against MCDP(0) at every strength, and the frontier.


def draw(path: Path, tested: list[EqualRun], frontier: Path, names: dict[str, str], seeds: range) -> None:
    """One panel for each data set; a marker is the mean over the seeds at one strength."""
    figure, (axes,) = panels(len(names), height=3.2)
    repaired = read_frontier(frontier)
    for ax, (dataset, name) in zip(axes, names.items(), strict=True):
        for method in TITLES:
            points = _points([run for run in tested if (run.dataset, run.method) == (dataset, method)], seeds)
            ax.plot(*points.T, label=TITLES[method], **look_of(method))
        draw_frontier(ax, repaired[dataset])
        highest = max(value for each in ax.lines for value in each.get_ydata())
        ax.set_ylim(0.85 * highest, 1.01 * highest)
        ax.set_xlim(0.0, None)
        ax.set_xlabel("MCDP(0)")
        show_percent(ax.xaxis)
        show_percent(ax.yaxis)
        finish(ax, name)
        point_to_better(ax)
    axes[0].set_ylabel("average precision")
    legend_below(figure, axes)
    save(figure, path.parent, path.stem, kinds=("png",))


def _points(runs: list[EqualRun], seeds: range) -> np.ndarray:
    """MCDP(0) and AP of the test parts at each strength, from the lowest on."""
    by_strength: dict[float, list[EqualRun]] = defaultdict(list)
    for run in runs:
        if run.seed in seeds:
            by_strength[run.strength].append(run)
    return np.array(
        [
            [fmean(run.metrics[name] for run in own) for name in ("test_mcdp_0", "test_ap")]
            for _, own in sorted(by_strength.items())
        ]
    )


RESULTS = Path(__file__).parent.parent / "results"
NAMES = {"adult": "Adult", "bank": "Bank", "utkface": "UTKFace"}
# Of the rows that a seed does not train on, half are its test part.
TEST_TO_TRAIN = {"adult": 0.3 / 0.4, "bank": 0.3 / 0.4, "utkface": 0.1 / 0.8}
FRESH = range(5, 10)
METRICS = {"AP": "test_ap", "ABCC": "test_abcc", "MCDP(0)": "test_mcdp_0", "MCDP(0.05)": "test_mcdp_0_05"}
BESIDE = "less DiffMCDP's MCDP(0)"
Chosen = dict[str, dict[int, EqualRun]]


class Paired(NamedTuple):
    """The mean difference over seeds in percentage points, and its p-value."""

    difference: float
    p_value: float


def chosen_runs(tested: list[EqualRun], dataset: str) -> Chosen:
    """For each method, the run of each seed that the rule reports."""
    by_method: dict[str, list[EqualRun]] = defaultdict(list)
    for run in tested:
        if run.dataset == dataset:
            by_method[run.method].append(run)
    accuracy = {run.seed: run.metrics["validation_ap"] for run in by_method["erm"]}
    return {method: choose(by_method[method], accuracy) for method in METHODS}


def compare(one: dict[int, EqualRun], other: dict[int, EqualRun], ratio: float, name: str) -> Paired:
    """The difference between two methods at the seeds where both have a run."""
    seeds = sorted(one.keys() & other.keys())
    differences = [100.0 * (one[seed].metrics[name] - other[seed].metrics[name]) for seed in seeds]
    mean, number = fmean(differences), len(differences)
    error = stdev(differences) * math.sqrt(1.0 / number + ratio)
    return Paired(mean, float(2.0 * student.sf(abs(mean) / error, number - 1)))


def holm(p_values: list[float]) -> list[float]:
    """P-values adjusted for their number."""
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = least
    return adjusted


def rows(chosen: Chosen, dataset: str, seeds: range) -> list[dict[str, str]]:
    """A row for each method at some seeds, the lowest MCDP(0) first."""
    own = {
        method: {seed: run for seed, run in runs.items() if seed in seeds} for method, runs in chosen.items()
    }
    others = [method for method in METHODS if method not in ("erm", "diffmcdp")]
    ratio = TEST_TO_TRAIN[dataset]
    paired = {method: compare(own[method], own["diffmcdp"], ratio, "test_mcdp_0") for method in others}
    adjusted = dict(zip(others, holm([paired[method].p_value for method in others]), strict=True))
    found = []
    for method in sorted(METHODS, key=lambda method: _mean(own[method], "test_mcdp_0")):
        row = {"data": NAMES[dataset], "method": TITLES[method]}
        for title, name in METRICS.items():
            row |= {title: f"{_mean(own[method], name):.2f}"}
            row |= {f"{title} deviation": f"{_deviation(own[method], name):.2f}"}
        row[BESIDE] = f"{paired[method].difference:+.2f}" if method in paired else ""
        row["p-value"] = f"{adjusted[method]:.3f}" if method in paired else ""
        found.append({**row, "seeds": str(len(own[method]))})
    return found


def lines_of(found: list[dict[str, str]]) -> list[str]:
    """The rows as a table of Markdown, each value with its deviation."""
    names = ["method", *METRICS, BESIDE, "p-value", "seeds"]
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    for row in found:
        cells = [
            f"{row[name]} ± {row[f'{name} deviation']}" if name in METRICS else row[name] for name in names
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _mean(runs: dict[int, EqualRun], name: str) -> float:
    return 100.0 * fmean(run.metrics[name] for run in runs.values())


def _deviation(runs: dict[int, EqualRun], name: str) -> float:
    return 100.0 * stdev(run.metrics[name] for run in runs.values())


def budgets(searched: list[EqualRun], dataset: str) -> list[str]:
    """What each method was given in the search, and the setting that was chosen."""
    number, best = shared_numbers(searched, dataset), best_settings(searched, dataset)
    lines = [
        "| method | settings | runs | minutes | chosen | validation MCDP(0) |",
        "|---|---|---|---|---|---|",
    ]
    for method in METHODS:
        own = [
            run for run in searched if (run.dataset, run.method) == (dataset, method) and run.setting < number
        ]
        minutes = sum(run.metrics["seconds"] for run in own) / 60.0
        chosen = best[method]
        settings = described(dataset, method, chosen.number)
        cells = [TITLES[method], str(number), str(len(own)), f"{minutes:.1f}", settings]
        lines.append(f"| {' | '.join([*cells, f'{100.0 * chosen.mcdp:.2f}'])} |")
    return lines


def described(dataset: str, method: str, number: int) -> str:
    """A setting in words."""
    settings = draw_settings(dataset, method, number)
    plan, options = settings["plan"], settings["options"]
    words = [f"{plan['steps']} steps of {plan['batch_size']}", f"rate {plan['learning_rate']:g}"]
    words += ["balanced"] if options["balanced"] else []
    if "hidden" in settings:
        words += ["-".join(map(str, settings["hidden"])), f"dropout {settings['dropout']:g}"]
    else:
        words += [
            f"weight decay {plan['weight_decay']:g}",
            "augmented" if settings["augment"] else "as they are",
        ]
    words += [f"{name} {options[name]:g}" for name in ("temperature", "alignment") if name in options]
    if "search" in options:
        sharpness = f", sharpness {options['sharpness']:g}" if options["search"] == "soft" else ""
        words.append(options["search"] + sharpness)
        words += [f"memory {options['memory']}"] if options["memory"] else []
    return ", ".join(words)


def page(searched: list[EqualRun], tested: list[EqualRun]) -> str:
    """The whole of results/equal.md."""
    lines = [INTRODUCTION]
    for dataset, name in NAMES.items():
        chosen = chosen_runs(tested, dataset)
        lines += [f"## {name}", "", "Seeds 5 to 9, which nothing had looked at:", ""]
        lines += [*lines_of(rows(chosen, dataset, FRESH)), ""]
        if min(run.seed for run in chosen["erm"].values()) < FRESH.start:
            lines += ["Seeds 0 to 9; the settings were chosen on the validation parts of 0 and 1:", ""]
            lines += [*lines_of(rows(chosen, dataset, range(10))), ""]
        lines += ["The search:", "", *budgets(searched, dataset), ""]
    return "\n".join(lines)


INTRODUCTION = """# The seven methods with equal budgets

Every method got the same number of settings, drawn at random by the same generator from the same space
(network, dropout, steps, batches and whether they are balanced, learning rate; and what a method alone
has: temperature, search, alignment), the same number of strengths and the same seeds. Setting k has the
same network, batches and learning rate for every method. On tables a setting is judged at six strengths
and the seeds 0 and 1, on faces at four and the seed 0, on validation parts alone. ERM's best setting is
the one with the highest AP; every other method must keep 95% of that ERM's validation AP, and its best
setting has the lowest validation MCDP(0). That setting was then trained at eight strengths (faces: four),
from half of the strength chosen to twice it.

AP, ABCC and MCDP in percent, mean ± deviation over the seeds on the test parts, the lowest MCDP(0) first.
A method is compared with DiffMCDP seed by seed; p-values are of a t-test that allows for parts that share
people (Nadeau and Bengio, 2003), adjusted by Holm's method over the five. Minutes are those of processes
that shared one GPU; a method whose steps cost more got more of them, not fewer settings.

One NVIDIA H200, torch 2.11, commit 289df3a (the search on tables 9c0bc17, the same but for resuming):
`python -m benchmarks.equal_search search FOLDER adult bank --jobs 12 --limit 340`, `... test FOLDER adult
bank --jobs 12 --strengths 8 --seeds 0-9`, `... search FOLDER utkface --jobs 8 --strengths 4 --seeds 0-0
--limit 530` and `... test FOLDER utkface --jobs 8 --strengths 4 --seeds 5-9`. Every run is a line of
`equal_search.csv` or `equal_test.csv`; its settings are `draw_settings(dataset, method, setting)` of
`benchmarks/equal_search.py`. `python -m benchmarks.equal_table` makes this page.

![AP against MCDP(0) at every strength, seeds 5 to 9](equal.png)

*The line is the frontier of `frontier.md`: group-blind repair, of boosted trees on the tables
and of a network on faces, mean over the seeds 0 to 4.*
"""


def main() -> None:
    searched, tested = read_runs(RESULTS / "equal_search.csv"), read_runs(RESULTS / "equal_test.csv")
    (RESULTS / "equal.md").write_text(page(searched, tested))
    fresh = [row for dataset in NAMES for row in rows(chosen_runs(tested, dataset), dataset, FRESH)]
    with (RESULTS / "equal.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(fresh[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(fresh)
    draw(RESULTS / "equal.png", tested, RESULTS / "frontier.csv", NAMES, FRESH)


if __name__ == "__main__":
    main()
