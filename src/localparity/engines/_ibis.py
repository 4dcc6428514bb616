"""Counts by a warehouse, through Ibis: its own SQL engine counts, and only counts leave it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from localparity._io._files import limit_work, private_folder
from localparity._io._table import as_group_columns
from localparity._scale import range_scale, representable_range
from localparity._text import shown_address
from localparity._types import Compare, Criterion, ScoreRange
from localparity._validation import (
    LEAST_WEIGHT,
    MOST_GROUPS,
    MOST_WEIGHT,
    InputError,
    as_score_range,
    check_group_count,
    is_missing,
    require,
    setting,
    unknown_name,
)
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._coarsen import MAX_SCORES
from localparity.counts._weights import LIMB_BITS, limbs_of
from localparity.engines._table import Counted, ScoreColumns, TableScores, short_reason
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
    from ibis.expr.types import Table


MOST_ROWS = 2**16
"""The most rows that a query returns: a page of counts."""

_MOST_LISTED = 2**12
"""The most numbers in the list of a condition, for which warehouses have limits."""

_WHOLE = 2.0**53
"""Floats from here on are whole numbers."""

_DRIVERS = ("duckdb", "psycopg", "sqlite3")
"""Modules whose `Error` is that of a database."""


def from_ibis(
    table: Table,
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
    """Count the scores of a table where it is: in PostgreSQL, BigQuery, Snowflake or wherever Ibis reaches.

    The database counts by ``GROUP BY``. Nothing is written to it, and only counts leave it, in pages of at
    most 65,536; of invalid rows, one, which the error is about. The counts are exact up to `max_scores`
    distinct scores. Beyond it they are on a grid of ``2**level`` cells: every metric has bounds that always
    hold, and further queries about the cells that decide MCDP make it exact at `epsilons`.

    Parameters
    ----------
    table : ibis.Table
        One row for each person: a table, a view or any Ibis expression of one.
    score : str
        The column of the scores, of a numeric type.
    group : str or sequence of str
        The column of the groups; of several, the groups are the combinations that occur.
    label : str, optional
        The column of the labels, 0 and 1, or booleans.
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
    >>> import ibis
    >>> import pyarrow
    >>> import localparity as lp
    >>> table = ibis.memtable(pyarrow.table({"p": [0.2, 0.9, 0.4], "sex": ["f", "m", "f"]}))
    >>> lp.mcdp(lp.engines.from_ibis(table, score="p", group="sex"), epsilon=0.1)
    1.0
    """
    columns = ScoreColumns(score, as_group_columns(score, group), label, weight, as_score_range(score_range))
    options = CountOptions(epsilons, Comparison(criterion, compare), max_scores, level)
    return count_source(IbisScores(table, columns, options), options)


class IbisScores(TableScores):
    """The rows of an Ibis table as a source of counts.

    Counts are fetched in pages, in the order of the places: a page that is full ends before its last place,
    at which the next one begins.
    """

    max_refined = 2**14

    def __init__(self, table: Table, columns: ScoreColumns, options: CountOptions) -> None:
        self._ibis = require("ibis", extra="warehouse")
        for name in (*columns.numbers.values(), *columns.group):
            if name not in table.columns:
                raise unknown_name("column in the table named", name, table.columns)
        self._table, self._most = table, options.max_scores
        # A column of SQLite may hold anything, whatever its type.
        self._untyped = self._ibis.get_backend(table).name == "sqlite"
        kind = table.schema()[columns.score]
        super().__init__(columns, np.dtype("f4" if kind.is_float32() else "f8"))
        selected = table.select(**self._selected())
        self._rows = selected.mutate(valid=self._valid(selected))
        self._people: dict[Any, int] | None = None

    def count_cells(self, level: int, within: CellSelection | None = None) -> CellTable:
        """Count the rows by the cells of a grid."""
        return self._table_of(self._count(lambda score: self._cell(score, level), within))

    def count_scores(self, within: CellSelection | None = None) -> ScoreCounts:
        """Count the rows by their scores."""
        return self._counts_of(self._count(lambda score: score, within))

    def estimate_distinct(self) -> int:
        """The number of distinct scores, summed over groups and labels, up to one more than are counted."""
        distinct = self._counted_rows().select("s", *self._short_keys).distinct().limit(self._most + 1)
        return int(self._fetch(distinct.aggregate(n=distinct.count()))["n"][0].as_py())

    def _selected(self) -> dict[str, Any]:
        """The columns under their short names."""
        label, weight = self.columns.label, self.columns.weight
        selected = {
            "s": self._score() + 0.0,  # which turns -0.0 into 0.0
            "y": self._number(label) if label else self._ibis.null("float64"),
            **({"w": self._number(weight)} if weight else {}),
        }
        return selected | {short: self._group(name) for short, name in self.columns.groups.items()}

    def _number(self, name: str) -> Any:
        """A column as numbers: NULL where a value is none, 1 and 0 for true and false."""
        column = self._table[name]
        kind = column.type()
        if not kind.is_numeric() and not kind.is_boolean():
            raise _of_another_type(name, kind, "numbers")
        if self._untyped:
            column = column.typeof().isin(["integer", "real"]).ifelse(column, None)
        if kind.is_boolean():
            column = self._ibis.cases((column, 1), (~column, 0))
        return column.cast("float64")

    def _group(self, name: str) -> Any:
        """A column of groups; what only the database has a type for, such as an enum, as texts."""
        column = self._table[name]
        kind = column.type()
        if kind.is_unknown():
            return column.cast("string")
        if kind.is_nested() or kind.is_binary() or kind.is_uuid():
            raise _of_another_type(name, kind, "texts, numbers or dates")
        return column

    def _score(self) -> Any:
        """The score; one beyond an end of the range that its dtype cannot represent is at that end."""
        score = self._number(self.columns.score)
        held = representable_range(self.score_range, self._dtype)
        if held == self.score_range:
            return score
        return score.between(*held).ifelse(score.clip(*self.score_range), score)

    def _valid(self, rows: Any) -> Any:
        """Whether the numbers of a row are valid; of NaN a database may say that it is above all others."""
        low, high = self.score_range
        valid = (rows.s >= low) & (rows.s <= high)
        if self.columns.label:
            valid &= rows.y.isin([0.0, 1.0])
        if self.columns.weight:
            valid &= (rows.w == 0.0) | ((rows.w >= LEAST_WEIGHT) & (rows.w <= MOST_WEIGHT))
        return valid.fill_null(False)

    def _cell(self, score: Any, level: int) -> Any:
        """The number of the cell of a score, as `cell_numbers` computes it."""
        scale = range_scale(self.score_range)
        low, high = (scale * end for end in self.score_range)
        fraction = score if scale == 1.0 else score * scale
        if (low, high) != (0.0, 1.0):
            # By a column: Polars multiplies by the inverse of a constant instead, which rounds twice.
            fraction = (fraction - low) / (score * 0.0 + (high - low))
        return (fraction * 2.0**level).ceil().cast("int64")

    def _counted_rows(self) -> Any:
        """The rows that weigh anything."""
        return self._rows.filter(self._rows.w > 0.0) if self.columns.weight else self._rows

    def _count(self, place: Callable[[Any], Any], within: CellSelection | None) -> Counted:
        """Count the rows by an expression of the score."""
        if self._people is None:
            self._people = self._check_rows()
            self._note_groups(
                list(self._people), {group for (group, _), rows in self._people.items() if rows}
            )
        parts = [self._counted_rows()]
        if within is not None:
            cell = self._cell(parts[0].s, within.level)
            starts = range(0, within.numbers.size, _MOST_LISTED)
            lists = [within.numbers[start : start + _MOST_LISTED].tolist() for start in starts]
            parts = [parts[0].filter(cell.isin(numbers)) for numbers in lists]
        arrow = require("pyarrow", extra="warehouse")
        pages = arrow.concat_tables(page for part in parts for page in self._pages(part, place))
        counted = self._checked(self._counted(pages), within)
        if within is None:
            rows = np.bincount(counted.codes, counted.columns["n"], minlength=len(counted.keys))
            if rows.tolist() != [self._people.get(key, 0) for key in counted.keys]:
                raise rows_changed()
        return counted

    def _pages(self, rows: Any, place: Callable[[Any], Any]) -> Iterator[Any]:
        """The counts of rows by group, label and place."""
        rest = rows
        while True:
            page = self._fetch(self._page(rest, place(rest.s)))
            if page.num_rows < MOST_ROWS:
                yield page
                return
            places = page["place"].to_numpy()
            yield page.slice(0, int(np.searchsorted(places, places[-1])))
            rest = rows.filter(place(rows.s) >= places[-1].item())

    def _page(self, rows: Any, place: Any) -> Any:
        """The query for the first page of counts."""
        counted = rows.group_by(*self._short_keys, place=place).aggregate(**self._aggregates(rows))
        return counted.order_by("place").limit(MOST_ROWS)

    def _aggregates(self, rows: Any) -> dict[str, Any]:
        """What is counted at each place, by name."""
        found = {"n": rows.count(), "lowest": rows.s.min(), "highest": rows.s.max()}
        if self.columns.weight:
            found |= self._limb_sums("w", rows.w) | self._limb_sums("q", rows.w * rows.w)
        return found

    def _limb_sums(self, prefix: str, number: Any) -> dict[str, Any]:
        """The sums of a number's limbs, which are whole numbers and add up the same in any order."""
        cuts = limbs_of(
            lambda scale: number * scale, self._floor, lambda whole, above: whole - above * 2.0**LIMB_BITS
        )
        return {f"{prefix}{limb}": cut.cast("int64").sum() for limb, cut in enumerate(cuts)}

    def _floor(self, number: Any) -> Any:
        """The largest whole number, as a double, that is not above a double: Ibis' own has 64 bits."""
        below = self._ibis.least(number, _WHOLE).floor().cast("float64")
        return (number < _WHOLE).ifelse(below, number)

    def _check_rows(self) -> dict[Any, int]:
        """How many rows that weigh anything each group and label has, where all rows are valid."""
        rows = self._rows
        weighing = (rows.w > 0.0).sum() if self.columns.weight else rows.count()
        keyed = rows.group_by(*self._short_keys).aggregate(
            n=weighing, rows=rows.count(), valid=rows.valid.sum()
        )
        counted = self._fetch(keyed.limit(2 * MOST_GROUPS + 1)).to_pylist()
        if not counted:
            raise InputError("the table has no rows")
        if any(row["valid"] < row["rows"] for row in counted):
            self._reject(self._fetch(rows.filter(~rows.valid).limit(1)).to_pylist()[0], None)
        for short, name in self.columns.groups.items():
            lacking = sum(row["rows"] for row in counted if is_missing(row[short]))
            if lacking:
                total = sum(row["rows"] for row in counted)
                raise InputError(f"has no value in {lacking:,} of {total:,} rows", column=name)
        people = {self._key(*(row[name] for name in self._short_keys)): int(row["n"]) for row in counted}
        names = " and ".join(map(repr, self.columns.group))
        check_group_count(len({group for group, _ in people}), f"column {names}")
        return people

    def _fetch(self, counted: Any) -> Any:
        """The result of a query as an Arrow table."""
        try:
            with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of Ibis' own calls
                return counted.to_pyarrow()
        except driver_errors() as error:
            raise InputError(f"the table cannot be read: {short_reason(error)}") from error


