"""The seven methods with equal budgets: the same number of settings, strengths and seeds for each.

``python -m benchmarks.equal_search search FOLDER adult bank --jobs 12 --limit 300`` draws settings for every
method (`_equal_space`) and judges them on the validation parts of the seeds 0 and 1, one setting of each
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
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._equal_choice import best_settings, read_runs
from benchmarks._equal_space import METHODS, draw_settings, search_strengths, spread
from localparity.paper._data import load_samples
from localparity.paper._store import PartScores

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

    from benchmarks._settings import settings_from, train_with
    from localparity.models.networks._trainer import predict_scores
    from localparity.paper._train import prepare

    torch.set_num_threads(1)
    started = time.perf_counter()
    settings = settings_from(draw_settings(task.dataset, task.method, task.number))
    trainers = train_with(settings, task.dataset, task.method, task.runs)
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


if __name__ == "__main__":
    main()
