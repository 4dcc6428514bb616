"""Counts by DuckDB: files, globs, object stores, queries and relations, also larger than memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localparity._io._duckdb import quote_name, quote_text
from localparity._io._table import Source, Table, as_group_columns, as_table
from localparity._scale import representable_range
from localparity._types import Compare, Criterion, ScoreRange
from localparity._validation import MOST_GROUPS, InputError, as_score_range, check_group_count
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._coarsen import MAX_SCORES
from localparity.counts._weights import LIMBS
from localparity.engines import _duckdb_stream as _streamed
from localparity.engines._duckdb_stream import HeldRows, InvalidRowError, RowStream
from localparity.engines._table import Counted, ScoreColumns, SqlScores
from localparity.engines.protocol import (
    LEVEL,
    CellSelection,
    CellTable,
    CountOptions,
    count_source,
    rows_changed,
)
from localparity.metrics._mcdp import PAPER_EPSILONS

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

_LISTED_TYPES = re.compile(
    r"VARCHAR|BOOLEAN|DATE|TIMESTAMP|FLOAT|DOUBLE|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DECIMAL\(.*\)|ENUM\(.*\)"
)
_MOST_KEYS = 64
_MOST_COUNTED = 2**22
_MOST_FIRST = 2**21


def from_duckdb(
    source: Source | DuckDBPyRelation | Table,
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
    allow_remote: bool = False,
) -> ScoreCounts:
    r"""Count the scores of a file, a glob, a query or a DuckDB relation without loading the rows.

    The rows stream through this process in batches, and are counted in about the time that DuckDB takes to
    filter them. The counts are exact up to `max_scores` distinct scores. Beyond it they are on a grid of
    ``2**level`` cells: every metric has bounds that always hold, and the rows in the cells that decide MCDP
    are counted again, which makes it exact at `epsilons`.

    Parameters
    ----------
    source : path, sequence of paths, query, relation or table
        CSV, Parquet or JSON lines, also in an object store that DuckDB reaches; ``"SELECT ..."``; a
        ``DuckDBPyRelation``, which keeps its own connection and settings; or what `open_table` returns.
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
        The grid has ``2**level`` cells. More of them bring the bounds at other epsilons closer together, and
        take longer to count and to resample.
    memory_limit : str, optional
        The memory DuckDB may use before it spills to disk, such as "2GB".
    allow_remote : bool
        Whether DuckDB may read from other machines, for which it installs extensions.

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
    table = as_table(source, memory_limit=memory_limit, allow_remote=allow_remote)
    counts = count_source(DuckDBScores(table, columns, options), options)
    table.check_scores(score, columns.score_range)
    table.warn(counts.groups)
    return counts


