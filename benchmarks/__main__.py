"""`make bench`: the metrics beside the paper's algorithms, training beside plain training, and a large page.

All are held to bars, and the numbers go to results/.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import localparity as lp
from benchmarks._measure import Measurement, at_least, at_most, measure_all, seconds
from benchmarks._paper_algorithms import algorithm_1, algorithm_1_lean, algorithm_2

# What a penalty adds to a step of a network and to a round of boosting, and how soon a large page opens.

Call = Callable[[], object]


def ratio(plain: Call, penalised: Call, turns: int, clock: Callable[[], float]) -> float:
    """The lower quartile of the second call's times over that of the first's, measured in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for call, taken in zip((plain, penalised), times, strict=True):
            start = clock()
            call()
            taken.append(clock() - start)
    first, second = (sorted(taken)[turns // 4] for taken in times)
    return second / first


def bench_steps() -> Iterator[Measurement]:
    """A step with the exact search beside a step without a penalty."""
    import torch

    from localparity.models.networks import TensorRows, TrainingSettings
    from localparity.models.networks._methods import make_method
    from localparity.models.networks._networks import multilayer
    from localparity.models.networks._trainer import Training

    generator = torch.Generator().manual_seed(0)
    features = torch.randn(1024, 101, generator=generator)
    labels, groups = (features[:, 0] > 0.7).float(), (torch.rand(1024, generator=generator) < 0.33).long()
    rows = TensorRows(features, labels, groups, torch.ones(1024))
    for temperature in (10.0, 80.0):
        calls = []
        for name in ("erm", "diffmcdp"):
            settings = TrainingSettings(temperature=temperature)
            method = make_method(name, 0.2, 2, settings)
            training = Training(method, multilayer(101, (512, 256, 64), 0.5), rows, seed=0)
            calls.append(partial(training.take, 0))
        what = f"a step with the exact search / without a penalty, temperature {temperature:g}"
        yield at_most(what, ratio(*calls, 60, time.perf_counter), 1.5)


def xgboost_round(X: Any, y: Any, objective: Any) -> Call:
    import xgboost

    data = xgboost.QuantileDMatrix(X, y)
    booster = xgboost.Booster({"objective": "binary:logistic", "base_score": 0.3, "nthread": 1}, [data])
    return lambda: booster.update(data, booster.num_boosted_rounds(), fobj=objective)


def lightgbm_round(X: Any, y: Any, objective: Any) -> Call:
    import lightgbm

    plain = {"num_threads": 1, "verbose": -1, "force_row_wise": True}
    data = lightgbm.Dataset(X, y, params=plain)
    booster = lightgbm.Booster({"objective": "none" if objective else "binary", **plain}, data)
    return lambda: booster.update(fobj=objective)


def bench_rounds() -> Iterator[Measurement]:
    """A round with the penalty beside a round of the library's own objective."""
    options: tuple[dict[str, Any], ...] = (
        {"search": "soft"},
        {"search": "soft", "temperature": 100.0},
        {},
        {"epsilon": 0.05},
    )
    for rows in (10**5, 10**6):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(rows, 20)).astype(np.float32)
        groups = (rng.random(rows) < 0.4).astype(int)
        y = (X[:, 0] + 0.5 * X[:, 1] + 0.3 * groups + rng.normal(size=rows) > 0.8).astype(int)
        # XGBoost's margins and gradients go through Python, and penalised trees are larger.
        for name, library, bar in (("XGBoost", xgboost_round, 2.0), ("LightGBM", lightgbm_round, 1.5)):
            for given in options:
                objective = lp.models.MCDPObjective(y, sensitive_features=groups, strength=0.3, **given)
                what = f"a penalised round / {name}'s own, {rows:.0e} rows, {given or 'by default'}"
                calls = library(X, y, None), library(X, y, objective)
                yield at_most(what, ratio(*calls, 20, time.process_time), bar)


def bench_page() -> Iterator[Measurement]:
    """A page of forty groups and ten million people, until it can be read."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not installed: the page is left out")
        return
    from playwright.sync_api import sync_playwright

    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, 10**7)
    scores = (1.0 / (1.0 + np.exp(1.0 - 0.02 * codes - rng.normal(size=codes.size)))).round(5)
    audit = lp.audit(None, scores, sensitive_features=codes, n_resamples=0)
    seconds = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "large.html"
        audit.to_html(path)
        browser = playwright.chromium.launch(executable_path=chromium)
        for _ in range(3):
            page = browser.new_page()
            start = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready=yes]", state="attached")
            seconds.append(time.perf_counter() - start)
        browser.close()
    yield at_most("a page of 780 pairs is ready, seconds", min(seconds), 2.0)


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
