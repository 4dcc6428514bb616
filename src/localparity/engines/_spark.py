"""Counts out of Spark, by data frame expressions alone: no Python runs on the workers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localparity._io._tables import delimiter_of, kind_of
from localparity._types import Compare, Criterion
from localparity._validation import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    held_ends,
    range_scale,
    require,
    score_resolution,
    unknown_name,
)
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._bounded import LEVEL, MAX_SCORES
from localparity.counts._weights import LIMB_BITS, LIMBS, carry, limb_scale
from localparity.engines._columns import ScoreColumns
from localparity.engines._refine import Parents, Tally, count_scores
from localparity.metrics._mcdp import PAPER_EPSILONS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def from_spark(
    frame: DataFrame,
    *,
    score: str,
    group: str | Sequence[str],
    label: str | None = None,
    weight: str | None = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    epsilons: Sequence[float] = PAPER_EPSILONS,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    max_scores: int = MAX_SCORES,
    level: int = LEVEL,
) -> ScoreCounts:
    """Count the scores of a Spark data frame on the cluster; only the counts reach this process.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        A row for each person.
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
        The epsilons at which MCDP comes out exact also on a grid.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    max_scores : int
        The most distinct scores, those of each group and label apart, that are counted as they are.
    level : int
        The grid has ``2**level`` cells.

    Returns
    -------
    ScoreCounts
        The same counts, bit for bit, as the other engines make of these rows.

    Examples
    --------
    >>> import localparity as lp
    >>> frame = spark.createDataFrame([(0.2, "f"), (0.9, "m")], ["p", "sex"])  # doctest: +SKIP
    >>> lp.engines.from_spark(frame, score="p", group="sex").mcdp(0.1)  # doctest: +SKIP
    1.0
    """
    columns = ScoreColumns.of(score, group, label, weight, score_range)
    return count_scores(
        SparkScores(frame, columns), max_scores, level, epsilons, Comparison(criterion, compare)
    )


class SparkScores:
    """The rows of a Spark data frame as a source of counts.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Where the rows are.
    columns : ScoreColumns
        Which of its columns are meant.
    """

    budget = MAX_SCORES

    def __init__(self, frame: DataFrame, columns: ScoreColumns) -> None:
        self._functions = require("pyspark.sql.functions", extra="spark")
        for name in columns.names:
            if name not in frame.columns:
                raise unknown_name("column in the data frame named", name, frame.columns)
        self._types = dict(frame.dtypes)
        self._columns, self._frame = columns, frame
        self.score_range = columns.score_range
        self._dtype = np.dtype("f4" if self._types[columns.score] == "float" else "f8")
        self.resolution = score_resolution(self._dtype, columns.score_range)
        self._groups = [f"g{i}" for i in range(len(columns.group))]
        self._rows = self._short_names()

    def on_grid(self, level: int, parents: Parents | None = None) -> list[Tally]:
        """Count the rows by cells of a level."""
        return self._count(self._cell(level), parents)

    def exactly(self, parents: Parents | None = None) -> list[Tally]:
        """Count the rows by their scores."""
        return self._count(self._functions.col("s"), parents)

    def distinct(self) -> int:
        """About how many different scores there are, those of each group and label apart."""
        functions = self._functions
        hashed = functions.xxhash64("s", "y", *self._groups)
        found = self._fetch(self._rows.agg(functions.approx_count_distinct(hashed, 0.02).alias("n")))
        return int(found["n"][0].as_py())

    def counted(self, at: Column, parents: Parents | None = None) -> DataFrame:
        """A row for each group, label and place, with what was counted there."""
        functions = self._functions
        rows = self._rows.withColumn("fits", self._fits())
        if parents is not None:
            rows = rows.where(self._cell(parents.level).isin(parents.numbers.tolist()))
        aggregates = [functions.min("s").alias("least"), functions.max("s").alias("most")]
        if self._columns.weight is None:
            aggregates.append(functions.count("*").alias("n"))
        else:
            weight = functions.when(functions.col("fits"), functions.col("w")).otherwise(0.0)
            aggregates.append(functions.count(functions.when(weight > 0.0, 1)).alias("n"))
            aggregates += self._limb_sums("w", weight) + self._limb_sums("q", weight * weight)
        where = functions.when(functions.col("fits"), at).alias("place")
        return rows.groupBy("fits", "y", *self._groups, where).agg(*aggregates)

    def _count(self, at: Column, parents: Parents | None) -> list[Tally]:
        found = self._fetch(self.counted(at, parents))
        if parents is None:
            self._check(found)
        codes = np.zeros(found.num_rows, dtype=np.int64)
        for name in ("y", *self._groups):
            values = found[name].combine_chunks().dictionary_encode(null_encoding="encode")
            codes = codes * len(values.dictionary) + values.indices.to_numpy(zero_copy_only=False)
        numbers = {
            name: found[name].to_numpy() for name in found.column_names if name not in ("y", *self._groups)
        }
        order = np.lexsort((numbers["place"], codes))
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        tallies = [self._tally(found, numbers, rows) for rows in np.split(order, starts[1:])]
        if parents is None:
            self._columns.check_groups(tallies)
        return tallies

    def _tally(self, found: Any, numbers: dict[str, NDArray[Any]], rows: NDArray[np.int64]) -> Tally:
        first = int(rows[0])
        key = self._columns.key(
            [found[name][first].as_py() for name in self._groups], found["y"][first].as_py()
        )
        rows = rows[numbers["n"][rows] > 0]
        units = None
        if self._columns.weight is not None:
            limbs = [[numbers[f"{kind}{limb}"][rows] for limb in range(LIMBS)] for kind in "wq"]
            units = carry(np.array(limbs, dtype=np.int64))
        least, most = (numbers[name][rows].astype(np.float64) for name in ("least", "most"))
        return Tally(key, numbers["place"][rows], numbers["n"][rows], least, most, units)

    def _short_names(self) -> DataFrame:
        """The columns under short names: score s, label y, weight w, groups g0, g1 and so on."""
        columns, functions = self._columns, self._functions
        selected = [(self._score() + 0.0).alias("s")]
        label = functions.lit(None).cast("double") if columns.label is None else self._number(columns.label)
        selected.append(label.alias("y"))
        if columns.weight is not None:
            selected.append(self._number(columns.weight).alias("w"))
        selected += [functions.col(_quoted(name)).alias(f"g{i}") for i, name in enumerate(columns.group)]
        return self._frame.select(*selected)

    def _score(self) -> Column:
        """The score; one beyond an end of the range, which its few bits cannot hold, at that end."""
        functions, score = self._functions, self._number(self._columns.score)
        held, (low, high) = held_ends(self.score_range, self._dtype), self.score_range
        if held == self.score_range:
            return score
        clipped = functions.least(functions.greatest(score, functions.lit(low)), functions.lit(high))
        found: Column = functions.when(score.between(*held), clipped).otherwise(score)
        return found

    def _number(self, name: str) -> Column:
        """A column as numbers, NULL where it is none; true and false are 1 and 0."""
        functions = self._functions
        number: Column = functions.expr(f"try_cast({_quoted(name)} AS DOUBLE)")
        if self._types[name] == "string":
            text = functions.lower(functions.col(_quoted(name)))
            number = functions.when(text == "true", 1.0).when(text == "false", 0.0).otherwise(number)
        return number

    def _fits(self) -> Column:
        """Whether a row is as it should be; NaN is greater than any number."""
        functions = self._functions
        low, high = self.score_range
        fits: Column = functions.col("s").between(low, high)
        for name, short in zip(self._columns.group, self._groups, strict=True):
            fits &= functions.col(short).isNotNull()
            if self._types[name] in ("float", "double"):
                fits &= ~functions.isnan(short)
        if self._columns.label is not None:
            fits &= functions.col("y").isin(0.0, 1.0)
        if self._columns.weight is not None:
            weight = functions.col("w")
            fits &= (weight == 0.0) | weight.between(LEAST_WEIGHT, MOST_WEIGHT)
        return fits.eqNullSafe(functions.lit(True))

    def _cell(self, level: int) -> Column:
        scale = range_scale(self.score_range)
        low, high = (scale * end for end in self.score_range)
        unit = (self._functions.col("s") * scale - low) / (high - low)
        number: Column = self._functions.ceil(unit * 2.0**level)
        return number

    def _limb_sums(self, prefix: str, number: Column) -> list[Column]:
        """The sums of a number's limbs, whole numbers that add up the same in any order."""
        functions, base = self._functions, 2.0**LIMB_BITS
        sums = []
        for limb in range(LIMBS):
            scaled = number * limb_scale(limb)
            # Spark's floor makes a whole number of 64 bits, to which the scaled number need not fit.
            cut = scaled - scaled % 1.0
            if limb < LIMBS - 1:
                cut = cut % base
            sums.append(functions.sum(cut.cast("long")).alias(f"{prefix}{limb}"))
        return sums

    def _check(self, found: Any) -> None:
        """Whether there are rows, and all of them fit; else the error for one that does not."""
        if not found.num_rows:
            raise ValueError("the data frame has no rows")
        if found["fits"].to_numpy().all():
            return
        columns = self._columns
        shorts = dict(zip(columns.group, self._groups, strict=True)) | {columns.score: "s"}
        shorts |= {name: short for name, short in ((columns.label, "y"), (columns.weight, "w")) if name}
        row = self._fetch(self._rows.where(~self._fits()).limit(1)).to_pylist()[0]
        values = {name: row[short] for name, short in shorts.items()}
        for name in columns.numbers:
            if values[name] is None:
                raise ValueError(f"column {name!r} has no value, or one that is no number, in some row")
        columns.complain(values, None)

    def _fetch(self, frame: DataFrame) -> Any:
        """The rows of a small frame as an Arrow table."""
        try:
            return frame.toArrow()
        except _errors() as error:
            raise ValueError(f"the data frame cannot be read: {_first_reason(str(error))}") from error


