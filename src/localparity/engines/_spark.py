"""Counts by Spark, through data frame expressions alone: no Python runs on the workers."""

from __future__ import annotations

import os
import re
import subprocess
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from localparity._io._duckdb import check_remote
from localparity._io._readers import delimiter_of, kind_of
from localparity._io._table import as_group_columns
from localparity._types import Compare, Criterion, ScoreRange
from localparity._validation import InputError, as_score_range, require, unknown_name
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._coarsen import MAX_SCORES
from localparity.engines._table import Counted, ScoreColumns, SqlScores, short_reason
from localparity.engines.protocol import LEVEL, CellSelection, CountOptions, count_source
from localparity.metrics._mcdp import PAPER_EPSILONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def from_spark(
    frame: DataFrame,
    *,
    score: str,
    group: str | Sequence[str],
    label: str | None = None,
    weight: str | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    epsilons: Sequence[float] = PAPER_EPSILONS,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    max_scores: int = MAX_SCORES,
    level: int = LEVEL,
) -> ScoreCounts:
    """Count the scores of a Spark data frame on the cluster; only the counts reach this process.

    The counts are exact up to `max_scores` distinct scores. Beyond it they are on a grid of ``2**level``
    cells: every metric has bounds that always hold, and a further pass over the cells that decide MCDP makes
    it exact at `epsilons`.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        One row for each person.
    score : str
        The column of the scores.
    group : str or sequence of str
        The column of the groups; of several, the groups are the combinations that occur.
    label : str, optional
        The column of the labels, 0 and 1.
    weight : str, optional
        The column of the weights.
    score_range : tuple of float
        The lowest and the highest score there can be.
    epsilons : sequence of float
        The half-widths of windows at which MCDP is exact, also on a grid.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    max_scores : int
        The most distinct scores, summed over groups and labels, that are counted one by one.
    level : int
        The grid has ``2**level`` cells.

    Returns
    -------
    ScoreCounts
        The counts by group, and by label where there is one. Up to `max_scores`, and for MCDP at `epsilons`
        beyond it, all engines give the same bits.

    Examples
    --------
    >>> import localparity as lp
    >>> frame = spark.createDataFrame([(0.2, "f"), (0.9, "m")], ["p", "sex"])  # doctest: +SKIP
    >>> counts = lp.engines.from_spark(frame, score="p", group="sex")  # doctest: +SKIP
    >>> lp.mcdp(counts, epsilon=0.1)  # doctest: +SKIP
    1.0
    """
    columns = ScoreColumns(score, as_group_columns(score, group), label, weight, as_score_range(score_range))
    options = CountOptions(epsilons, Comparison(criterion, compare), max_scores, level)
    return count_source(SparkScores(frame, columns), options)


