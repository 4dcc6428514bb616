"""Runs what a store lacks, several at a time, and goes on where it was interrupted."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from localparity._validation import as_choice, as_count, require
from localparity.paper._run import Run
from localparity.paper._store import Store

BACKENDS = ("loky", "dask", "ray")

# A worker of a cluster may have several threads, and these have one source of chance: torch's.
_ONE_AT_A_TIME = threading.Lock()


class Progress(Protocol):
    """Told of every run that is done."""

    def __call__(self, run: Run, metrics: dict[str, float]) -> None:
        """One more run is in the store."""


def run_missing(
    store: Store,
    runs: Iterable[Run],
    *,
    jobs: int = 1,
    backend: str = "loky",
    device: str = "auto",
    stacked: bool = False,
    progress: Progress | None = None,
) -> int:
    """Train the runs that a store lacks and add them to it.

    Each run is in the store as soon as it is done, so an interrupted call loses no more than what was in
    progress, and the next call goes on from there.

    Parameters
    ----------
    store : Store
        Where the runs go.
    runs : iterable of Run
        What is wanted; what is there already is left alone.
    jobs : int
        How many run at a time, -1 for as many as there are cores.
    backend : str
        Joblib's: "loky" (processes of this machine), or a cluster that sees the store's folder: "dask" (the
        one that DASK_SCHEDULER_ADDRESS names) or "ray" (RAY_ADDRESS).
    device : str
        "auto" takes a GPU where there is one.
    stacked : bool
        Whether the runs of a method that differ only in strength and seed train together.
    progress : callable, optional
        Called with each run and its metrics when it is in the store.

    Returns
    -------
    int
        How many runs were trained.

    Examples
    --------
    >>> import tempfile
    >>> from localparity.paper import grid
    >>> store = Store(tempfile.mkdtemp())
    >>> run_missing(store, grid("adult", seeds=1), jobs=2)  # doctest: +SKIP
    31
    """
    from joblib import Parallel, delayed, parallel_config

    as_choice(backend, "backend", BACKENDS)
    if jobs != -1:
        as_count(jobs, "jobs")
    store.check_version()
    missing = store.missing(runs)
    tasks = make_stacks(missing) if stacked else [[run] for run in missing]
    if not tasks:
        return 0
    with _cluster(backend, jobs), parallel_config(backend=backend, n_jobs=min(jobs, len(tasks))):
        done = Parallel(return_as="generator_unordered" if backend == "loky" else "list")(
            delayed(_run_task)(store.folder, task, device) for task in tasks
        )
        for finished in done:
            for run, metrics in finished:
                if progress is not None:
                    progress(run, metrics)
    return len(missing)


def make_stacks(runs: Iterable[Run]) -> list[list[Run]]:
    """The runs that differ only in strength and seed, together.

    Examples
    --------
    >>> from localparity.paper._run import grid
    >>> [len(stack) for stack in make_stacks(grid("adult", seeds=2))]
    [2, 10, 10, 10, 10, 10, 10]
    """
    stacks: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        alike = run.dataset, run.preset, run.method, run.search, run.temperature
        stacks.setdefault(alike, []).append(run)
    return list(stacks.values())


def _run_task(folder: Any, runs: Sequence[Run], device: str) -> list[tuple[Run, dict[str, float]]]:
    """Train some runs together and write them: what a worker does."""
    from localparity.paper._train import train_runs

    store = Store(folder)
    with _ONE_AT_A_TIME:
        results = train_runs(runs, device)
    for run, result in zip(runs, results, strict=True):
        store.add(run, result)
    return [(run, result.metrics) for run, result in zip(runs, results, strict=True)]


def _cluster(backend: str, jobs: int) -> AbstractContextManager[Any]:
    """What joblib needs of a cluster: the one that its own environment variable names, or this machine."""
    if backend == "dask":
        client = require("distributed", extra="dask").Client
        address = os.environ.get("DASK_SCHEDULER_ADDRESS")
        local = {
            "n_workers": None if jobs == -1 else jobs,
            "threads_per_worker": 1,
            "dashboard_address": None,
        }
        joined: AbstractContextManager[Any] = client(address) if address else client(**local)
        return joined
    if backend == "ray":
        require("ray.util.joblib", extra="ray").register_ray()
    return nullcontext()
