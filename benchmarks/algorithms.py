"""How exact and how fast the paper's Algorithm 2 is, beside Algorithm 1 and the exact profile.

``python -m benchmarks.algorithms STORE`` measures them on the test scores of a store's runs with seed 0, and
writes the paper's Table 4 (algorithm-times.md and .csv) to results/reproduce and its Figure 5 to
results/reproduce/figures; ``--out FOLDER`` writes to another folder.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import ticker

from benchmarks._measure import add_busy, record_at
from benchmarks._paper_algorithms import algorithm_1, algorithm_1_lean, algorithm_2
from localparity._io._files import write_whole
from localparity.metrics import gap_curve
from localparity.metrics._mcdp import mcdp_on_grid
from localparity.paper import Store
from localparity.paper._data import DATA_SETS
from localparity.paper._figures import legend_below, panels, save
from localparity.paper._selection import SeedMean, records_of
from localparity.paper._store import PartScores
from localparity.paper._tables import TextTable
from localparity.predictions import Predictions
from localparity.report.displays._base import COLOURS, finish, show_percent

# Error and speed-up of Algorithm 2 over K and epsilon: the paper's Figure 5.

PROFILE_TITLE = "exact profile, every epsilon at once"


def write_figure(studies: Sequence[AlgorithmStudy], out: Path) -> list[Path]:
    """The errors above and the speed-ups below, a column for each data set."""
    figure, (errors, speeds) = panels(len(studies), 2)
    for error, speed, study in zip(errors, speeds, studies, strict=True):
        draw_errors(error, study, DATA_SETS[study.dataset].title)
        draw_speed_ups(speed, study)
    legend_below(figure, [*errors, *speeds], last=[PROFILE_TITLE])
    return save(figure, out, "figure-5")


def draw_errors(ax: Any, study: AlgorithmStudy, title: str = "") -> None:
    """How far Algorithm 2 is above MCDP: the mean over the runs, and the middle 80% of them."""
    for own, colour in _draw_lines(ax, study, lambda each: each.error, profile=0.0):
        low, high = ([getattr(each, name) for each in own] for name in ("error_low", "error_high"))
        ax.fill_between([each.k for each in own], low, high, color=colour, alpha=0.15, lw=0)
    ax.set_ylabel("estimate less MCDP")
    show_percent(ax.yaxis)
    finish(ax, title)


def draw_speed_ups(ax: Any, study: AlgorithmStudy, title: str = "") -> None:
    """How many times faster than Algorithm 1: Algorithm 2, and the exact profile of all epsilons at once."""
    _draw_lines(
        ax, study, lambda each: study.algorithm_1 / each.seconds, profile=study.algorithm_1 / study.profile
    )
    ax.set_yscale("log")
    ax.margins(y=0.25)
    ax.yaxis.set_major_locator(ticker.FixedLocator([c * 10**n for n in range(7) for c in (1, 2, 3, 5)]))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.yaxis.set_minor_locator(ticker.NullLocator())
    ax.set_ylabel("times faster\nthan Algorithm 1")
    finish(ax, title)


def _draw_lines(
    ax: Any, study: AlgorithmStudy, value: Callable[[Approximation], float], *, profile: float
) -> list[tuple[list[Approximation], str]]:
    """A line over K for each epsilon, and the exact profile's; returns each line's points and colour."""
    lines = []
    epsilons = sorted({each.epsilon for each in study.approximations})
    for epsilon, colour, marker in zip(epsilons, COLOURS, "osD", strict=False):
        own = [each for each in study.approximations if each.epsilon == epsilon]
        name = f"Algorithm 2, epsilon {epsilon:g}"
        look = {"color": colour, "marker": marker, "lw": 1.2, "ms": 4}
        ax.plot([each.k for each in own], [value(each) for each in own], label=name, **look)
        lines.append((own, colour))
    ks = sorted({each.k for each in study.approximations})
    ax.axhline(profile, color="black", ls="--", lw=1.1, label=PROFILE_TITLE)
    ax.set_xscale("log", base=2)
    ax.set_xticks(ks, [str(k) for k in ks])
    ax.set_xlabel("K, points to a half-width")
    return lines


OUT = Path(__file__).parent.parent / "results" / "reproduce"
EPSILONS = (0.01, 0.05, 0.1)
KS = (1, 2, 4, 8, 16, 32, 64)

# The paper's Table 4: seconds of one run of Algorithm 1.
PUBLISHED_SECONDS = {
    "adult": SeedMean(3.529, 0.122),
    "bank": SeedMean(2.900, 0.006),
    "celeba-a": SeedMean(7.748, 0.248),
    "celeba-w": SeedMean(7.745, 0.169),
}


@dataclass(frozen=True)
class Approximation:
    """Algorithm 2 at one epsilon and K, over the runs of a data set.

    `error` is how far it is above the exact value: the mean over the runs, and the quantiles 0.1 and 0.9;
    `relative_error` is the mean of the same over the exact value, if that is above 0.001.
    """

    epsilon: float
    k: int
    seconds: float
    error: float
    error_low: float
    error_high: float
    relative_error: float


@dataclass(frozen=True)
class AlgorithmStudy:
    """The algorithms on the test scores of a data set; times in seconds.

    `algorithm_1` is one epsilon as the published code computes it, with its deviation over the epsilons,
    `algorithm_1_lean` the same as lean as numpy allows, and `profile` the exact profile: every epsilon at
    once, checks and sort included.
    """

    dataset: str
    rows: int
    runs: int
    algorithm_1: float
    algorithm_1_deviation: float
    algorithm_1_lean: float
    profile: float
    approximations: tuple[Approximation, ...]


def study_store(store: Store) -> list[AlgorithmStudy]:
    """The study of every data set in a store, on the runs with seed 0."""
    scores: dict[str, list[PartScores]] = {}
    for record in records_of(store):
        if record.run.seed == 0:
            scores.setdefault(record.run.dataset, []).append(store.scores(record.run))
    return [study(dataset, own) for dataset, own in sorted(scores.items())]


def study(dataset: str, models: Sequence[PartScores]) -> AlgorithmStudy:
    """Measure the algorithms on several models' scores; the times are those of the first."""
    curves = [
        gap_curve(Predictions.from_arrays(None, model.score, sensitive_features=model.group))
        for model in models
    ]
    exact = {epsilon: np.array([curve.mcdp(epsilon) for curve in curves]) for epsilon in EPSILONS}
    scores = models[0].score.astype(np.float64)
    groups = np.unique(models[0].group, return_inverse=True)[1].astype(np.int64)

    def profile() -> object:
        return gap_curve(Predictions.from_arrays(None, scores, sensitive_features=groups)).profile().values

    slow = [_seconds(partial(algorithm_1, scores, groups, epsilon), 1) for epsilon in EPSILONS]
    approximations = []
    for epsilon in EPSILONS:
        for k in KS:
            seconds = _seconds(partial(algorithm_2, scores, groups, epsilon, k), 10)
            error = np.array([mcdp_on_grid(curve, epsilon, k) for curve in curves]) - exact[epsilon]
            large = exact[epsilon] > 1e-3
            relative = error[large] / exact[epsilon][large] if large.any() else np.zeros(1)
            low, high = np.quantile(error, [0.1, 0.9])
            numbers = (float(value) for value in (error.mean(), low, high, relative.mean()))
            approximations.append(Approximation(epsilon, k, seconds, *numbers))
    return AlgorithmStudy(
        dataset,
        scores.size,
        len(models),
        statistics.fmean(slow),
        statistics.stdev(slow),
        statistics.fmean(_seconds(partial(algorithm_1_lean, scores, groups, each), 1) for each in EPSILONS),
        _seconds(profile, 20),
        tuple(approximations),
    )