def _of_another_type(name: str, kind: Any, wanted: str) -> ValueError:
    return InputError(f"must be {wanted}, got the type {kind}; cast it in a view or a query", column=name)


def driver_errors() -> tuple[type[Exception], ...]:
    """The errors of Ibis and of the drivers that are loaded."""
    errors = (sys.modules[name].Error for name in _DRIVERS if name in sys.modules)
    return require("ibis.common.exceptions", extra="warehouse").IbisError, *errors


# A table of a database, by the database's address.


_STORED = {
    "duckdb": "SELECT bool_and(stored) FROM (SELECT table_name AS name, schema_name AS home, table_oid "
    "NOT IN (SELECT table_oid FROM duckdb_columns() WHERE is_generated) AS stored FROM duckdb_tables() "
    "UNION ALL SELECT view_name, schema_name, false FROM duckdb_views()) WHERE lower(name) = lower(?) AND "
    "lower(home) = lower(?)",
    "sqlite": "SELECT min(m.type = 'table' AND m.sql LIKE 'CREATE TABLE%' AND NOT EXISTS (SELECT 1 FROM "
    "pragma_table_xinfo(m.name) WHERE hidden > 1)) FROM sqlite_master m WHERE lower(m.name) = lower(?) AND "
    "lower(?) = 'main'",
}
"""Databases that are files, with a query: whether all values of a table are stored; NULL without one."""


