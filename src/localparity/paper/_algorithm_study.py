"""How exact and how fast Algorithm 2 is, beside Algorithm 1 and the exact profile."""

from __future__ import annotations

import hashlib
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from localparity._io._files import write_whole
from localparity.metrics import gap_curve
from localparity.metrics._approximate import mcdp_on_grid
from localparity.paper._paper_algorithms import algorithm_1, algorithm_1_lean, algorithm_2
from localparity.paper._result import Scored
from localparity.paper._store import Record, Store

EPSILONS = (0.01, 0.05, 0.1)
KS = (1, 2, 4, 8, 16, 32, 64)
FORMAT = 2


@dataclass(frozen=True)
class Approximation:
    """Algorithm 2 at one epsilon and K, over the runs of a data set.

    Parameters
    ----------
    epsilon, k : float, int
        The half-width and the points to it.
    seconds : float
        The time of one call.
    error, error_low, error_high : float
        How far it is above the exact value: mean over the runs, and the quantiles 0.1 and 0.9.
    relative_error : float
        The mean of the same over the exact value, where that is above 0.001.
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
    """The algorithms on the test scores of a data set.

    Parameters
    ----------
    dataset : str
        Whose scores.
    rows, runs : int
        How many people there are, and how many runs' errors were looked at.
    of : str
        The hash of the runs and their metrics.
    algorithm_1, algorithm_1_deviation : float
        Seconds of Algorithm 1 at one epsilon as the published code goes about it, mean and deviation over
        the epsilons.
    algorithm_1_lean : float
        The same, as lean as numpy allows.
    profile : float
        Seconds of the exact profile: every epsilon at once, checks and sort included.
    approximations : tuple of Approximation
        Algorithm 2 at each epsilon and K.
    """

    dataset: str
    rows: int
    runs: int
    of: str
    algorithm_1: float
    algorithm_1_deviation: float
    algorithm_1_lean: float
    profile: float
    approximations: tuple[Approximation, ...]


def study_algorithms(store: Store) -> list[AlgorithmStudy]:
    """The study of every data set in a store, measured once and kept beside the runs.

    Parameters
    ----------
    store : Store
        Whose runs with seed 0 are looked at.

    Returns
    -------
    list of AlgorithmStudy
    """
    path = store.folder / "algorithms.json"
    kept = _load(path)
    records: dict[str, list[Record]] = {}
    for record in store.records():
        if record.run.seed == 0:
            records.setdefault(record.run.dataset, []).append(record)
    found = {}
    for dataset, own in sorted(records.items()):
        measured = [[record.run.key, record.metrics] for record in own]
        of = hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()
        known = kept.get(dataset)
        if known is None or known.of != of:
            known = study(dataset, of, [store.scores(record.run) for record in own])
        found[dataset] = known
    if found != kept:
        plain = {"format": FORMAT, "studies": [asdict(each) for each in found.values()]}
        write_whole(path, json.dumps(plain, indent=1).encode())
    return list(found.values())


def study(dataset: str, of: str, models: Sequence[Scored]) -> AlgorithmStudy:
    """Measure the algorithms on several models' scores; the times are those of the first."""
    curves = [gap_curve(None, model.score, sensitive_features=model.group) for model in models]
    exact = {epsilon: np.array([curve.mcdp(epsilon) for curve in curves]) for epsilon in EPSILONS}
    scores = models[0].score.astype(np.float64)
    groups = np.unique(models[0].group, return_inverse=True)[1].astype(np.int64)

    def profile() -> object:
        return gap_curve(None, scores, sensitive_features=groups).profile().values

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
        of,
        statistics.fmean(slow),
        statistics.stdev(slow),
        statistics.fmean(_seconds(partial(algorithm_1_lean, scores, groups, each), 1) for each in EPSILONS),
        _seconds(profile, 20),
        tuple(approximations),
    )


def _seconds(call: Callable[[], object], repeats: int) -> float:
    """The least time of some calls, after one that warms up where there are several."""
    if repeats > 1:
        call()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def _load(path: Path) -> dict[str, AlgorithmStudy]:
    """What was measured before; what cannot be read is measured again."""
    try:
        plain = json.loads(path.read_bytes())
        if plain["format"] != FORMAT:
            return {}
        return {each["dataset"]: _from_plain(each) for each in plain["studies"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _from_plain(plain: dict[str, Any]) -> AlgorithmStudy:
    parts = tuple(Approximation(**each) for each in plain.pop("approximations"))
    return AlgorithmStudy(**plain, approximations=parts)
