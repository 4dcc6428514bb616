"""Counts by DuckDB: files, globs, object stores, queries and relations, also larger than memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localparity._io._tables import Source, Table, as_group_columns, quote_name
from localparity._types import Compare, Criterion, ScoreRange
from localparity._validation import MOST_GROUPS, as_score_range, check_group_count
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._bounded import LEVEL, MAX_SCORES
from localparity.engines._refine import CellSelection, CountOptions, GroupCounts, count_source
from localparity.engines._sql import ScoreColumns, TableScores
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
    score_range: ScoreRange = (0.0, 1.0),
    epsilons: Sequence[float] = PAPER_EPSILONS,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    max_scores: int = MAX_SCORES,
    level: int = LEVEL,
    memory_limit: str | None = None,
) -> ScoreCounts:
    r"""Count the scores of a file, a glob, a query or a DuckDB relation without loading the rows.

    The counts are exact up to `max_scores` distinct scores. Beyond it they are on a grid of ``2**level``
    cells: every metric has bounds that always hold, and a further pass over the cells that decide MCDP makes
    it exact at `epsilons`.

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
    memory_limit : str, optional
        The memory DuckDB may use before it spills to disk, such as "2GB".

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
    >>> lp.mcdp(lp.engines.from_duckdb(path, score="p", group="sex"), epsilon=0.1)
    1.0
    """
    columns = ScoreColumns(score, as_group_columns(score, group), label, weight, as_score_range(score_range))
    options = CountOptions(epsilons, Comparison(criterion, compare), max_scores, level)
    return count_source(DuckDBScores(Table(source, memory_limit=memory_limit), columns), options)


class DuckDBScores(TableScores):
    """The rows of a file, a query or a relation as a source of counts."""

    def __init__(self, table: Table, columns: ScoreColumns) -> None:
        table.check([*columns.numbers.values(), *columns.group])
        super().__init__(columns, table.types)
        self._table = table

    def estimate_distinct(self) -> int:
        """Estimate the number of distinct scores, summed over groups and labels."""
        hashed = ", ".join(["s", *self._keys])
        query = f"SELECT approx_count_distinct(hash({hashed})) AS n FROM ({self._rows()})"
        return int(self._table.fetch(query)["n"][0])

    def _number(self, name: str) -> str:
        return self._table.number(name)

    def _quoted(self, name: str) -> str:
        return quote_name(name)

    def _floor(self, number: str) -> str:
        return f"floor({number})"

    def _not_a_number(self, name: str, row: int | None) -> ValueError:
        assert row is not None
        return self._table.not_a_number(name, row)

    def _rows(self) -> str:
        return f"SELECT {', '.join(self._selected())} FROM {self._table.rows}"

    def _count(self, place: str, within: CellSelection | None) -> list[GroupCounts]:
        if within is None:
            self._check_group_count()
        aggregates, where = self._aggregates(), ""
        if within is not None:
            where = f"WHERE {self._cell(within.level)} IN ({', '.join(map(str, within.numbers.tolist()))})"
        keys = ", ".join(["valid", *self._keys])
        counted = ", ".join(f"{expression} AS {name}" for name, expression in aggregates.items())
        lists = ", ".join(
            f"coalesce(list({name} ORDER BY place) FILTER (n > 0), []) AS {name}"
            for name in ("place", *aggregates)
        )
        found = self._table.fetch(
            f"WITH given AS ({self._rows()}), "
            f"checked AS (SELECT *, {self._valid()} AS valid FROM given {where}), "
            f"counted AS (SELECT {keys}, CASE WHEN valid THEN {place} END AS place, {counted} "
            f"FROM checked GROUP BY {keys}, place) "
            f"SELECT {keys}, {lists} FROM counted GROUP BY {keys}"
        )
        if within is None:
            self._check(found)
        counts = [
            self._group_counts(
                [found[name][row] for name in self._keys],
                {name: np.asarray(found[name][row]) for name in ("place", *aggregates)},
            )
            for row in range(found["valid"].size)
        ]
        return self._check_groups(counts) if within is None else counts

    def _check_group_count(self) -> None:
        """Raise a ValueError where the first rows have so many groups that a column must be an identifier."""
        groups = ", ".join(map(quote_name, self.columns.group))
        first = f"SELECT hash({groups}) AS h FROM {self._table.rows} LIMIT {2 * MOST_GROUPS}"
        found = self._table.fetch(f"SELECT count(DISTINCT h) AS n FROM ({first})")
        names = " and ".join(map(repr, self.columns.group))
        check_group_count(int(found["n"][0]), f"column {names}")

    def _check(self, found: dict[str, NDArray[Any]]) -> None:
        """Raise the error for a table without rows, or for the first invalid row."""
        if not found["valid"].size:
            raise ValueError(f"{self._table.name} has no rows")
        if found["valid"].all():
            return
        first = self._table.fetch(
            f"SELECT * FROM (SELECT row_number() OVER () AS row, * FROM ({self._rows()})) "
            f"WHERE NOT {self._valid()} ORDER BY row LIMIT 1"
        )
        row = {short: None if np.ma.is_masked(value[0]) else value[0] for short, value in first.items()}
        self._reject(row, int(first["row"][0]))
