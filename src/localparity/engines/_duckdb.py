"""Counts out of DuckDB: files, globs, object stores, queries and relations, larger than memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localparity._io._tables import Source, Table, quote_name
from localparity._types import Compare, Criterion
from localparity._validation import (
    LEAST_WEIGHT,
    MOST_GROUPS,
    MOST_WEIGHT,
    check_group_count,
    held_ends,
    range_scale,
    score_resolution,
)
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._bounded import LEVEL, MAX_SCORES
from localparity.counts._weights import LIMB_BITS, LIMBS, carry, limb_scale
from localparity.engines._columns import ScoreColumns
from localparity.engines._refine import Parents, Tally, count_scores
from localparity.metrics._mcdp import PAPER_EPSILONS

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation


def from_duckdb(
    source: Source | DuckDBPyRelation,
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
    memory_limit: str | None = None,
) -> ScoreCounts:
    r"""Count the scores of a file, a glob, a query or a DuckDB relation, without the rows being in memory.

    The counts are exact while the distinct scores fit `max_scores`. Beyond it they are on a grid of
    ``2**level`` cells, every metric has certified bounds, and MCDP is exact at `epsilons`: a second pass
    reads again the cells that decide it.

    Parameters
    ----------
    source : path, sequence of paths, query or relation
        CSV, Parquet or JSON lines, also in an object store that DuckDB reaches; ``"SELECT ..."``; or a
        ``DuckDBPyRelation``, which keeps its own connection and settings.
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
    memory_limit : str, optional
        How much memory DuckDB may use before it writes to disk, such as "2GB".

    Returns
    -------
    ScoreCounts
        The counts by group, and by label where there is one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import localparity as lp
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = path.write_text("p,sex\n0.2,f\n0.9,m\n0.4,f\n")
    >>> lp.engines.from_duckdb(path, score="p", group="sex").mcdp(0.1)
    1.0
    """
    columns = ScoreColumns.of(score, group, label, weight, score_range)
    table = Table(source, memory_limit=memory_limit)
    return count_scores(
        DuckDBScores(table, columns), max_scores, level, epsilons, Comparison(criterion, compare)
    )


class DuckDBScores:
    """The rows of a table as a source of counts.

    Parameters
    ----------
    table : Table
        Where the rows are.
    columns : ScoreColumns
        Which of its columns are meant.
    """

    budget = MAX_SCORES

    def __init__(self, table: Table, columns: ScoreColumns) -> None:
        table.check(columns.names)
        self._table, self._columns = table, columns
        self.score_range = columns.score_range
        self._dtype = np.dtype("f4" if table.types[columns.score] == "FLOAT" else "f8")
        self.resolution = score_resolution(self._dtype, columns.score_range)
        self._groups = [f"g{i}" for i in range(len(columns.group))]

    def on_grid(self, level: int, parents: Parents | None = None) -> list[Tally]:
        """Count the rows by cells of a level."""
        if parents is None:
            self._check_group_count()
        return self._count(self._cell(level), parents)

    def exactly(self, parents: Parents | None = None) -> list[Tally]:
        """Count the rows by their scores."""
        return self._count("CAST(s AS DOUBLE) + 0.0", parents)

    def distinct(self) -> int:
        """About how many different scores there are, those of each group and label apart."""
        hashed = ", ".join(["s", "y", *self._groups])
        query = f"SELECT approx_count_distinct(hash({hashed})) AS n FROM ({self._rows()})"
        return int(self._table.fetch(query)["n"][0])

    def _rows(self) -> str:
        """The columns under short names: score s, label y, weight w, groups g0, g1 and so on."""
        columns, table = self._columns, self._table
        selected = [f"{self._score()} AS s"]
        selected.append(f"{table.number(columns.label)} AS y" if columns.label else "NULL AS y")
        if columns.weight:
            selected.append(f"CAST({table.number(columns.weight)} AS DOUBLE) AS w")
        selected += [f"{quote_name(name)} AS g{i}" for i, name in enumerate(columns.group)]
        return f"SELECT {', '.join(selected)} FROM {table.rows}"

    def _score(self) -> str:
        """The score; one beyond an end of the range, which its few bits cannot hold, at that end."""
        score, held = self._table.number(self._columns.score), held_ends(self.score_range, self._dtype)
        if held == self.score_range:
            return score
        (lowest, highest), (low, high) = held, self.score_range
        score = f"CAST({score} AS DOUBLE)"
        inside = f"{score} BETWEEN {lowest!r} AND {highest!r}"
        return f"CASE WHEN {inside} THEN least(greatest({score}, {low!r}), {high!r}) ELSE {score} END"

    def _fits(self) -> str:
        """Whether a row is as it should be; NaN is greater than any number."""
        low, high = self.score_range
        conditions = [f"s >= {low!r} AND s <= {high!r}"]
        for i, name in enumerate(self._columns.group):
            nan = self._table.types[name] in ("FLOAT", "DOUBLE")
            conditions.append(f"g{i} IS NOT NULL" + (f" AND NOT isnan(g{i})" if nan else ""))
        if self._columns.label:
            conditions.append("y IN (0, 1)")
        if self._columns.weight:
            conditions.append(f"(w = 0 OR (w >= {LEAST_WEIGHT!r} AND w <= {MOST_WEIGHT!r}))")
        return f"coalesce({' AND '.join(conditions)}, false)"

    def _cell(self, level: int) -> str:
        scale = range_scale(self.score_range)
        low, high = (scale * end for end in self.score_range)
        unit = "CAST(s AS DOUBLE)" if scale == 1.0 else f"(CAST(s AS DOUBLE) * {scale!r})"
        if (low, high) != (0.0, 1.0):
            unit = f"(({unit} - {low!r}) / {high - low!r})"
        return f"CAST(ceil({unit} * {2.0**level!r}) AS {'INTEGER' if level < 31 else 'BIGINT'})"

    def _count(self, at: str, parents: Parents | None) -> list[Tally]:
        weighted = self._columns.weight is not None
        aggregates = {"n": "count(*)", "least": "min(s)", "most": "max(s)"}
        if weighted:
            weight = "(CASE WHEN fits THEN w ELSE 0.0 END)"
            aggregates |= {"n": "count(*) FILTER (w > 0)"}
            aggregates |= _limb_sums("w", weight) | _limb_sums("q", f"{weight} * {weight}")
        within = ""
        if parents is not None:
            numbers = ", ".join(map(str, parents.numbers.tolist()))
            within = f"WHERE {self._cell(parents.level)} IN ({numbers})"
        keys = ", ".join(["fits", "y", *self._groups])
        counted = ", ".join(f"{expression} AS {name}" for name, expression in aggregates.items())
        lists = ", ".join(
            f"coalesce(list({name} ORDER BY place) FILTER (n > 0), []) AS {name}"
            for name in ("place", *aggregates)
        )
        found = self._table.fetch(
            f"WITH given AS ({self._rows()}), "
            f"checked AS (SELECT *, {self._fits()} AS fits FROM given {within}), "
            f"counted AS (SELECT {keys}, CASE WHEN fits THEN {at} END AS place, {counted} "
            f"FROM checked GROUP BY {keys}, place) "
            f"SELECT {keys}, {lists} FROM counted GROUP BY {keys}"
        )
        if parents is None:
            self._check(found)
        tallies = [self._tally(found, key, weighted) for key in range(found["fits"].size)]
        if parents is None:
            self._columns.check_groups(tallies)
        return tallies

    def _tally(self, found: dict[str, NDArray[Any]], key: int, weighted: bool) -> Tally:
        label = found["y"][key] if self._columns.label else None
        units = None
        if weighted:
            limbs = [[found[f"{kind}{limb}"][key] for limb in range(LIMBS)] for kind in "wq"]
            units = carry(np.array(limbs, dtype=np.int64))
        return Tally(
            self._columns.key([found[name][key] for name in self._groups], label),
            np.asarray(found["place"][key]),
            np.asarray(found["n"][key], dtype=np.int64),
            np.asarray(found["least"][key], dtype=np.float64) + 0.0,
            np.asarray(found["most"][key], dtype=np.float64) + 0.0,
            units,
        )

    def _check_group_count(self) -> None:
        """Whether the first rows have so many groups that a column must name people."""
        groups = ", ".join(quote_name(name) for name in self._columns.group)
        first = f"SELECT hash({groups}) AS h FROM {self._table.rows} LIMIT {2 * MOST_GROUPS}"
        found = self._table.fetch(f"SELECT count(DISTINCT h) AS n FROM ({first})")
        names = " and ".join(map(repr, self._columns.group))
        check_group_count(int(found["n"][0]), f"column {names}")

    def _check(self, found: dict[str, NDArray[Any]]) -> None:
        """Whether there are rows, and all of them fit; else the error for the first that does not."""
        if not found["fits"].size:
            raise self._table.no_rows()
        if found["fits"].all():
            return
        names = dict(zip(self._columns.group, self._groups, strict=True)) | {self._columns.score: "s"}
        names |= {
            name: short for name, short in ((self._columns.label, "y"), (self._columns.weight, "w")) if name
        }
        first = self._table.fetch(
            f"SELECT * FROM (SELECT row_number() OVER () AS row, * FROM ({self._rows()})) "
            f"WHERE NOT {self._fits()} ORDER BY row LIMIT 1"
        )
        number = int(first["row"][0])
        values = {
            name: None if np.ma.is_masked(first[short][0]) else first[short][0]
            for name, short in names.items()
        }
        for name in self._columns.numbers:
            if values[name] is None:
                raise self._table.no_number(name, number)
        self._columns.complain(values, number)


def _limb_sums(prefix: str, number: str) -> dict[str, str]:
    """The sums of a number's limbs, which are whole numbers and so do not depend on the order of the rows."""
    sums = {}
    for limb in range(LIMBS):
        scaled = f"({number} * {limb_scale(limb)!r})"
        cut = f"floor({scaled})"
        if limb < LIMBS - 1:
            cut += f" - floor({scaled} / {2.0**LIMB_BITS!r}) * {2.0**LIMB_BITS!r}"
        sums[f"{prefix}{limb}"] = f"CAST(sum(CAST({cut} AS BIGINT)) AS BIGINT)"
    return sums
