"""`make bench`: the metrics beside the paper's algorithms, training beside plain training, and a large page.

All are held to bars, and the numbers go to results/.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

import localparity as lp
from benchmarks._costs import bench_page, bench_rounds, bench_steps
from benchmarks._measure import Measurement, at_least, at_most, measure_all, seconds
from benchmarks._paper_algorithms import algorithm_1, algorithm_1_lean, algorithm_2

PAPER_EPSILONS = np.array([0.0, 0.01, 0.05, 0.1])


def bench_adult() -> Iterator[Measurement]:
    """The four epsilons of the paper on a real file, against the paper's own algorithms."""
    folder = Path(os.environ.get("LOCALPARITY_DATA", "nowhere")).parent / "reference" / "predictions"
    path = folder / "adult_erm_0_0.npz"
    if not path.is_file():
        print("LOCALPARITY_DATA names no folder with the reference predictions beside it: left out")
        return
    with np.load(path) as found:
        scores, groups = found["score"], found["group"].astype(np.int64)
    double = scores.astype(np.float64)

    def ours() -> object:
        return lp.mcdp_profile(None, scores, sensitive_features=groups)(PAPER_EPSILONS)

    exact = lp.mcdp(None, scores, sensitive_features=groups, epsilon=0.05)
    for name, theirs, bar in (
        ("Algorithm 1", partial(algorithm_1, windows_at_once=scores.size + 2), 2000),
        ("Algorithm 1 in blocks", algorithm_1_lean, 1),
    ):
        assert abs(theirs(double, groups, 0.05) - exact) < 1e-12
        time_1, time_ours = seconds(lambda theirs=theirs: theirs(double, groups, 0.05), ours, repeats=3)
        what = f"{name}, one epsilon / ours, four epsilons, Adult"
        yield at_least(what, time_1 / time_ours, bar, f"{time_1:.2f} s; ours {1000 * time_ours:.2f} ms")
    for epsilons in (PAPER_EPSILONS[1:], PAPER_EPSILONS[1:2], PAPER_EPSILONS[2:3], PAPER_EPSILONS[3:]):

        def theirs_2(epsilons=epsilons) -> object:
            return [algorithm_2(double, groups, epsilon, 32) for epsilon in epsilons]

        time_2, time_ours = seconds(theirs_2, ours, repeats=20)
        what = f"ours, four epsilons / Algorithm 2, K=32, epsilon {', '.join(map(str, epsilons))}, Adult"
        yield at_most(
            what, time_ours / time_2, 1.0, f"{1000 * time_2:.2f} ms; ours {1000 * time_ours:.2f} ms"
        )


def bench_import() -> Iterator[Measurement]:
    """Importing what an audit needs with numpy already there."""
    clock = "time.perf_counter()"
    code = f"import time, numpy; start = {clock}; import localparity.auditing; print({clock} - start)"
    found = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    yield at_most("import localparity.auditing, seconds", min(found), 0.3)


def main() -> None:
    """Run all, write results/ground.csv, and fail when a bar is not met."""
    benches = (bench_import, bench_adult, bench_steps, bench_rounds, bench_page)
    measure_all(benches, Path("results/ground.csv"), __doc__)


if __name__ == "__main__":
    main()
