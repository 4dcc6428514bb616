"""What the curves compare: each engine here, and what others do with the same rows.

In a module of its own, so that a fresh process can import it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import localparity as lp
from benchmarks._draws import draw_scores
from benchmarks._paper_algorithms import algorithm_1, algorithm_1_lean, algorithm_2

EPSILON = 0.05
K = 32
RESAMPLES = 100

Panel = Literal["engines", "others", "intervals"]
Call = Callable[[], float]


class SampleFiles:
    """The same rows as arrays and as a Parquet file, in a folder from which any process can read them."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.parquet = folder / f"{rows}.parquet"
        self._scores, self._groups = (folder / f"{rows}-{name}.npy" for name in ("scores", "groups"))
        self.rows = rows

    def write(self) -> None:
        """Draw a disparity, with as many distinct scores as rows, which is hardest on engines that count."""
        import duckdb

        scores, groups = draw_scores(self.rows, "disparity")
        np.save(self._scores, scores)
        np.save(self._groups, groups)
        with duckdb.connect() as connection:
            connection.register("sample", {"p": scores, "g": groups})
            connection.execute(f"COPY sample TO '{self.parquet}' (FORMAT parquet)")

    def remove(self) -> None:
        """Delete the files."""
        for path in (self.parquet, self._scores, self._groups):
            path.unlink(missing_ok=True)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Scores, shape (rows,)."""
        return np.load(self._scores)

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """Groups 0 and 1, shape (rows,)."""
        return np.load(self._groups)


class Series(NamedTuple):
    """One line of a figure: a call, prepared on the rows, up to the number of rows that it can bear."""

    name: str
    panel: Panel
    largest: int
    prepare: Callable[[SampleFiles], Call]
    exact: bool = False
    """Whether it gives MCDP(EPSILON), and not another number."""


def sort(sample: SampleFiles) -> Call:
    return lambda: float(np.sort(sample.scores)[0])


def in_memory(metric: Callable[..., Any], sample: SampleFiles, **options: Any) -> Call:
    return lambda: metric(None, sample.scores, sensitive_features=sample.groups, **options)


def profile(sample: SampleFiles) -> Call:
    whole = in_memory(lp.mcdp_profile, sample)

    def call() -> float:
        found = whole()
        found.values  # noqa: B018, the steps are made when they are asked for
        return found(EPSILON)

    return call


def interval(sample: SampleFiles, **options: Any) -> Call:
    found = in_memory(lp.mcdp_interval, sample, epsilon=EPSILON, **options)
    return lambda: found().high


def counts(sample: SampleFiles) -> Call:
    def call() -> float:
        rows = lp.Predictions.from_arrays(None, sample.scores, sensitive_features=sample.groups)
        return lp.mcdp(lp.ScoreCounts.from_predictions(rows), epsilon=EPSILON)

    return call


def duckdb(sample: SampleFiles) -> Call:
    columns = {"score": "p", "group": "g", "epsilons": [EPSILON]}
    return lambda: lp.mcdp(lp.engines.from_duckdb(sample.parquet, **columns), epsilon=EPSILON)


def local_spark() -> Any:
    """A session on this machine, without the pages and the lines of progress."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def spark(sample: SampleFiles) -> Call:
    frame = local_spark().read.parquet(str(sample.parquet))
    columns = {"score": "p", "group": "g", "epsilons": [EPSILON]}
    return lambda: lp.mcdp(lp.engines.from_spark(frame, **columns), epsilon=EPSILON)


def torch(sample: SampleFiles) -> Call:
    import torch

    scores, groups = torch.from_numpy(sample.scores), torch.from_numpy(sample.groups)
    return lambda: lp.mcdp(lp.engines.from_torch(scores, groups, epsilons=[EPSILON]), epsilon=EPSILON)


def ks_2samp(sample: SampleFiles) -> Call:
    from scipy.stats import ks_2samp

    first, second = (sample.scores[sample.groups == group] for group in (0, 1))
    return lambda: float(ks_2samp(first, second, method="asymp").statistic)


def demographic_parity_difference(sample: SampleFiles) -> Call:
    from fairlearn.metrics import demographic_parity_difference

    labels = np.zeros(sample.rows, dtype=np.int64)
    return lambda: float(
        demographic_parity_difference(labels, sample.scores > 0.5, sensitive_features=sample.groups)
    )


def fairlearn_bootstrap(sample: SampleFiles) -> Call:
    from fairlearn.metrics import MetricFrame, selection_rate

    labels = np.zeros(sample.rows, dtype=np.int64)

    def call() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = MetricFrame(
                metrics=selection_rate,
                y_true=labels,
                y_pred=sample.scores > 0.5,
                sensitive_features=sample.groups,
                n_boot=RESAMPLES,
                ci_quantiles=[0.025, 0.975],
                random_state=0,
            )
            return float(found.difference_ci()[1])

    return call


def paper(algorithm: Callable[..., float], sample: SampleFiles, *more: Any, **options: Any) -> Call:
    return lambda: algorithm(sample.scores, sample.groups, EPSILON, *more, **options)


def paper_at_once(sample: SampleFiles) -> Call:
    return paper(algorithm_1, sample, windows_at_once=sample.rows + 2)


BOOTSTRAP = {"method": "bootstrap", "n_resamples": RESAMPLES, "random_state": 0}
ALL = [
    Series("numpy's sort", "engines", 10**8, sort),
    Series("mcdp_profile, every epsilon", "engines", 10**8, profile, exact=True),
    Series("mcdp", "engines", 10**7, partial(in_memory, lp.mcdp, epsilon=EPSILON), exact=True),
    Series("ScoreCounts of arrays", "engines", 10**7, counts, exact=True),
    Series("from_torch, CPU", "engines", 10**8, torch, exact=True),
    Series("from_duckdb, Parquet", "engines", 10**8, duckdb, exact=True),
    Series("from_spark, Parquet, local[2]", "engines", 10**7, spark, exact=True),
    Series(
        "mcdp_approximate, K=32",
        "others",
        10**7,
        partial(in_memory, lp.mcdp_approximate, epsilon=EPSILON, k=K),
    ),
    Series("paper's Algorithm 1", "others", 10**4, paper_at_once, exact=True),
    Series("paper's Algorithm 1, in blocks", "others", 10**5, partial(paper, algorithm_1_lean), exact=True),
    Series("paper's Algorithm 2, K=32", "others", 10**7, lambda sample: paper(algorithm_2, sample, K)),
    Series("scipy's ks_2samp", "others", 10**7, ks_2samp),
    Series("fairlearn's demographic_parity_difference", "others", 10**6, demographic_parity_difference),
    Series("mcdp_interval, dkw", "intervals", 10**7, interval),
    Series("mcdp_interval, bootstrap of 100", "intervals", 10**7, partial(interval, **BOOTSTRAP)),
    Series("fairlearn's bootstrap of 100", "intervals", 10**5, fairlearn_bootstrap),
]
BY_NAME = {series.name: series for series in ALL}


def prepare(folder: Path, rows: int, name: str) -> Call:
    """A call that has read its rows and compiled its kernels, for the measurement of its memory."""
    sample = SampleFiles(folder, rows)
    few = SampleFiles(folder, 1000)
    BY_NAME[name].prepare(few)()
    call = BY_NAME[name].prepare(sample)
    sample.scores, sample.groups  # noqa: B018, reads them
    return call
