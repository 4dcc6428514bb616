"""Train the runs that a store lacks, several at a time; interrupted sweeps resume."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    if not missing:
        return 0
    parallel = Parallel(n_jobs=min(jobs, len(missing)), return_as="generator_unordered")
    trained = parallel(delayed(_train_and_add)(store.folder, run, device) for run in missing)
    for run, metrics in foretold(trained, len(missing), "training runs"):
        if progress is not None:
            progress(run, metrics)
    return len(missing)


def _train_and_add(folder: Any, run: Run, device: str) -> tuple[Run, dict[str, float]]:
    """Train a run and add it to the store, in a worker."""
    from localparity.paper._train import train_run

    record, scores = train_run(run, device)
    Store(folder).add(record, scores)
    return run, record.metrics
