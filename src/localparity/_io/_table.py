"""Columns out of CSV, TSV, Parquet and JSON files and of sheets, through DuckDB.

Nothing is guessed: the header names a CSV's columns, and the keys of all rows those of JSON; their values are
texts until a column is read as numbers, and a malformed line or value is an error that says where it is.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, suppress
from copy import copy
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localparity._io._arrow import ArrowStream, Batch
from localparity._io._duckdb import (
    check_remote,
    connect,
    first_reason,
    interruptible,
    quote_name,
    quote_text,
    text_of,
    with_none,
)
from localparity._io._numbers import Decimal, NumberFormat, format_of, is_missing_text, missing_text, survey
from localparity._io._readers import KINDS, Files, ending_of
from localparity._text import brief, normal_text, visual_form
from localparity._types import FloatArray
from localparity._validation import (
    MOST_GROUPS,
    FileColumn,
    InputError,
    InputWarning,
    MissingValueError,
    as_choice,
    as_score_range,
    check_group_count,
    setting,
    unknown_name,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation


Source = str | PathLike[str] | Sequence[str | PathLike[str]]

_QUERY = re.compile(r"\s*(select|from|with|values|table|pivot|unpivot)\s", re.IGNORECASE)
_NUMBER_TYPES = re.compile(r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)|BIGNUM|BOOLEAN")


def as_group_columns(score: str, group: str | Sequence[str]) -> tuple[str, ...]:
    """The names of the group columns: at least one, none of them the score column."""
    groups = (group,) if isinstance(group, str) else tuple(group)
    if not groups:
        raise InputError("must name at least one column, got none", "group")
    if score in groups:
        raise InputError("cannot be both the score and a group", column=score)
    return groups


class Table:
    """The rows of files of one kind, of a query or of a DuckDB relation.

    Files are CSV, TSV, Parquet, JSON or JSON lines, also compressed, or a workbook; a glob stands for the
    files that match it. `memory_limit`, such as "2GB", is the memory DuckDB may use before it spills to disk;
    a relation keeps its own settings. The other options are those of `open_table`.
    """

    def __init__(
        self,
        source: Source | DuckDBPyRelation,
        *,
        memory_limit: str | None = None,
        encoding: str | None = None,
        decimal: Decimal | None = None,
        sheet: str | None = None,
        normalise_groups: bool = False,
        allow_remote: bool = False,
    ) -> None:
        import duckdb

        self._error: type[Exception] = duckdb.Error
        options = {
            "encoding": encoding,
            "decimal": decimal,
            "sheet": sheet,
            "normalise_groups": normalise_groups,
        }
        self.options = {name: value for name, value in options.items() if value}
        self._decimal: Decimal | None = as_choice(decimal, "decimal", (None, ".", ","))
        self._normalises, self._normal = normalise_groups, set[str]()
        self._formats: dict[str, NumberFormat] = {}
        self._files: Files | None = None
        if isinstance(source, duckdb.DuckDBPyRelation):
            self.name, self.rows = "the relation", "localparity_rows"
            self._query: Callable[[str], Any] = lambda query: source.query(self.rows, query)
            self._wait: Callable[[Callable[[], Any]], Any] = lambda work: work()
        elif hasattr(type(source), "columns") or isinstance(source, duckdb.DuckDBPyConnection):
            raise InputError(
                f"must be a path, a query or a DuckDB relation, got {type(source).__name__}; "
                "duckdb.sql(...) makes a relation, also of a data frame",
                "source",
            )
        else:
            paths = [fspath(path) for path in ([source] if isinstance(source, str | PathLike) else source)]
            if not paths:
                raise InputError("must name at least one file, got none", "source")
            check_remote(paths, allow_remote=allow_remote)
            connection = connect(memory_limit=memory_limit, allow_remote=allow_remote)
            self._query = connection.sql
            self._wait = partial(interruptible, connection)
            if len(paths) == 1 and _QUERY.match(paths[0]) and ending_of(paths[0]) not in KINDS:
                self.name, self.rows = "the query", f"({paths[0].rstrip().rstrip(';')})"
            else:
                self._files = Files(paths, encoding=encoding, sheet=sheet)
                self.name = self._files.name
                self.rows = self._files.rows(self.fetch, connection.register)
        described = self.fetch(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {self.rows})")
        names, types = (described[column].tolist() for column in ("column_name", "column_type"))
        self.types: dict[str, str] = dict(zip(map(str, names), map(str, types), strict=True))

    @property
    def paths(self) -> list[str]:
        """The paths of the files, also globs; none of a query and of a relation."""
        return [] if self._files is None else self._files.paths

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.types)

    def check(self, names: Iterable[str]) -> None:
        """Refuse a column that does not exist, or of whose name there are several."""
        for name in names:
            if self._files is not None and name in self._files.repeated:
                raise self._files.has_several(name)
            if name not in self.types:
                raise unknown_name(f"column in {self.name} named", name, self.columns)

    def number(self, name: str) -> str:
        """The SQL of a column as numbers: NULL where a value is none, 1 and 0 for true and false."""
        if _NUMBER_TYPES.fullmatch(self.types[name]):
            kept = quote_name(name)
            return kept if self.types[name] == "FLOAT" else f"CAST({kept} AS DOUBLE)"
        return self._formats.get(name, NumberFormat(self._decimal)).sql(text_of(name))

    def lacks(self, name: str) -> str:
        """The SQL of whether a row has no value in a column; a CSV and a sheet can say so by texts alone."""
        text = text_of(name)
        if self._files is not None and not self._files.typed:
            return missing_text(text)
        return f"({text} IS NULL OR trim({text}) = '' OR lower({text}) = 'nan')"

    def group(self, name: str) -> str:
        """The SQL of a column of groups: NULL where a text of a CSV or a sheet stands for no value."""
        column = quote_name(name)
        if self._files is None or self._files.typed or self.types[name] != "VARCHAR":
            return column
        return f"CASE WHEN NOT {self.lacks(name)} THEN {column} END"

    def normalise(self, names: Iterable[str]) -> None:
        """Join the groups whose names differ in case, in spaces around them or in form, if that was asked."""
        for name in names:
            if not self._normalises or name in self._normal or self.types[name] != "VARCHAR":
                continue
            column = quote_name(name)
            found = self.fetch(f"SELECT DISTINCT {column} AS g FROM {self.rows} LIMIT {MOST_GROUPS + 1}")
            check_group_count(found["g"].size, FileColumn(name))
            texts = [str(text) for text in with_none(found["g"]).tolist() if text is not None]
            new = {text: normal_text(text) for text in texts if normal_text(text) != text}
            listed = " ".join(f"WHEN {quote_text(text)} THEN {quote_text(to)}" for text, to in new.items())
            if new:
                joined = f"CASE {column} {listed} ELSE {column} END"
                self.rows = f"(SELECT * REPLACE ({joined} AS {column}) FROM {self.rows})"
            self._normal.add(name)

    def as_joined(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Texts as groups have them: where look-alikes are joined, by the name that these have then."""
        return tuple(dict.fromkeys(map(normal_text, texts) if self._normalises else texts))

    def warn(self, groups: Iterable[Any] = ()) -> None:
        """Warn of numbers written in another way, and of groups whose names look alike."""
        for name, form in self._formats.items():
            warnings.warn(f"column {name!r} of {self.name} is read {form}", stacklevel=3)
        if self._normalises:
            return
        groups = list(groups)
        same = _alike(groups, normal_text)
        for some, last in same:
            message = (
                f"the groups {', '.join(map(repr, some))} and {last!r} of {self.name} differ in case, spaces "
                f"or the form of characters only; pass {setting(normalise_groups=True)} to join them"
            )
            warnings.warn(InputWarning(message), stacklevel=3)
        for some, last in [] if same else _alike(groups, visual_form):
            listed = ", ".join(map(ascii, some))
            message = f"the groups {listed} and {last!a} of {self.name} look alike and have other characters"
            warnings.warn(InputWarning(f"{message}; are they one?"), stacklevel=3)

    def repair(self, names: Iterable[str]) -> bool:
        """Find out how columns write their numbers, after the plain way failed; whether that changed."""
        changed = False
        for name in names:
            if name in self._formats or _NUMBER_TYPES.fullmatch(self.types[name]):
                continue
            counted = survey(text_of(name), self._decimal)
            selected = ", ".join(
                f"{expression} AS {quote_name(what)}" for what, expression in counted.items()
            )
            found = self.fetch(f"SELECT {selected} FROM {self.rows}")
            try:
                form = format_of({what: int(count[0]) for what, count in found.items()}, self._decimal)
            except InputError as error:
                error.column, error.file = name, self.name
                raise
            if form is not None:
                self._formats[name], changed = form, True
        return changed

    def read(
        self, *, numbers: Iterable[str], values: Iterable[str] = (), groups: Iterable[str] = ()
    ) -> dict[str, NDArray[Any]]:
        """Read `numbers` as floats (float32 stays float32) and `values` as they are, None where missing.

        In `groups` a text that stands for no value is missing, and look-alikes are one if that was asked.
        """
        numbers, groups = list(dict.fromkeys(numbers)), list(dict.fromkeys(groups))
        values = [name for name in dict.fromkeys(values) if name not in groups]
        self.check((*numbers, *values, *groups))
        self.normalise(groups)
        expressions = [self.number(name) for name in numbers] + [quote_name(name) for name in values]
        expressions += [self.group(name) for name in groups]
        values += groups
        selected = ", ".join(f"{expression} AS c{i}" for i, expression in enumerate(expressions))
        fetched = self.fetch(f"SELECT {selected} FROM {self.rows}")
        columns = {name: fetched[f"c{i}"] for i, name in enumerate((*numbers, *values))}
        if not next(iter(columns.values())).size:
            raise InputError("has no rows", file=self.name)
        for name in numbers:
            missing = np.ma.getmaskarray(columns[name])
            if missing.any():
                if self.repair(numbers):
                    return self.read(numbers=numbers, values=values, groups=groups)
                raise self.not_a_number(name, int(np.argmax(missing)) + 1)
        found: dict[str, NDArray[Any]] = {name: np.ma.getdata(columns[name]) for name in numbers}
        return found | {name: with_none(columns[name]) for name in values}

    def range_of(self, name: str) -> tuple[float, float]:
        """The lowest and the highest of a column's finite numbers; inf and -inf where there are none."""
        self.check([name])
        number = f"CAST({self.number(name)} AS DOUBLE)"
        found = self.fetch(
            f"SELECT min(n) FILTER (isfinite(n)) AS low, max(n) FILTER (isfinite(n)) AS high, "
            f"count(*) FILTER (n IS NULL AND NOT {self.lacks(name)}) AS others "
            f"FROM (SELECT *, {number} AS n FROM {self.rows})"
        )
        if found["others"][0] and self.repair([name]):
            return self.range_of(name)
        ends = (with_none(found[end])[0] for end in ("low", "high"))
        low, high = (math.nan if end is None else float(end) for end in ends)
        return (math.inf, -math.inf) if math.isnan(low) else (low, high)

    def check_scores(self, name: str, score_range: Any) -> None:
        """Refuse percentages of another range."""
        percent = name in self._formats and self._formats[name].percent
        if percent and as_score_range(score_range)[1] > 1.0:
            needs = f"{setting('score_range')} must be (0, 1), got {score_range}"
            raise InputError(f"has percent signs: 37% is 0.37, and {needs}", column=name, file=self.name)

    def not_a_number(self, name: str, row: int) -> InputError:
        """The error for the first value of a column that is not a number, given its data row."""
        text, number = text_of(name), self.number(name)
        query = f"SELECT {text} AS value FROM {self.rows} WHERE {number} IS NULL LIMIT 1"
        values = with_none(self.fetch(query)["value"])
        if not values.size:  # statistics that lie make DuckDB skip rows that it has just read
            return InputError("is damaged: two reads of it differ", column=name, file=self.name)
        value = values[0]
        if is_missing_text(value):
            counted = self.fetch(
                f"SELECT count(*) FILTER ({missing_text(text)}) AS none, count(*) AS n FROM {self.rows}"
            )
            none, n = (int(counted[what][0]) for what in ("none", "n"))
            reason = f"must be numbers, got no value at data row {row}; "
            reason += f"there is no value in {none:,} of {n:,} rows"
            return MissingValueError(reason, column=name, file=self.name, row=row - 1)
        mixed = "; either all of them or none must have a percent sign" if "%" in str(value) else ""
        reason = f"must be numbers, got {brief(str(value))} at data row {row}{mixed}"
        return InputError(reason, column=name, file=self.name, row=row - 1)

    def fetch(self, query: str) -> dict[str, NDArray[Any]]:
        """The result of a query, by column; an error in the files names them."""
        try:
            found: dict[str, NDArray[Any]] = self._wait(lambda: self._query(query).fetchnumpy())
        except self._error as error:
            raise self._unreadable(error) from error
        return found

    def stream(self, query: str) -> Generator[Batch, None, None]:
        """The result of a query in batches of columns of numbers, of which few are in memory at a time."""
        try:
            capsule = self._wait(lambda: self._query(query).__arrow_c_stream__())
            with closing(ArrowStream(capsule)) as stream:
                while (batch := self._wait(stream.next_batch)) is not None:
                    yield batch
        except (self._error, OSError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> InputError:
        return InputError(f"cannot be read: {first_reason(str(error))}", file=self.name)


def _alike(groups: Iterable[Any], form: Callable[[str], str]) -> list[tuple[list[Any], Any]]:
    """The groups that are one in some form, several of each: all but the last, and the last."""
    same: dict[Any, list[Any]] = {}
    for group in groups:
        parts = group if isinstance(group, tuple) else (group,)
        key = tuple(form(part) if isinstance(part, str) else part for part in parts)
        same.setdefault(key, []).append(group)
    return [(alike[:-1], alike[-1]) for alike in same.values() if len(alike) > 1]


def open_table(
    source: Source | DuckDBPyRelation,
    *,
    encoding: str | None = None,
    decimal: Decimal | None = None,
    sheet: str | None = None,
    normalise_groups: bool = False,
    allow_remote: bool = False,
) -> Table:
    r"""Open a file that needs options to be read, for `Audit.read` and whatever else takes a path.

    Plain files need none of this, nor do files whose first bytes tell UTF-16, percentages, and columns of
    which all numbers have a decimal comma: what was found is said in a warning.

    Parameters
    ----------
    source : path, sequence of paths, query or relation
        CSV, TSV, Parquet, JSON lines or a workbook; a glob stands for the files that match it.
    encoding : str, optional
        The encoding of a text file, such as "latin-1"; UTF-8 by default.
    decimal : str, optional
        What stands before decimals, "." or ",", in the texts of a file, and the other one between thousands;
        by default what fits all numbers of a column.
    sheet : str, optional
        The sheet of a workbook that has several.
    normalise_groups : bool
        Whether groups whose names differ in case, in spaces around them or in the form of characters are one,
        under the name in small letters.
    allow_remote : bool
        Whether files may be on other machines, which DuckDB then installs extensions for.

    Returns
    -------
    Table
        What takes the place of a path.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import localparity as lp
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = path.write_text("p;sex\n0,2;f\n0,9;m\n0,4;F \n")
    >>> table = lp.open_table(path, decimal=",", normalise_groups=True)
    >>> lp.Predictions.read(table, score="p", group="sex")
    Predictions(3 rows, 2 groups)
    """
    options: dict[str, Any] = {"encoding": encoding, "decimal": decimal, "sheet": sheet}
    return Table(source, **options, normalise_groups=normalise_groups, allow_remote=allow_remote)


def as_table(source: Source | DuckDBPyRelation | Table, **options: Any) -> Table:
    """A table as it is, and that of any other source with some options."""
    return source if isinstance(source, Table) else Table(source, **options)


# Columns that no model should learn from: those that say who a row is, or nearly say its class.


_ROWS = 20_000
"""Columns are judged by so many of the first rows."""
_MANY = 50
"""A column with no more values than this is not judged."""
_FEW = 10
"""Nor is what it says of the classes, where one of them has fewer rows than this."""
_DISTINCT, _AUC = 0.95, 0.999


def unfit_features(table: Table, names: Sequence[str], target: str) -> dict[str, str]:
    """The columns that should not be features, each with what is wrong with it.

    A column of texts or whole numbers that differ in nearly all rows is an identifier; one that orders the
    rows of the two classes with an area under the ROC curve above 0.999 was made from the class.
    """
    first: Any = copy(table)
    first.rows = f"(SELECT * FROM {table.rows} LIMIT {_ROWS})"
    columns = first.read(numbers=[], values=[*names, target])
    classes = np.array([str(value) for value in columns[target].tolist()])
    found = {name: _why_unfit(columns[name], classes) for name in names}
    return {name: reason for name, reason in found.items() if reason is not None}


def _why_unfit(column: NDArray[Any], classes: NDArray[Any]) -> str | None:
    known = np.array([not is_missing_text(value) for value in column.tolist()])
    texts, places = np.unique([str(value) for value in column[known].tolist()], return_inverse=True)
    if places.size <= _MANY:
        return None
    numbers: FloatArray | None = None
    with suppress(ValueError):
        numbers, again = np.unique(texts.astype(np.float64), return_inverse=True)
        places = again[places]
    distinct = int(places.max()) + 1
    is_whole = numbers is None or bool(np.all(numbers == np.round(numbers)))
    if is_whole and distinct >= _DISTINCT * places.size:
        kind = "text" if numbers is None else "whole number"
        every = "every row" if distinct == places.size else "nearly every row"
        return f"has a different {kind} in {every}, as an identifier has"
    names, of_class = np.unique(classes[known], return_inverse=True)
    rows = np.bincount(of_class)
    if names.size != 2 or rows.min() < _FEW or (numbers is None and 10 * distinct > places.size):
        return None
    of_value = np.array([np.bincount(places[of_class == label], minlength=distinct) for label in (0, 1)])
    if numbers is None:  # texts have no order but that of their shares of the second class
        of_value = of_value[:, np.argsort(of_value[1] / of_value.sum(axis=0), kind="stable")]
    below = np.cumsum(of_value[0]) - 0.5 * of_value[0]
    area = float(of_value[1] @ below) / (float(rows[0]) * float(rows[1]))
    if max(area, 1.0 - area) <= _AUC:
        return None
    return "tells the classes apart in nearly every row, as a score or the class itself does"
