"""Trains the runs that a store lacks, several at a time; interrupted sweeps resume."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from localparity._progress import foretold
from localparity._validation import as_count
from localparity.paper._runs import Run
from localparity.paper._store import Store

RunListener = Callable[[Run, dict[str, float]], None]


def run_missing(
    store: Store,
    runs: Iterable[Run],
    *,
    jobs: int = 1,
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
    from joblib import Parallel, delayed

    if jobs != -1:
        as_count(jobs, "jobs")
    store.check_version()
    missing = store.missing(runs)
    tasks = as_tasks(missing, stacked)
    if not tasks:
        return 0
    parallel = Parallel(n_jobs=min(jobs, len(tasks)), return_as="generator_unordered")
    done = parallel(delayed(_run_task)(store.folder, task, device) for task in tasks)
    for finished in foretold(done, len(tasks), "stacks of runs" if stacked else "runs"):
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
    trained = train_runs(runs, device)
    for record, scores in trained:
        store.add(record, scores)
    return [(record.run, record.metrics) for record, _ in trained]
