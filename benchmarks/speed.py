"""How long MCDP takes, in reads of the scores and in sorts of them, whatever their shape.

``python -m benchmarks.speed`` (`make bench` runs it) writes results/speed.csv. A read is ``scores.sum()``. A
sort is the faster of two: `np.sort` as it is, and as it is without AVX-512 instructions, which on some
processors take six times as long. Every call is timed in turns with both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import localparity as lp
from benchmarks._measure import Measurement, at_least, at_most, measure_all, peak_bytes
from localparity.uncertainty._permutation import parity_resamples
from localparity.uncertainty._resampling import Draws

EPSILONS = np.array([0.0, 0.01, 0.05, 0.1])
RESULTS = Path(__file__).parent.parent / "results" / "speed.csv"
WITHOUT_AVX512 = "X86_V4 AVX512_ICL"


class Sample(NamedTuple):
    """Rows to measure with: scores, groups, labels and weights."""

    scores: NDArray[Any]
    groups: NDArray[np.int8]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]


SHAPES: dict[str, Callable[[np.random.Generator, int], NDArray[Any]]] = {
    "beta": lambda rng, rows: rng.beta(0.7, 3, rows),
    "uniform": lambda rng, rows: rng.random(rows),
    "logistic": lambda rng, rows: 1 / (1 + np.exp(-3 * rng.standard_normal(rows))),
    "three decimals": lambda rng, rows: rng.beta(0.7, 3, rows).round(3),
    "five decimals": lambda rng, rows: rng.beta(0.7, 3, rows).round(5),
    "half in one place": lambda rng, rows: np.where(
        rng.random(rows) < 0.5, 0.5 + 1e-9 * rng.random(rows), rng.random(rows)
    ),
    "a power law to 1e-300": lambda rng, rows: 10.0 ** (-300.0 * rng.random(rows)),
    "sorted": lambda rng, rows: np.sort(rng.random(rows)),
    "float32": lambda rng, rows: rng.beta(0.7, 3, rows).astype(np.float32),
}


def draw(rows: int, groups: int = 2, *, shape: str = "beta", parity: bool = False) -> Sample:
    """Rows of some shape in groups that differ a little, or not; of two groups, one has a fifth."""
    rng = np.random.default_rng(0)
    scores = SHAPES[shape](rng, rows)
    codes = (rng.random(rows) < 0.2 if groups == 2 else rng.integers(0, groups, rows)).astype(np.int8)
    if not parity:
        moved = scores ** (1.0 - 0.1 * codes / (groups - 1))
        decimals = {"three decimals": 3, "five decimals": 5}.get(shape)
        scores = (moved if decimals is None else moved.round(decimals)).astype(scores.dtype)
    return Sample(scores, codes, rng.integers(0, 2, rows), rng.exponential(size=rows))


def mcdp(sample: Sample, **options: Any) -> object:
    return lp.mcdp(None, sample.scores, sensitive_features=sample.groups, epsilon=EPSILONS, **options)


def by_label(sample: Sample) -> object:
    options = {"epsilon": EPSILONS, "criterion": "equalized_odds"}
    return lp.mcdp(sample.labels, sample.scores, sensitive_features=sample.groups, **options)


def profile(sample: Sample) -> object:
    return lp.mcdp_profile(None, sample.scores, sensitive_features=sample.groups)


def least_times(calls: Sequence[Callable[[], object]], turns: int) -> list[float]:
    """The least seconds of each call over turns."""
    least = [np.inf] * len(calls)
    for turn in range(turns + 1):
        for place, call in enumerate(calls):
            start = time.perf_counter()
            call()
            if turn:  # the first one only warms up
                least[place] = min(least[place], time.perf_counter() - start)
    return least


def sort_time(rows: int, turns: int) -> float:
    """The least seconds of np.sort, of scores like those of `draw`."""
    scores = np.random.default_rng(0).beta(0.7, 3, rows)
    return least_times([lambda: np.sort(scores)], turns)[0]


def without_avx512(rows: int, turns: int) -> float:
    """The same in a process of its own, where numpy does without the instructions that may be slow."""
    name, before = "NPY_DISABLE_CPU_FEATURES", os.environ.get("NPY_DISABLE_CPU_FEATURES")
    os.environ[name] = WITHOUT_AVX512
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
            return executor.submit(sort_time, rows, turns).result()
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def turns_of(rows: int) -> int:
    return 200 if rows <= 10**4 else 15 if rows <= 10**6 else 5 if rows <= 10**7 else 2


class Anchors:
    """What one read and one sort of so many scores take."""

    def __init__(self, rows: int) -> None:
        self.rows, self.turns = rows, turns_of(rows)
        scores = np.random.default_rng(0).beta(0.7, 3, rows)
        self.read, self.as_is = least_times([scores.sum, lambda: np.sort(scores)], self.turns)
        self.sort = min(self.as_is, without_avx512(rows, self.turns))

    def measure(
        self, what: str, call: Callable[[], object], *, reads: float = 0.0, sorts: float = 0.0
    ) -> Measurement:
        """One call, held to so many reads or to so many sorts."""
        (took,) = least_times([call], self.turns)
        in_reads, in_sorts = took / self.read, took / self.sort
        here = f", np.sort here {1000 * self.as_is:.3g} ms" if self.as_is > 1.5 * self.sort else ""
        detail = f"{1000 * took:.3g} ms = {in_reads:.3g} reads = {in_sorts:.2g} sorts{here}"
        what = f"{what}, {self.rows:.0e} rows, in {'reads' if reads else 'sorts'}"
        return at_most(what, in_reads if reads else in_sorts, reads or sorts, detail)


def bench_rows(
    bars: Sequence[tuple[int, float, float]] = ((10**6, 20, 1.5), (10**7, 8, 1.5), (10**8, 8, 2.0)),
) -> Iterator[Measurement]:
    """The four epsilons and the profile, over the number of rows."""
    for rows, reads, sorts in bars:
        anchors, sample = Anchors(rows), draw(rows)
        yield anchors.measure("MCDP at four epsilons, two groups", partial(mcdp, sample), reads=reads)
        yield anchors.measure("the whole profile, two groups", partial(profile, sample), sorts=sorts)
        for groups, most in ((2, 1.2), (5, 2.0)):
            at_parity = draw(rows, groups, parity=True)
            what = f"MCDP at four epsilons, {groups} groups at parity"
            yield anchors.measure(what, partial(mcdp, at_parity), sorts=most)


def bench_small(rows: int = 10**4) -> Iterator[Measurement]:
    """Few rows, in milliseconds."""
    for groups in (2, 5):
        (took,) = least_times([partial(mcdp, draw(rows, groups))], turns_of(rows))
        yield at_most(f"MCDP at four epsilons, {groups} groups, {rows:.0e} rows, in ms", 1000 * took, 0.2)


def bench_shapes(rows: int = 10**6) -> Iterator[Measurement]:
    """Every shape, with two, five and twenty groups, with a disparity and at parity, weights and labels."""
    anchors = Anchors(rows)
    for shape in SHAPES:
        for groups in (2, 5, 20):
            for parity in (False, True):
                sample = draw(rows, groups, shape=shape, parity=parity)
                what = f"{shape}, {groups} groups{' at parity' if parity else ''}"
                yield anchors.measure(what, partial(mcdp, sample), reads=40)
        sample = draw(rows, shape=shape)
        weighted = partial(mcdp, sample, sample_weight=sample.weights)
        yield anchors.measure(f"{shape}, two groups, weights", weighted, reads=40)
        yield anchors.measure(f"{shape}, two groups, equalized odds", partial(by_label, sample), reads=40)


def bench_threads(rows: int = 10**7) -> Iterator[Measurement]:
    """Two threads over one."""
    sample = draw(rows)
    one, two = least_times([partial(mcdp, sample), partial(mcdp, sample, n_jobs=2)], 2 * turns_of(rows))
    yield at_least(f"one thread over two, {rows:.0e} rows", one / two, 1.6, f"{1000 * two:.3g} ms")


def bench_groups(rows: int = 10**6) -> Iterator[Measurement]:
    """Texts and categories as groups."""
    sample = draw(rows)
    texts = np.array(["female", "male"], dtype=object)[sample.groups]
    typed = sample._replace(groups=texts)
    categories = sample._replace(groups=pd.Categorical(texts))
    calls = [
        lambda: mcdp(sample),
        lambda: pd.factorize(texts),
        lambda: mcdp(typed),
        lambda: mcdp(categories),
    ]
    plain, hashing, with_texts, with_categories = least_times(calls, 11)
    yield at_most("texts, less integers, over pandas.factorize", (with_texts - plain) / hashing, 1.2)
    yield at_most("categories over integers", with_categories / plain, 1.1)


def prepare_memory(rows: int) -> Callable[[], object]:
    sample = draw(rows)
    mcdp(draw(10**5))
    return lambda: mcdp(sample)


def bench_memory(rows: int = 10**7) -> Iterator[Measurement]:
    """The memory that a call takes beside the scores."""
    grown = peak_bytes(partial(prepare_memory, rows)) / (8 * rows)
    yield at_most(f"memory for four epsilons over the scores' bytes, {rows:.0e} rows", grown, 1.0)


def bench_resamples(rows: int = 10**6) -> Iterator[Measurement]:
    """The test against parity, and an audit with all that it does by default."""
    sample = draw(rows)
    predictions = lp.Predictions.from_arrays(None, sample.scores, sensitive_features=sample.groups)
    counts = lp.ScoreCounts.from_predictions(predictions)

    def audit() -> object:
        return lp.audit(None, sample.scores, sensitive_features=sample.groups, random_state=0)

    def test() -> object:
        draws = Draws(1000, random_state=0)
        return parity_resamples(counts, lp.Comparison(), EPSILONS, draws)

    anchors = Anchors(rows)
    yield anchors.measure("an audit with 1,000 resamples", audit, sorts=60)
    yield anchors.measure("p-values and noise floors", test, sorts=50)


def main() -> None:
    """Measure, print and write; fail where a bar is not met."""
    benches = (
        bench_small,
        bench_rows,
        bench_shapes,
        bench_threads,
        bench_groups,
        bench_memory,
        bench_resamples,
    )
    measure_all(benches, RESULTS, __doc__)


if __name__ == "__main__":
    main()