class DuckDBScores(SqlScores):
    """The rows of a file, a query or a relation as a source of counts.

    Rows stream out of DuckDB into loops that count them. What these cannot do, DuckDB does by GROUP BY: many
    groups, groups of unusual types, scores that are many and mostly ties, and more rows to hold than fit.
    """

    max_refined = 2**13

    def __init__(self, table: Table, columns: ScoreColumns, options: CountOptions) -> None:
        table.check([*columns.numbers.values(), *columns.group])
        table.normalise(columns.group)
        super().__init__(columns, table.types)
        self._table, self._options = table, options
        self._stream: RowStream | None = None
        self._first: HeldRows | None = None
        self._latest: tuple[int, CellTable] | None = None
        self._held: HeldRows | None = None

    def count_cells(self, level: int, within: CellSelection | None = None) -> CellTable:
        """Count the rows by the cells of a grid."""
        if within is None:
            table = self._count_all(level)
        elif (held := self._hold(within)) is not None:
            return self._with_keys(held.count_cells(level, within))
        else:
            table = super().count_cells(level, within)
        self._latest = level, table
        return table

    def count_scores(self, within: CellSelection | None = None) -> ScoreCounts:
        """Count the rows by their scores."""
        held = self._held if within is None else self._hold(within)
        if held is None:
            return super().count_scores(within)
        atoms, keys = held.count_scores(), self._keys or []
        return ScoreCounts({key: atoms[key] for key in keys}, self.score_range, self.resolution)

    def estimate_distinct(self) -> int:
        """Estimate the number of distinct scores, summed over groups and labels."""
        at_least = 0 if self._first is None else self._first.fewest_distinct()
        if self._held is not None or at_least > self._options.max_scores:
            return at_least
        hashed = ", ".join(["s", *self._short_keys])
        query = f"SELECT approx_count_distinct(hash({hashed})) AS n FROM ({self._rows()})"
        return int(self._table.fetch(query)["n"][0])

    def _count_all(self, level: int) -> CellTable:
        """Count all rows; the groups are those of the first rows, until a row of another one streams by."""
        for limit in (f"LIMIT {2 * MOST_GROUPS}", ""):
            self._stream = self._stream_of(self._groups(limit), level)
            if self._stream is None:
                return super().count_cells(level)
            try:
                table = self._count_stream(self._stream)
            except InvalidRowError:
                continue
            rows = dict(zip(table.keys, table.rows.sum(axis=0).tolist(), strict=True))
            keys = [key for key in table.keys if rows[key] or key in self._stream.weightless]
            self._note_groups(keys, {group for group, label in keys if rows[group, label]})
            return self._with_keys(table)
        raise self._changed()

    def _with_keys(self, table: CellTable) -> CellTable:
        """A table of a stream, whose groups need not all occur, with the groups and labels that do."""
        keys = self._keys or []
        places = [table.keys.index(key) for key in keys]
        return replace(table, keys=keys, entries=np.ascontiguousarray(table.entries[:, places]))

    def _count_stream(self, stream: RowStream) -> CellTable:
        """Count the rows of a stream by cells; few rows are held from then on."""
        level = stream.level
        self._first, table = stream.count(min(5 * self._options.max_scores // 4, _MOST_FIRST))
        if table is None:
            self._held = self._first
            return self._first.count_cells(level, CellSelection(level, np.arange(2**level + 1)))
        return table

    def _hold(self, within: CellSelection) -> HeldRows | None:
        """The rows in some cells, held in memory from now on; None where they are too many."""
        if self._held is not None:
            self._held = self._held.within(within)
            return self._held
        if self._stream is None or self._latest is None or self._latest[0] != within.level:
            return None
        table = self._latest[1]
        inside = table.at(np.isin(table.numbers, within.numbers))
        rows = int(inside.rows.sum())
        if rows > _streamed.MOST_HELD:
            return None
        lowest, highest = inside.lowest.min(initial=np.inf), inside.highest.max(initial=-np.inf)
        self._held = self._stream.find(within, self._between(lowest, highest))
        if self._held.size != rows:
            raise self._changed()
        return self._held

    def _changed(self) -> ValueError:
        return rows_changed(self._table.name)

    def _between(self, lowest: float, highest: float) -> str:
        """The condition that a score lies between two scores, as statistics of a file can tell."""
        if representable_range(self.score_range, self._dtype) != self.score_range:
            return ""
        kind = "FLOAT" if self._dtype == np.float32 else "DOUBLE"
        low, high = (f"CAST('{float(end)!r}' AS {kind})" for end in (lowest, highest))
        return f" WHERE {self._number(self.columns.score)} BETWEEN {low} AND {high}"

    def _groups(self, limit: str) -> dict[str, NDArray[Any]]:
        """The values of the group columns that occur together, and their texts."""
        shorts = [*self.columns.groups]
        texts = [f"CAST({short} AS VARCHAR) AS {short}_text" for short in shorts]
        found = self._fetch_valid(
            lambda: (
                f"SELECT DISTINCT {self._valid()} AS valid, {', '.join([*shorts, *texts])} "
                f"FROM ({self._rows()} {limit})"
            )
        )
        if limit:
            names = " and ".join(map(repr, self.columns.group))
            check_group_count(found["valid"].size, f"column {names}")
        return found

    def _stream_of(self, groups: dict[str, NDArray[Any]], level: int) -> RowStream | None:
        """The stream of all rows, given the groups; None where they are too many or of unusual types."""
        selected, values = [f"{self._number(self.columns.score)} AS s"], []
        for short, name in self.columns.groups.items():
            column = dict(zip(groups[f"{short}_text"].tolist(), groups[short].tolist(), strict=True))
            kind = self._table.types[name]
            if not _LISTED_TYPES.fullmatch(kind) or any("\0" in text for text in column):
                return None
            listed = ", ".join(f"CAST({quote_text(text)} AS {kind})" for text in column)
            selected.append(_position(listed, quote_name(name), short))
            values.append(list(column.values()))
        sizes = [len(column) for column in values]
        labels: list[int | None] = [None]
        if self.columns.label:
            selected.append(_position("0.0::DOUBLE, 1.0::DOUBLE", self._number(self.columns.label), "y"))
            sizes, labels = [*sizes, 2], [0, 1]
        if self.columns.weight:
            selected.append(f"CAST({self._number(self.columns.weight)} AS DOUBLE) AS w")
        counted = prod(sizes) * 2**level * (2 * LIMBS if self.columns.weight else 1)
        if prod(sizes) > _MOST_KEYS or counted > _MOST_COUNTED:
            return None
        keys = [self._key(label, *group) for group in product(*values) for label in labels]
        query = f"SELECT {', '.join(selected)} FROM {self._table.rows}"
        return RowStream(
            lambda where: self._table.stream(query + where), keys, sizes, self.score_range, level
        )

    def _number(self, name: str) -> str:
        return self._table.number(name)

    def _group(self, name: str) -> str:
        return self._table.group(name)

    def _floor(self, number: str) -> str:
        return f"floor({number})"

    def _not_a_number(self, name: str, row: int | None) -> InputError:
        assert row is not None
        return self._table.not_a_number(name, row)

    def _rows(self) -> str:
        return f"SELECT {', '.join(self._selected())} FROM {self._table.rows}"

    def _count(self, place: str, within: CellSelection | None) -> Counted:
        aggregates, where = self._aggregates(), ""
        if within is not None:
            where = f"WHERE {self._cell(within.level)} IN ({', '.join(map(str, within.numbers.tolist()))})"
        keys = ", ".join(["valid", *self._short_keys])
        counted = ", ".join(f"{expression} AS {name}" for name, expression in aggregates.items())
        lists = ", ".join(
            f"coalesce(list({name} ORDER BY place) FILTER (n > 0), []) AS {name}"
            for name in ("place", *aggregates)
        )

        def query() -> str:
            return (
                f"WITH given AS ({self._rows()}), "
                f"checked AS (SELECT *, {self._valid()} AS valid FROM given {where}), "
                f"counted AS (SELECT {keys}, CASE WHEN valid THEN {place} END AS place, {counted} "
                f"FROM checked GROUP BY {keys}, place) "
                f"SELECT {keys}, {lists} FROM counted GROUP BY {keys}"
            )

        found = self._fetch_valid(query) if within is None else self._table.fetch(query())
        by_row = list(zip(*(found[name] for name in self._short_keys), strict=True))
        columns = {
            name: np.concatenate([np.empty(0, int), *map(np.asarray, found[name])])
            for name in ("place", *aggregates)
        }
        codes = np.repeat(np.arange(len(by_row)), [len(places) for places in found["place"]])
        return Counted([self._key(*key) for key in by_row], codes, columns)

    def _fetch_valid(self, query: Callable[[], str]) -> dict[str, NDArray[Any]]:
        """The result of a query that says which rows are valid, which all must be, however they are read."""
        found = self._table.fetch(query())
        if not found["valid"].all() and self._table.repair(self.columns.numbers.values()):
            found = self._table.fetch(query())
        self._check(found)
        return found

    def _check(self, found: dict[str, NDArray[Any]]) -> None:
        """Raise the error for a table without rows, or for the first invalid row."""
        if not found["valid"].size:
            raise InputError("has no rows", file=self._table.name)
        if found["valid"].all():
            return
        first = self._table.fetch(
            f"SELECT * FROM (SELECT row_number() OVER () AS row, * FROM ({self._rows()})) "
            f"WHERE NOT {self._valid()} ORDER BY row LIMIT 1"
        )
        if not first["row"].size:  # statistics that lie make DuckDB skip rows that it has just counted
            raise InputError("is damaged: two reads of it differ", file=self._table.name)
        row = {short: None if np.ma.is_masked(value[0]) else value[0] for short, value in first.items()}
        self._reject(row, int(first["row"][0]))


def _position(listed: str, column: str, name: str) -> str:
    """The SQL of a column's places, from 1 on, among some values; NULL where a value is another one."""
    return f"CAST(list_position([{listed}], {column}) AS UTINYINT) AS {name}"
