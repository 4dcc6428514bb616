"""`make bench`: the time and memory of the metrics, held to their bars; the numbers go to results/."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

import localparity as lp
from benchmarks._draws import draw_scores, prepare_profile
from benchmarks._measure import Measurement, at_least, at_most, measure_all, peak_bytes, seconds
from benchmarks._paper_algorithms import algorithm_1, algorithm_1_lean, algorithm_2
from localparity.uncertainty._pool import Pool, pools_of
from localparity.uncertainty._resampling import Draws, resample

PAPER_EPSILONS = np.array([0.0, 0.01, 0.05, 0.1])
COMPARISON = lp.Comparison()


def bench_profile() -> Iterator[Measurement]:
    """The whole profile, checks included, against np.sort of the same scores."""
    for rows in (10**6, 10**7):
        for name in ("parity", "disparity"):
            scores, groups = draw_scores(rows, name)
            for kind in (np.int64, bool):
                typed = groups.astype(kind)

                def profile(scores=scores, typed=typed) -> object:
                    return lp.mcdp_profile(None, scores, sensitive_features=typed).values

                ours, sort = seconds(profile, lambda scores=scores: np.sort(scores))
                what = f"profile / np.sort, {rows:.0e} rows, {name}, {np.dtype(kind)} group"
                yield at_most(what, ours / sort, 3.0, f"np.sort {sort:.4f} s")
            memory = peak_bytes(partial(prepare_profile, rows, name)) / scores.nbytes + 1.0
            what = f"peak memory / scores, {rows:.0e} rows, {name}"
            yield at_most(what, memory, 8.0, "the scores counted in")


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


def bench_resamples() -> Iterator[Measurement]:
    """One resample of the bootstrap and of the permutation test against np.sort of the scores."""
    rng = np.random.default_rng(0)
    for rows in (10**4, 10**6):
        groups = rng.integers(0, 2, rows)
        scores = rng.beta(2 + groups, 3 - groups)
        predictions = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
        counts = lp.ScoreCounts.from_predictions(predictions)
        pools = pools_of(counts, COMPARISON)
        resamples = 200 if rows == 10**4 else 5
        for name, draw in (("bootstrap", Pool.deviated), ("permutation", Pool.dealt)):

            def several(pools=pools, draw=draw, counts=counts, resamples=resamples) -> object:
                return resample(
                    pools,
                    draw,
                    Draws(resamples, random_state=0),
                    comparison=COMPARISON,
                    epsilons=PAPER_EPSILONS,
                    resolution=counts.resolution,
                )

            all_of_them, sort = seconds(several, lambda scores=scores: np.sort(scores))
            each = all_of_them / resamples
            yield at_most(
                f"{name} resample / np.sort, {rows:.0e} rows", each / sort, 3.0, f"{1000 * each:.2f} ms"
            )


def bench_import() -> Iterator[Measurement]:
    """Importing what an audit needs with numpy already there."""
    clock = "time.perf_counter()"
    code = f"import time, numpy; start = {clock}; import localparity.audit; print({clock} - start)"
    found = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    yield at_most("import localparity.audit, seconds", min(found), 0.3)


def main() -> None:
    """Run all, write results/ground.csv, and fail when a bar is not met."""
    benches = (bench_import, bench_adult, bench_resamples, bench_profile)
    measure_all(benches, Path("results/ground.csv"), __doc__)


if __name__ == "__main__":
    main()