def read_spark(path: str) -> DataFrame:
    """A data frame of files that Spark reads; a path without an ending is a folder of Parquet files.

    Parameters
    ----------
    path : str
        A file, a folder or a glob of CSV, Parquet or JSON lines, local or in a store that Spark reaches.

    Returns
    -------
    pyspark.sql.DataFrame
        Of a CSV, all columns are text.
    """
    session = _session()
    kind = kind_of([path]) if re.search(r"\.\w+$", path) else "parquet"
    try:
        if kind in ("parquet", "pq"):
            return session.read.parquet(path)
        if kind in ("json", "jsonl", "ndjson"):
            return session.read.json(path, multiLine=kind == "json", mode="FAILFAST")
        first = session.read.text(path).first()
        if first is None:
            raise ValueError(f"{path} is empty")
        delimiter = delimiter_of(first[0], kind)
        return session.read.csv(path, header=True, sep=delimiter, escape='"', mode="FAILFAST")
    except _errors() as error:
        raise ValueError(f"{path} cannot be read: {_first_reason(str(error))}") from error


def _session() -> SparkSession:
    """The session that runs, or a new one."""
    sql = require("pyspark.sql", extra="spark")
    try:
        session: SparkSession = sql.SparkSession.builder.appName("localparity").getOrCreate()
    except _errors() as error:
        raise ImportError(
            f"Spark does not start; is there a Java runtime? {_first_reason(str(error))}"
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def _errors() -> tuple[type[Exception], ...]:
    """What Spark raises: its own errors, and those of its Java side that it leaves as they are."""
    ours, theirs = require("pyspark.errors", extra="spark"), require("py4j.protocol", extra="spark")
    return ours.PySparkException, theirs.Py4JError


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _first_reason(message: str) -> str:
    """Of an engine's long message the line that has its code, such as [PATH_NOT_FOUND], or else the first."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    coded = (line[line.index("[") :] for line in lines if re.search(r"\[[A-Z_]+[A-Z_.]*\] ", line))
    return next(coded, lines[0])
