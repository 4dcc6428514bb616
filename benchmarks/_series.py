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
from benchmarks._people import draw_people
from localparity.paper._paper_algorithms import algorithm_1, algorithm_1_lean, algorithm_2

EPSILON = 0.05
K = 32
RESAMPLES = 100

Panel = Literal["engines", "others", "intervals"]
Call = Callable[[], float]


class People:
    """The same rows as arrays and as a Parquet file, in a folder from which any process can read them."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.parquet = folder / f"{rows}.parquet"
        self._scores, self._groups = (folder / f"{rows}-{name}.npy" for name in ("scores", "groups"))
        self.rows = rows

    def write(self) -> None:
        """Draw them; a disparity, and as many distinct scores as rows, which is hardest on who counts."""
        import duckdb

        scores, groups = draw_people(self.rows, "disparity")
        np.save(self._scores, scores)
        np.save(self._groups, groups)
        with duckdb.connect() as connection:
            connection.register("people", {"p": scores, "g": groups})
            connection.execute(f"COPY people TO '{self.parquet}' (FORMAT parquet)")

    def remove(self) -> None:
        """Make room."""
        for path in (self.parquet, self._scores, self._groups):
            path.unlink(missing_ok=True)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """One a row."""
        return np.load(self._scores)

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """0 or 1, one a row."""
        return np.load(self._groups)


class Series(NamedTuple):
    """One line of a figure: a call, prepared on the rows, up to the number of rows that it can bear."""

    name: str
    panel: Panel
    largest: int
    prepare: Callable[[People], Call]
    exact: bool = False
    """Whether it gives MCDP(EPSILON), and not another number."""


def sort(people: People) -> Call:
    return lambda: float(np.sort(people.scores)[0])


def in_memory(metric: Callable[..., Any], people: People, **options: Any) -> Call:
    return lambda: metric(None, people.scores, sensitive_features=people.groups, **options)


def profile(people: People) -> Call:
    whole = in_memory(lp.mcdp_profile, people)

    def call() -> float:
        found = whole()
        found.values  # noqa: B018, the steps are made when they are asked for
        return found(EPSILON)

    return call


def interval(people: People, **options: Any) -> Call:
    found = in_memory(lp.mcdp_interval, people, epsilon=EPSILON, **options)
    return lambda: found().high


def counts(people: People) -> Call:
    def call() -> float:
        rows = lp.Predictions.from_arrays(None, people.scores, sensitive_features=people.groups)
        return lp.ScoreCounts.from_predictions(rows).mcdp(EPSILON)

    return call


def duckdb(people: People) -> Call:
    return lambda: lp.engines.from_duckdb(people.parquet, score="p", group="g", epsilons=[EPSILON]).mcdp(
        EPSILON
    )


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


def spark(people: People) -> Call:
    frame = local_spark().read.parquet(str(people.parquet))
    return lambda: lp.engines.from_spark(frame, score="p", group="g", epsilons=[EPSILON]).mcdp(EPSILON)


def torch(people: People) -> Call:
    import torch

    scores, groups = torch.from_numpy(people.scores), torch.from_numpy(people.groups)
    return lambda: lp.engines.from_torch(scores, groups, epsilons=[EPSILON]).mcdp(EPSILON)


def ks_2samp(people: People) -> Call:
    from scipy.stats import ks_2samp

    first, second = (people.scores[people.groups == group] for group in (0, 1))
    return lambda: float(ks_2samp(first, second, method="asymp").statistic)


def demographic_parity_difference(people: People) -> Call:
    from fairlearn.metrics import demographic_parity_difference

    labels = np.zeros(people.rows, dtype=np.int64)
    return lambda: float(
        demographic_parity_difference(labels, people.scores > 0.5, sensitive_features=people.groups)
    )


def fairlearn_bootstrap(people: People) -> Call:
    from fairlearn.metrics import MetricFrame, selection_rate

    labels = np.zeros(people.rows, dtype=np.int64)

    def call() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = MetricFrame(
                metrics=selection_rate,
                y_true=labels,
                y_pred=people.scores > 0.5,
                sensitive_features=people.groups,
                n_boot=RESAMPLES,
                ci_quantiles=[0.025, 0.975],
                random_state=0,
            )
            return float(found.difference_ci()[1])

    return call


def paper(algorithm: Callable[..., float], people: People, *more: Any, **options: Any) -> Call:
    return lambda: algorithm(people.scores, people.groups, EPSILON, *more, **options)


def paper_at_once(people: People) -> Call:
    return paper(algorithm_1, people, windows_at_once=people.rows + 2)


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
    Series("paper's Algorithm 2, K=32", "others", 10**7, lambda people: paper(algorithm_2, people, K)),
    Series("scipy's ks_2samp", "others", 10**7, ks_2samp),
    Series("fairlearn's demographic_parity_difference", "others", 10**6, demographic_parity_difference),
    Series("mcdp_interval, dkw", "intervals", 10**7, interval),
    Series("mcdp_interval, bootstrap of 100", "intervals", 10**7, partial(interval, **BOOTSTRAP)),
    Series("fairlearn's bootstrap of 100", "intervals", 10**5, fairlearn_bootstrap),
]
BY_NAME = {series.name: series for series in ALL}


def prepare(folder: Path, rows: int, name: str) -> Call:
    """A call that has read its rows and compiled its kernels, for the measurement of its memory."""
    people = People(folder, rows)
    few = People(folder, 1000)
    BY_NAME[name].prepare(few)()
    call = BY_NAME[name].prepare(people)
    people.scores, people.groups  # noqa: B018, reads them
    return call