class SparkScores(SqlScores):
    """The rows of a Spark data frame as a source of counts."""

    def __init__(self, frame: DataFrame, columns: ScoreColumns) -> None:
        self._functions = require("pyspark.sql.functions", extra="spark")
        for name in (*columns.numbers.values(), *columns.group):
            if name not in frame.columns:
                raise unknown_name("column in the data frame named", name, frame.columns)
        super().__init__(columns, dict(frame.dtypes))
        self._rows = frame.selectExpr(*self._selected())

    def estimate_distinct(self) -> int:
        """Estimate the number of distinct scores, summed over groups and labels."""
        hashed = self._functions.xxhash64("s", *self._short_keys)
        counted = self._rows.agg(self._functions.approx_count_distinct(hashed, 0.02).alias("n"))
        return int(self._fetch(counted)["n"][0].as_py())

    def counted(self, place: str, within: CellSelection | None = None) -> DataFrame:
        """A row for each group, label and place, with what was counted there."""
        expr = self._functions.expr
        rows = self._rows.withColumn("valid", expr(self._valid()))
        if within is not None:
            rows = rows.where(expr(self._cell(within.level)).isin(within.numbers.tolist()))
        aggregates = [expr(expression).alias(name) for name, expression in self._aggregates().items()]
        where = expr(f"CASE WHEN valid THEN {place} END").alias("place")
        return rows.groupBy("valid", *self._short_keys, where).agg(*aggregates)

    def _number(self, name: str) -> str:
        number = f"try_cast({self._quoted(name)} AS DOUBLE)"
        if self._types[name] != "STRING":
            return number
        text = f"lower({self._quoted(name)})"
        return f"CASE {text} WHEN 'true' THEN 1.0D WHEN 'false' THEN 0.0D ELSE {number} END"

    def _group(self, name: str) -> str:
        return self._quoted(name)

    def _quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def _floor(self, number: str) -> str:
        # Spark's own floor returns 64 bits, which the number need not fit.
        return f"({number} - {number} % 1.0D)"

    def _count(self, place: str, within: CellSelection | None) -> Counted:
        found = self._fetch(self.counted(place, within))
        if within is None:
            self._check(found)
        return self._counted(found)

    def _check(self, found: Any) -> None:
        """Raise the error for a data frame without rows, or for an invalid row."""
        if not found.num_rows:
            raise InputError("the data frame has no rows")
        if not found["valid"].to_numpy().all():
            self._reject(self._fetch(self._rows.where(f"NOT {self._valid()}").limit(1)).to_pylist()[0], None)

    def _fetch(self, frame: DataFrame) -> Any:
        """The rows of a small frame as an Arrow table."""
        try:
            return frame.toArrow()
        except _errors() as error:
            raise InputError(f"the data frame cannot be read: {short_reason(error)}") from error


def read_spark(path: str, *, allow_remote: bool = False) -> DataFrame:
    """Read a file, a folder or a glob with Spark; all columns of a CSV are text.

    A path without an ending is a folder of Parquet files.
    """
    check_remote([path], allow_remote=allow_remote)
    session = _session()
    kind = kind_of([path]) if re.search(r"\.\w+$", path) else "parquet"
    try:
        if kind in ("parquet", "pq"):
            return session.read.parquet(path)
        if kind in ("json", "jsonl", "ndjson"):
            return session.read.json(path, multiLine=kind == "json", mode="FAILFAST")
        first = session.read.text(path).first()
        if first is None:
            raise InputError("is empty", file=path)
        delimiter = delimiter_of(first[0], kind)
        return session.read.csv(path, header=True, sep=delimiter, escape='"', mode="FAILFAST")
    except _errors() as error:
        raise InputError(f"cannot be read: {short_reason(error)}", file=path) from error


def _session() -> SparkSession:
    """The running session, or a new one, whose Java side prints nothing on our standard error."""
    sql, spark = require("pyspark.sql", extra="spark"), require("pyspark", extra="spark")
    builder = sql.SparkSession.builder.appName("localparity")
    try:
        if "SPARK_REMOTE" not in os.environ and vars(spark.SparkContext)["_active_spark_context"] is None:
            _start(spark)
        session: SparkSession = builder.getOrCreate()
    except _errors() as error:
        raise ImportError(f"Spark does not start; is Java installed? {short_reason(error)}") from error
    return session


def _start(spark: Any) -> None:
    """Start Spark; its warnings, logs and progress bars would stand between the lines of a command."""
    gateways = require("pyspark.java_gateway", extra="spark")
    settings = spark.SparkConf().setAppName("localparity").set("spark.ui.showConsoleProgress", "false")
    # The Java side of a session that was stopped goes on.
    gateway = vars(spark.SparkContext)["_gateway"] or gateways.launch_gateway(
        settings, {"stderr": subprocess.DEVNULL}
    )
    with warnings.catch_warnings():  # that it is not tested with this version of pandas, which is not used
        warnings.simplefilter("ignore")
        spark.SparkContext(conf=settings, gateway=gateway).setLogLevel("ERROR")


def _errors() -> tuple[type[Exception], ...]:
    """The errors of Spark and of its Java side."""
    ours, theirs = require("pyspark.errors", extra="spark"), require("py4j.protocol", extra="spark")
    return ours.PySparkException, theirs.Py4JError