def read_database(address: str, table: str, *, allow_remote: bool = False) -> Table:
    """A table of a database, by its name or as ``schema.table``, for `from_ibis`; of a server also a view.

    The address is such as ``postgresql://user@host:5432/database``, ``duckdb://path`` or ``sqlite://path``.
    A server, be it on this machine, is connected to only if `allow_remote`. Of a file nothing is run: it may
    come from anybody, and a view may read other files, or never end.
    """
    ibis = require("ibis", extra="warehouse")
    missing: type[Exception] = require("ibis.common.exceptions", extra="warehouse").TableNotFound
    shown, scheme = shown_address(address), _scheme(address)
    options: dict[str, Any] = {}
    if scheme in _STORED:
        path = Path(address.partition("://")[2])
        if not path.is_file():
            raise FileNotFoundError(f"there is no database {str(path)!r}")
        if scheme == "duckdb":
            options = {"read_only": True, "enable_external_access": False, "temp_directory": private_folder()}
    elif not allow_remote:
        raise InputError(
            f"is a database server; pass {setting(allow_remote=True)} to connect to it", file=shown
        )
    schema, _, name = table.rpartition(".")
    try:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            connection = ibis.connect(f"{scheme}:{address.partition(':')[2]}", **options)
            try:
                if scheme in _STORED and not _is_stored(connection.con, scheme, schema or "main", name):
                    raise missing(name)
                return connection.table(name, database=schema or None)
            except Exception:
                connection.disconnect()
                raise
    except missing:
        raise InputError(f"there is no table named {table!r} in {shown}") from None
    except ImportError as error:
        install = f"pip install 'ibis-framework[{scheme}]'"
        raise ImportError(f"{shown} needs a driver that is not installed: {install}") from error
    except driver_errors() as error:
        raise InputError(f"cannot be read: {short_reason(error)}", file=shown) from error


def _is_stored(connection: Any, scheme: str, schema: str, name: str) -> bool:
    """Whether a database that is a file has a table; an InputError where that is computed when it is read."""
    if scheme == "sqlite":
        limit_work(connection)
    ((is_stored,),) = connection.execute(_STORED[scheme], [name, schema]).fetchall()
    if is_stored is not None and not is_stored:
        reason = "is a view, or has computed columns; of a file, only tables of stored values are read"
        raise InputError(reason, file=f"table {name!r}")
    return is_stored is not None


def _scheme(address: str) -> str:
    """What an address begins with, where it is one that Ibis has a backend for."""
    example = "postgresql://user@host:5432/database"
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:  # whose message may have a part of the password
        raise InputError(
            f"an address must be such as {example}, with %2F for / and %40 for @ in a password"
        ) from None
    known = {backend.name for backend in entry_points(group="ibis.backends")}
    if parts.scheme not in known | {"postgresql"}:
        raise InputError(f"an address must be such as {example}, got {shown_address(address)!r}")
    return parts.scheme
