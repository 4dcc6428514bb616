"""What the penalty adds to a round of boosting on a Dask cluster of two processes.

Run from the root of the repository: ``python -m benchmarks.dask_round``. It writes results/dask_round.json
(or --out): the time of a round, by the clock and of the workers' processors, with XGBoost's own logistic
objective, with a custom objective that has no penalty, and with the penalty, and how many times as long as
each of the others the last takes. A round's time is the difference between a long and a short training over
their difference in rounds, the least of several repetitions, so that starting the workers and binning the
features do not count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xgboost.dask
from dask import array
from distributed import Client, LocalCluster
from numpy.typing import NDArray

from benchmarks._measure import add_busy, machine, record_at, write_json
from localparity.integrations.dask import train

_SHORT, _LONG = 5, 30
_PARAMETERS = {"tree_method": "hist", "nthread": 1}


class Taken(NamedTuple):
    """The time of a round, by the clock and of the workers' processors together."""

    seconds: float
    cpu_seconds: float


def time_of_round(client: Client, grow: Callable[[int], Any], repetitions: int) -> Taken:
    """Return the least time of a round."""

    def now() -> NDArray[np.float64]:
        return np.array([time.perf_counter(), sum(client.run(time.process_time).values())])

    found = []
    for _ in range(repetitions):
        start = now()
        grow(_SHORT)
        middle = now()
        grow(_LONG)
        found.append((now() - middle - (middle - start)) / (_LONG - _SHORT))
    return Taken(*np.min(found, axis=0).tolist())


def measure(client: Client, rows: int, repetitions: int) -> dict[str, Any]:
    """Return the seconds of a round of each kind, and the ratios."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(rows, 20)).round(1).astype(np.float32)
    groups = (rng.random(rows) < 0.4).astype(np.int64)
    labels = (features[:, 0] + 0.5 * features[:, 1] + 0.3 * groups + rng.normal(size=rows) > 0.8).astype(
        np.float32
    )
    half = (rows + 1) // 2
    X, y, group = client.persist(
        [
            array.from_array(features, chunks=(half, -1)),
            array.from_array(labels, chunks=half),
            array.from_array(groups, chunks=half),
        ]
    )
    plain = {**_PARAMETERS, "objective": "binary:logistic", "disable_default_eval_metric": True}
    data = xgboost.dask.DaskQuantileDMatrix(client, X, y)

    def penalised(strength: float) -> Callable[[int], Any]:
        return lambda rounds: train(
            client,
            X,
            y,
            sensitive_features=group,
            strength=strength,
            num_boost_round=rounds,
            booster_params=_PARAMETERS,
        )

    grown = {
        "plain": lambda rounds: xgboost.dask.train(client, plain, data, rounds),
        "custom": penalised(0.0),
        "penalised": penalised(0.3),
    }
    for grow in grown.values():
        grow(1)
    taken = {name: time_of_round(client, grow, repetitions) for name, grow in grown.items()}
    over = {
        f"over_{name}": dict(
            zip(Taken._fields, np.divide(taken["penalised"], taken[name]).tolist(), strict=True)
        )
        for name in ("plain", "custom")
    }
    return {"rows": rows, "workers": 2, **{name: each._asdict() for name, each in taken.items()}, **over}


def main() -> None:
    """Measure and write one object of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/dask_round.json"))
    add_busy(parser)
    options = parser.parse_args()
    out = record_at(options.out, busy=options.busy)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        write_json(out, {"machine": machine(), **measure(client, options.rows, options.repetitions)})


if __name__ == "__main__":
    main()
