"""The seven methods with equal budgets: the same number of settings, strengths and seeds for each.

``python -m benchmarks.equal_search search FOLDER adult bank --jobs 12 --limit 300`` draws settings for every
method (`draw_settings`) and judges them on the validation parts of the seeds 0 and 1, one setting of each
method after the other, until the time is over. Numbers that not every method got to are left aside.

``python -m benchmarks.equal_search test FOLDER adult bank --jobs 12 --strengths 8 --seeds 0-9`` takes, for
each method, the setting with the lowest mean of validation MCDP(0) under the paper's rule, trains it at
strengths around the one chosen, and measures the test parts. FOLDER gets `equal_search.csv` and
`equal_test.csv`, a line a run; ``python -m benchmarks.equal_table FOLDER`` makes the table.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple

from localparity.paper._data import load_samples
from localparity.paper._store import PartScores

if TYPE_CHECKING:
    from localparity.models.networks._trainer import Trainer

# The settings that every method may have, and how they are drawn.

SEED = 22
METHODS = ("erm", "advdebias", "diffdp", "fairmixup", "dralign", "diffabcc", "diffmcdp")
TABLES = ("adult", "bank")

_TABLE = {
    "hidden": ([256, 256], [512, 256, 64], [1024, 512, 128]),
    "dropout": (0.2, 0.35, 0.5, 0.6, 0.7),
    "steps": (300, 600, 900),
    "batch_size": (512, 1024, 2048),
}
_IMAGE = {"steps": (225, 450), "batch_size": (256, 512)}
# Roughly where each method keeps 95% of ERM's average precision, by earlier searches on validation parts.
_MIDDLE = {
    "adult": dict(zip(METHODS[1:], (2.0, 0.3, 0.6, 0.3, 0.35, 0.3), strict=True)),
    "bank": dict(zip(METHODS[1:], (0.9, 1.0, 0.4, 1.0, 1.2, 0.35), strict=True)),
    "utkface": dict(zip(METHODS[1:], (1.0, 0.8, 1.2, 0.8, 1.2, 1.2), strict=True)),
}


def draw_settings(dataset: str, method: str, number: int) -> dict[str, Any]:
    """The settings of a method on a data set with this number, from 0.

    Network, batches, learning rate and steps are the same for all methods; what a method alone has is drawn
    after them.
    """
    shared = random.Random(f"{SEED} {dataset} {number}")
    own = random.Random(f"{SEED} {dataset} {number} {method}")
    space = _TABLE if dataset in TABLES else _IMAGE
    plan: dict[str, Any] = {"schedule": "cosine", "learning_rate": _log_uniform(shared, 3e-4, 3e-3)}
    plan |= {name: shared.choice(space[name]) for name in ("steps", "batch_size")}
    settings: dict[str, Any] = {"plan": plan, "options": {"balanced": shared.random() < 0.5}}
    if dataset in TABLES:
        settings |= {name: shared.choice(space[name]) for name in ("hidden", "dropout")}
    else:
        plan |= {"precision": "bfloat16", "weight_decay": shared.choice((0.0, 0.01, 0.1))}
        settings["augment"] = shared.random() < 0.75
    settings["options"] |= _own_options(own, dataset, method)
    return settings


def search_strengths(dataset: str, method: str, n_strengths: int) -> list[float]:
    """As many strengths, from a third of the middle to three times it."""
    return [0.0] if method == "erm" else spread(_MIDDLE[dataset][method], 10.0, n_strengths)


def spread(middle: float, ratio: float, number: int) -> list[float]:
    """Strengths around a middle in equal steps of their logarithm; the last is `ratio` times the first."""
    return [float(f"{middle * ratio ** (place / (number - 1) - 0.5):.4g}") for place in range(number)]


def _own_options(own: random.Random, dataset: str, method: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if method in ("diffabcc", "diffmcdp"):
        options["temperature"] = _log_uniform(own, 5.0, 160.0)
    if method == "diffmcdp":
        options["search"] = own.choice(("exact", "soft"))
        options["sharpness"] = own.choice((2.0, 4.0, 8.0))
        options["memory"] = own.choice((0, 0, 4096))
    if method == "dralign":
        low, high = (0.0125, 0.2) if dataset in TABLES else (0.0005, 0.008)
        options["alignment"] = _log_uniform(own, low, high)
    return options


def _log_uniform(source: random.Random, low: float, high: float) -> float:
    return float(f"{low * (high / low) ** source.random():.3g}")


# The paper's rule, applied to the runs of the search: files of runs in, choices out.

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


SEARCH_FILE, TEST_FILE = "equal_search.csv", "equal_test.csv"
KEPT = ("ap", "abcc", "mcdp_0", "mcdp_0_05")
# The slowest first, so that they do not end alone.
_SLOW = ("dralign", "fairmixup")


class Task(NamedTuple):
    """A setting of a method, to be trained at some seeds and strengths."""

    dataset: str
    method: str
    number: int
    runs: list[tuple[int, float]]
    parts: tuple[str, ...]

    def keys(self) -> list[tuple[str, str, int, int, float]]:
        """What tells each run from the others in a file."""
        return [(self.dataset, self.method, self.number, *run) for run in self.runs]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("search", "test"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=float("inf"), help="stop after so many seconds")
    parser.add_argument("--strengths", type=int, default=6)
    parser.add_argument("--seeds", default="0-1", help="such as 0-4")
    parser.add_argument("--settings", type=int, default=100, help="judge at most so many of each method")
    given = parser.parse_intermixed_args()
    first, last = map(int, given.seeds.split("-"))
    seeds = list(range(first, last + 1))
    if given.what == "search":
        tasks = search_tasks(given.data, given.strengths, seeds, given.settings)
    else:
        tasks = test_tasks(given.folder / SEARCH_FILE, given.data, given.strengths, seeds)
    for dataset in given.data:  # once, before the processes part
        load_samples(dataset)
    given.folder.mkdir(parents=True, exist_ok=True)
    path = given.folder / (SEARCH_FILE if given.what == "search" else TEST_FILE)
    write_runs(path, tasks, given.jobs, given.limit)


def search_tasks(data: list[str], strengths: int, seeds: list[int], settings: int) -> Iterator[Task]:
    """Setting after setting, each of every method on every data set before the next."""
    for number in range(settings):
        for dataset in data:
            for method in sorted(METHODS, key=lambda method: method not in _SLOW):
                values = search_strengths(dataset, method, strengths)
                runs = [(seed, value) for seed in seeds for value in values]
                yield Task(dataset, method, number, runs, ("validation",))


def test_tasks(searched: Path, data: list[str], strengths: int, seeds: list[int]) -> Iterator[Task]:
    """The best setting of each method at strengths from half of the one chosen to twice it."""
    found = read_runs(searched)
    chosen = [(dataset, *best) for dataset in data for best in best_settings(found, dataset).items()]
    for seed in seeds:
        for dataset, method, best in sorted(chosen, key=lambda each: each[1] not in _SLOW):
            values = [0.0] if method == "erm" else spread(best.strength, 4.0, strengths)
            for value in values:
                yield Task(dataset, method, best.number, [(seed, value)], ("validation", "test"))


def write_runs(path: Path, tasks: Iterable[Task], jobs: int, limit: float) -> None:
    """Train what the file lacks, and write a line for each run as soon as it is measured."""
    started = time.perf_counter()
    known = {run[:5] for run in read_runs(path)} if path.exists() else set()
    missing = [task for task in tasks if not known.issuperset(task.keys())]
    with (
        path.open("a", newline="") as stream,
        multiprocessing.get_context("fork").Pool(jobs) as pool,
    ):
        writer = None
        for lines in pool.imap_unordered(train, missing):
            for line in lines:
                if writer is None:
                    writer = csv.DictWriter(stream, list(line), lineterminator="\n")
                    if path.stat().st_size == 0:
                        writer.writeheader()
                writer.writerow(line)
            stream.flush()
            if time.perf_counter() - started > limit:
                print("stopped: the time is over", flush=True)
                pool.terminate()
                return
    print(f"done in {time.perf_counter() - started:.0f} s", flush=True)


def train(task: Task) -> list[dict[str, Any]]:
    """Train the runs of a task and measure them; a line for each."""
    import torch

    from localparity.models.networks._trainer import predict_scores
    from localparity.paper._train import prepare

    torch.set_num_threads(1)
    started = time.perf_counter()
    trainers = train_with(
        draw_settings(task.dataset, task.method, task.number), task.dataset, task.method, task.runs
    )
    seconds = (time.perf_counter() - started) / len(task.runs)
    lines = []
    for (seed, strength), trainer in zip(task.runs, trainers, strict=True):
        prepared = prepare(task.dataset, seed)
        line: dict[str, Any] = {
            "dataset": task.dataset,
            "method": task.method,
            "setting": task.number,
            "seed": seed,
            "strength": strength,
        }
        for name in task.parts:
            part = getattr(prepared, name)
            scores = predict_scores(trainer.network, part.features).numpy()
            measured = PartScores(scores, part.groups, part.labels).measure(name)
            line |= {f"{name}_{metric}": f"{measured[f'{name}_{metric}']:.6f}" for metric in KEPT}
        lines.append({**line, "seconds": f"{seconds:.3f}"})
    return lines


def train_with(
    drawn: dict[str, Any], dataset: str, method: str, runs: Sequence[tuple[int, float]]
) -> list[Trainer]:
    """Train a method with drawn settings at several seeds and strengths; the trainers have the networks."""
    import torch

    from localparity.models.networks import TrainingSettings
    from localparity.models.networks._methods import make_method
    from localparity.models.networks._networks import multilayer
    from localparity.models.networks._trainer import Trainer
    from localparity.paper._resnet import resnet18
    from localparity.paper._train import prepare

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    others = {name: drawn[name] for name in ("hidden", "dropout", "augment") if name in drawn}
    settings = TrainingSettings(**drawn["plan"], **drawn["options"], **others)
    trainers = []
    for seed, strength in runs:
        rows = prepare(dataset, seed).training.to(device)
        torch.manual_seed(seed)
        if dataset in TABLES:
            network = multilayer(rows.features.shape[1], settings.hidden, settings.dropout)
        else:
            network = resnet18(augment=settings.augment)
        own = make_method(method, strength, 2, settings)
        trainer = Trainer(own, network.to(device), seed=seed + 1)
        trainer.fit(rows)
        trainers.append(trainer)
    return trainers


if __name__ == "__main__":
    main()
