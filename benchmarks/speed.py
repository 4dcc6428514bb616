"""How long MCDP takes beside `np.sort` of the same scores, in one thread and in two.

``python -m benchmarks.speed`` (`make bench` runs it) writes results/speed.csv. Every call is timed in turns
with `np.sort`, on rows that change from one turn to the next, so that neither the processor's caches nor what
it learned of the last turn's rows help one more than the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import localparity as lp
from benchmarks._measure import Measurement, at_least, at_most, measure_all, peak_bytes
from localparity.uncertainty._permutation import parity_resamples
from localparity.uncertainty._resampling import Draws

EPSILONS = np.array([0.0, 0.01, 0.05, 0.1])
SIZES = (10**4, 10**6, 10**7, 10**8)
RESULTS = Path(__file__).parent.parent / "results" / "speed.csv"


class Sample(NamedTuple):
    """Rows to measure with: scores that differ between groups, labels and weights."""

    scores: NDArray[Any]
    groups: NDArray[np.int64]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]


def draw(rows: int, groups: int = 2, seed: int = 0) -> Sample:
    """Draw scores that are all distinct, in groups that differ a little."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, groups, rows)
    scores = rng.beta(2, 5, rows) ** (1.0 - 0.1 * codes / (groups - 1))
    return Sample(scores, codes, rng.integers(0, 2, rows), rng.exponential(size=rows))


Call = Callable[[Sample], object]


def mcdp(sample: Sample, **options: Any) -> object:
    return lp.mcdp(None, sample.scores, sensitive_features=sample.groups, epsilon=EPSILONS, **options)


def weighted(sample: Sample) -> object:
    return mcdp(sample, sample_weight=sample.weights)


def by_label(sample: Sample) -> object:
    options = {"epsilon": EPSILONS, "criterion": "equalized_odds"}
    return lp.mcdp(sample.labels, sample.scores, sensitive_features=sample.groups, **options)


def profile(sample: Sample) -> object:
    return lp.mcdp_profile(None, sample.scores, sensitive_features=sample.groups).values


def sort(sample: Sample) -> object:
    return np.sort(sample.scores)


def median_times(calls: Sequence[Call], samples: Sequence[Sample], turns: int) -> list[float]:
    """The median seconds of each call over turns, each on the next sample."""
    for call in calls:
        call(samples[0])
    found: list[list[float]] = [[] for _ in calls]
    for sample in islice(cycle(samples), turns):
        for call, times in zip(calls, found, strict=True):
            start = time.perf_counter()
            call(sample)
            times.append(time.perf_counter() - start)
    return [median(times) for times in found]


def samples_of(rows: int, groups: int = 2) -> tuple[list[Sample], int]:
    """Some samples, and how many turns to take."""
    plans = (10**4, 40, 200), (10**6, 5, 15), (10**7, 2, 5), (10**9, 1, 2)
    several, turns = next(plan for most, *plan in plans if rows <= most)
    return [draw(rows, groups, seed) for seed in range(several)], turns


def over_sort(what: str, call: Call, rows: int, bar: float, groups: int = 2) -> Measurement:
    """One call over np.sort."""
    samples, turns = samples_of(rows, groups)
    sorting, ours = median_times([sort, call], samples, turns)
    small = rows <= 10**4
    detail = f"{1000 * ours:.3g} ms; np.sort {1000 * sorting:.3g} ms"
    return at_most(f"{what}, {rows:.0e} rows", ours / sorting, 1.0 if small else bar, detail)


def bench_rows(sizes: Sequence[int] = SIZES) -> Iterator[Measurement]:
    """The four epsilons and the profile, over the number of rows."""
    for rows in sizes:
        yield over_sort("MCDP at four epsilons, two groups", mcdp, rows, 0.10)
        yield over_sort("MCDP at four epsilons, five groups", mcdp, rows, 0.15, groups=5)
        yield over_sort("MCDP at four epsilons, weights", weighted, rows, 0.3)
        yield over_sort("MCDP at four epsilons, equalized odds", by_label, rows, 0.2)
        yield over_sort("the whole profile, two groups", profile, rows, 0.8)


def crowded(rows: int) -> dict[str, NDArray[Any]]:
    """Scores that are hard on cells."""
    rng = np.random.default_rng(0)
    some = rng.random(rows)
    return {
        "all equal": np.full(rows, 0.3),
        "two values": rng.choice([0.2, 0.8], rows),
        "a power law at 1e-300": 10.0 ** (-300.0 * some),
        "sorted": np.sort(some),
        "float32 with ties": (rng.integers(0, 1000, rows) / 1000).astype(np.float32),
        "half in one place": np.where(some < 0.5, 0.5 + 1e-9 * rng.random(rows), some),
    }


def bench_crowded(rows: int = 10**6) -> Iterator[Measurement]:
    """Scores that are hard on cells, over np.sort of scores that are not: np.sort itself is quick on ties."""
    for name, scores in crowded(rows).items():
        plain = draw(rows)
        hard = plain._replace(scores=scores)
        sorting, ours, own = median_times([lambda _, plain=plain: sort(plain), mcdp, sort], [hard], 9)
        detail = f"{1000 * ours:.3g} ms; np.sort of these {1000 * own:.3g} ms"
        yield at_most(f"MCDP at four epsilons, {name}, {rows:.0e} rows", ours / sorting, 0.5, detail)


def bench_threads(rows: int = 10**7) -> Iterator[Measurement]:
    """Two threads over one."""
    samples, turns = samples_of(rows)
    one, two = median_times([mcdp, partial(mcdp, n_jobs=2)], samples, 2 * turns)
    yield at_least(f"one thread over two, {rows:.0e} rows", one / two, 1.7, f"{1000 * two:.3g} ms")


def bench_groups(rows: int = 10**6) -> Iterator[Measurement]:
    """Texts and categories as groups."""
    sample = draw(rows)
    texts = np.array(["female", "male"], dtype=object)[sample.groups]
    typed = sample._replace(groups=texts)
    categories = sample._replace(groups=pd.Categorical(texts))
    calls = [
        lambda _: mcdp(sample),
        lambda _: pd.factorize(texts),
        lambda _: mcdp(typed),
        lambda _: mcdp(categories),
    ]
    plain, hashing, with_texts, with_categories = median_times(calls, [sample], 11)
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

    def audit(_: Sample) -> object:
        return lp.audit(None, sample.scores, sensitive_features=sample.groups, random_state=0)

    def test(_: Sample) -> object:
        draws = Draws(1000, random_state=0)
        return parity_resamples(counts, lp.Comparison(), EPSILONS, draws)

    sorting, audited, tested = median_times([sort, audit, test], [sample], 3)
    yield at_most(
        f"an audit with 1,000 resamples, {rows:.0e} rows", audited / sorting, 15.0, f"{audited:.2f} s"
    )
    yield at_most(f"p-values and noise floors, {rows:.0e} rows", tested / sorting, 12.0, f"{tested:.2f} s")


def main() -> None:
    """Measure, print and write; fail where a bar is not met."""
    benches = (bench_rows, bench_crowded, bench_threads, bench_groups, bench_memory, bench_resamples)
    measure_all(benches, RESULTS, __doc__)


if __name__ == "__main__":
    main()