def _seconds(call: Callable[[], object], repeats: int) -> float:
    """The shortest time of some calls, after one to warm up if there are several."""
    if repeats > 1:
        call()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def time_table(studies: Sequence[AlgorithmStudy]) -> TextTable:
    """Seconds of Algorithm 1 and of what replaces it (Table 4)."""
    columns = [
        "data",
        "test rows",
        "Algorithm 1 in the paper (s)",
        "Algorithm 1 here (s)",
        "the same, lean (s)",
        "Algorithm 2, K=32, epsilon 0.05 (ms)",
        "exact profile, every epsilon (ms)",
        "profile faster than Algorithm 1",
    ]
    table = TextTable("algorithm-times", "Time of the algorithms", columns, [], digits=3)
    for each in studies:
        (two,) = [found for found in each.approximations if (found.epsilon, found.k) == (0.05, 32)]
        table.rows.append(
            [
                DATA_SETS[each.dataset].title,
                f"{each.rows:,}",
                PUBLISHED_SECONDS.get(each.dataset),
                SeedMean(each.algorithm_1, each.algorithm_1_deviation),
                f"{each.algorithm_1_lean:.3f}",
                f"{1000 * two.seconds:.2f}",
                f"{1000 * each.profile:.2f}",
                f"{each.algorithm_1 / each.profile:,.0f} times",
            ]
        )
    table.notes.append(
        "Algorithm 1 makes matrices of whole numbers as the published code does, 1,024 windows at a time; "
        "the lean form keeps some windows in the cache. The paper's times are from another machine."
    )
    return table


def write(studies: Sequence[AlgorithmStudy], out: Path) -> list[Path]:
    """Write the table and the figure, and return their paths."""
    table = time_table(studies)
    texts = {"md": table.to_markdown(), "csv": table.to_csv()}
    paths = {kind: out / f"{table.name}.{kind}" for kind in texts}
    for kind, path in paths.items():
        write_whole(path, (texts[kind].rstrip("\n") + "\n").encode())
    return [*paths.values(), *write_figure(studies, out / "figures")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    add_busy(parser)
    given = parser.parse_args()
    out = record_at(given.out, busy=given.busy)
    studies = study_store(Store(given.store))
    if out is None:
        print(time_table(studies).to_markdown())
    else:
        print(*write(studies, out), sep="\n")


if __name__ == "__main__":
    main()
