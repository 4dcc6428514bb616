"""Trains the runs that a store lacks, several at a time; interrupted sweeps resume."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from localparity._progress import foretold
from localparity._validation import as_choice, as_count, require
from localparity.paper._runs import Run
from localparity.paper._store import Store

BACKENDS = ("loky", "dask")

# A worker of a cluster may have several threads, which share torch's random generator.
_ONE_AT_A_TIME = threading.Lock()


RunListener = Callable[[Run, dict[str, float]], None]


def run_missing(
    store: Store,
    runs: Iterable[Run],
    *,
    jobs: int = 1,
    backend: str = "loky",
    device: str = "auto",
    stacked: bool = False,
    progress: RunListener | None = None,
) -> int:
    """Train the runs that a store lacks and add them to it.

    Interrupted sweeps resume: each run is added as soon as it is finished, so that an interrupted call loses
    at most the runs in progress.

    Parameters
    ----------
    store : Store
        Where the runs go.
    runs : iterable of Run
        The runs wanted; those in the store are not trained again.
    jobs : int, default=1
        The number of runs at a time; -1 for one per core.
    backend : str, default="loky"
        Joblib's backend: "loky" (processes on this machine) or "dask" (the cluster at DASK_SCHEDULER_ADDRESS,
        which must see the store's folder, or one on this machine).
    device : str, default="auto"
        A torch device; "auto" takes a GPU if there is one.
    stacked : bool, default=False
        Whether the runs of a method that differ only in strength and seed train together.
    progress : callable, optional
        Called with each run and its metrics when it is in the store.

    Returns
    -------
    int
        The number of runs that were trained.

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
    tasks = as_tasks(missing, stacked)
    if not tasks:
        return 0
    with _cluster(backend, jobs), parallel_config(backend=backend, n_jobs=min(jobs, len(tasks))):
        done = Parallel(return_as="generator_unordered" if backend == "loky" else "list")(
            delayed(_run_task)(store.folder, task, device) for task in tasks
        )
        for finished in foretold(done, len(tasks), "runs" if not stacked else "stacks of runs"):
            for run, metrics in finished:
                if progress is not None:
                    progress(run, metrics)
    return len(missing)


def as_tasks(runs: Iterable[Run], stacked: bool) -> list[list[Run]]:
    """Group the runs that train together: if stacked, those that differ only in strength and seed."""
    if not stacked:
        return [[run] for run in runs]
    stacks: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        alike = run.dataset, run.preset, run.method, run.search, run.temperature
        stacks.setdefault(alike, []).append(run)
    return list(stacks.values())


def _run_task(folder: Any, runs: Sequence[Run], device: str) -> list[tuple[Run, dict[str, float]]]:
    """Train runs together and add them to the store, in a worker."""
    from localparity.paper._train import train_runs

    store = Store(folder)
    with _ONE_AT_A_TIME:
        trained = train_runs(runs, device)
    for record, scores in trained:
        store.add(record, scores)
    return [(record.run, record.metrics) for record, _ in trained]


def _cluster(backend: str, jobs: int) -> AbstractContextManager[Any]:
    """Connect to the cluster that DASK_SCHEDULER_ADDRESS names, or start one on this machine."""
    if backend != "dask":
        return nullcontext()
    client = require("distributed", extra="dask").Client
    address = os.environ.get("DASK_SCHEDULER_ADDRESS")
    workers = None if jobs == -1 else jobs
    joined: AbstractContextManager[Any] = (
        client(address)
        if address
        else client(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    )
    return joined
