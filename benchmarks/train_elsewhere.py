"""Train grids on a machine without DuckDB, and add the results to a store on another.

There: ``python -m benchmarks.train_elsewhere RESULTS.zip --jobs 8 adult:tuned bank:tuned``; ``adult:tuned:1``
takes the first seed only; ``--temperatures 5,20`` adds DiffMCDP at further temperatures; ``--without
FILE`` leaves out the runs whose keys are lines of a file. Here:
``python -m benchmarks.train_elsewhere RESULTS.zip --store STORE``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
import zipfile
from pathlib import Path

from benchmarks._carried import add_runs, save_run
from localparity.paper._data import DATA_SETS, load_samples
from localparity.paper._runner import as_tasks
from localparity.paper._runs import Run, grid

# The slowest first, so that they do not end alone.
SLOW = ("dralign", "fairmixup")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("grids", nargs="*", help="data:preset or data:preset:seeds")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=float("inf"), help="stop after so many seconds")
    parser.add_argument("--temperatures", default="", help="further temperatures of DiffMCDP")
    parser.add_argument("--without", type=Path, help="a file with the keys of runs to leave out")
    parser.add_argument("--store", type=Path)
    given = parser.parse_intermixed_args()
    if given.store is not None:
        add_to_store(given.archive, given.store)
        return
    known = set(given.without.read_text().split()) if given.without is not None else set()
    temperatures = [float(text) for text in given.temperatures.split(",") if text]
    tasks = [task for name in given.grids for task in tasks_of(name, known, temperatures)]
    tasks.sort(key=lambda task: (task[0].seed, task[0].method not in SLOW))
    # Read once, before the processes part: decoding images takes longer than a run.
    for dataset in {task[0].dataset for task in tasks}:
        load_samples(dataset)
    started = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(given.archive, "w") as archive,
        multiprocessing.get_context("fork").Pool(given.jobs) as pool,
    ):
        for paths in pool.imap_unordered(train, [(task, folder) for task in tasks]):
            for path in paths:
                archive.write(path, Path(path).name)
            if time.perf_counter() - started > given.limit:
                break
        done = len(archive.namelist())
    print(f"{done} runs in {time.perf_counter() - started:.1f} s with {given.jobs} processes")


def tasks_of(name: str, known: set[str], temperatures: list[float]) -> list[list[Run]]:
    dataset, preset, *seeds = name.split(":")
    number = int(seeds[0]) if seeds else 5
    every = grid(dataset, preset=preset, seeds=number, temperatures=temperatures)
    runs = [run for run in every if run.key not in known]
    return as_tasks(runs, stacked=DATA_SETS[dataset].kind == "table")


def train(task: tuple[list[Run], str]) -> list[str]:
    from localparity.paper._train import train_runs

    runs, folder = task
    started = time.perf_counter()
    paths = []
    for record, scores in train_runs(runs):
        path = Path(folder) / f"{record.run.key}.npz"
        save_run(path, record, scores)
        paths.append(str(path))
    print(f"{runs[0].title} ({len(runs)}) {time.perf_counter() - started:.1f} s", flush=True)
    return paths


def add_to_store(archive: Path, store: Path) -> None:
    from localparity.paper._store import Store

    there = Store(store)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(archive) as zipped:
        zipped.extractall(folder)
        add_runs(there, Path(folder))
    print(f"{len(list(there.records()))} runs are in {store}")


if __name__ == "__main__":
    main()
