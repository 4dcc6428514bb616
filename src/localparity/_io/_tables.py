"""Columns out of CSV, TSV, Parquet and JSON files, through DuckDB.

Nothing is guessed: the header names a CSV's columns, and the keys of all rows those of JSON; their values are
texts until a column is read as numbers, and a malformed line or value is an error that says where it is.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import chain
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localparity._io._arrow import ArrowStream, Batch
from localparity._io._connection import check_remote, connect
from localparity._io._packed import read_through
from localparity._validation import unknown_name

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

Source = str | PathLike[str] | Sequence[str | PathLike[str]]

_QUERY = re.compile(r"\s*(select|from|with|values|table|pivot|unpivot)\s", re.IGNORECASE)
_NUMBER_TYPES = re.compile(r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)|BIGNUM|BOOLEAN")

_DELIMITERS = {"csv": ",;\t|", "txt": ",;\t|", "tsv": "\t"}
_JSON_FORMATS = {
    "json": ("array", "unstructured"),
    "jsonl": ("newline_delimited",),
    "ndjson": ("newline_delimited",),
}
_KINDS = (*_DELIMITERS, "parquet", "pq", *_JSON_FORMATS)
_JSON_TYPES = {"ARRAY": "an array", "VARCHAR": "a text", "BOOLEAN": "true or false", "NULL": "null"}


def as_group_columns(score: str, group: str | Sequence[str]) -> tuple[str, ...]:
    """The names of the group columns: at least one, none of them the score column."""
    groups = (group,) if isinstance(group, str) else tuple(group)
    if not groups:
        raise ValueError("group must name at least one column, got none")
    if score in groups:
        raise ValueError(f"column {score!r} cannot be both the score and a group")
    return groups


def quote_name(name: str) -> str:
    """A column name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A text as a quoted SQL literal."""
    return "'" + text.replace("'", "''") + "'"


class Table:
    """The rows of files of one kind, of a query or of a DuckDB relation.

    Files are CSV, TSV, Parquet, JSON or JSON lines, also compressed; a glob stands for the files that match
    it. `memory_limit`, such as "2GB", is the memory DuckDB may use before it spills to disk, and
    `allow_remote` lets it read from other machines; a relation keeps its own settings.
    """

    def __init__(
        self,
        source: Source | DuckDBPyRelation,
        *,
        memory_limit: str | None = None,
        allow_remote: bool = False,
    ) -> None:
        import duckdb

        self._error: type[Exception] = duckdb.Error
        if isinstance(source, duckdb.DuckDBPyRelation):
            self.name, self.rows = "the relation", "localparity_rows"
            self._query: Callable[[str], Any] = lambda query: source.query(self.rows, query)
            self._run: Callable[[str], Any] = self._query
        elif hasattr(source, "columns") or isinstance(source, duckdb.DuckDBPyConnection):
            raise ValueError(
                f"source must be a path, a query or a DuckDB relation, got {type(source).__name__}; "
                "duckdb.sql(...) makes a relation, also of a data frame"
            )
        else:
            self._paths = [source] if isinstance(source, str) else _paths(source)
            check_remote(self._paths, allow_remote=allow_remote)
            connection = connect(memory_limit=memory_limit, allow_remote=allow_remote)
            self._query = connection.sql
            self._run = connection.execute  # which Ctrl-C ends, as it does not end a relation
            self.name, self.rows = self._name_and_rows()
        described = self.fetch(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {self.rows})")
        names, types = (described[column].tolist() for column in ("column_name", "column_type"))
        self.types: dict[str, str] = dict(zip(map(str, names), map(str, types), strict=True))

    def _name_and_rows(self) -> tuple[str, str]:
        """The name of the rows in messages and in SQL."""
        first, others = self._paths[0], len(self._paths) - 1
        if not others and _QUERY.match(first) and _ending(first) not in _KINDS:
            return "the query", f"({first.rstrip().rstrip(';')})"
        folder = next((path for path in self._paths if Path(path).is_dir()), None)
        if folder is not None:
            raise ValueError(f"{folder} is a folder; name its files, e.g. {folder}/*.csv")
        self.name = f"{first} and {others} more" if others else first
        return self.name, self._reader(kind_of(self._paths))

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.types)

    def check(self, names: Iterable[str]) -> None:
        """Raise a ValueError where a column does not exist."""
        for name in names:
            if name not in self.types:
                raise unknown_name(f"column in {self.name} named", name, self.columns)

    def number(self, name: str) -> str:
        """The SQL of a column as numbers: NULL where a value is none, 1 and 0 for true and false."""
        if _NUMBER_TYPES.fullmatch(self.types[name]):
            kept = quote_name(name)
            return kept if self.types[name] == "FLOAT" else f"CAST({kept} AS DOUBLE)"
        text = f"CAST({quote_name(name)} AS VARCHAR)"
        truth = f"CASE lower({text}) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
        return f"coalesce({truth}, TRY_CAST({text} AS DOUBLE))"

    def read(self, *, numbers: Iterable[str], values: Iterable[str]) -> dict[str, NDArray[Any]]:
        """Read `numbers` as floats (float32 stays float32) and `values` as they are, None where missing."""
        numbers, values = list(dict.fromkeys(numbers)), list(dict.fromkeys(values))
        self.check((*numbers, *values))
        expressions = [self.number(name) for name in numbers] + [quote_name(name) for name in values]
        selected = ", ".join(f"{expression} AS c{i}" for i, expression in enumerate(expressions))
        fetched = self.fetch(f"SELECT {selected} FROM {self.rows}")
        columns = {name: fetched[f"c{i}"] for i, name in enumerate((*numbers, *values))}
        if not next(iter(columns.values())).size:
            raise ValueError(f"{self.name} has no rows")
        for name in numbers:
            missing = np.ma.getmaskarray(columns[name])
            if missing.any():
                raise self.not_a_number(name, int(np.argmax(missing)) + 1)
        found: dict[str, NDArray[Any]] = {name: np.ma.getdata(columns[name]) for name in numbers}
        return found | {name: _with_none(columns[name]) for name in values}

    def not_a_number(self, name: str, row: int) -> ValueError:
        """The error for the first value of a column that is not a number, given its data row."""
        condition = f"{self.number(name)} IS NULL LIMIT 1"
        query = f"SELECT CAST({quote_name(name)} AS VARCHAR) AS value FROM {self.rows} WHERE {condition}"
        value = _with_none(self.fetch(query)["value"])[0]
        found = "no value" if value is None else repr(str(value))
        return ValueError(f"column {name!r} of {self.name} must be numbers, got {found} at data row {row}")

    def _reader(self, kind: str) -> str:
        paths = "[" + ", ".join(map(quote_text, self._paths)) + "]"
        if kind not in (*_JSON_FORMATS, *_DELIMITERS):
            return f"read_parquet({paths})"
        last = {file: read_through(file) for file in self._files()}
        if kind in _JSON_FORMATS:
            return self._json_reader(paths, _JSON_FORMATS[kind], last)
        first, *others = last
        header = self._first_line(first)
        for other in others:
            if self._first_line(other) != header:
                raise ValueError(f"{other} must have the columns of {first}, in the same order")
        delimiter, names = self._header(header, kind)
        return (
            f"read_csv({paths}, auto_detect = false, header = true, delim = {quote_text(delimiter)}, "
            f"quote = '\"', escape = '\"', columns = {_texts(names)})"
        )

    def _json_reader(self, paths: str, formats: Sequence[str], last: Mapping[str, bytes]) -> str:
        """The reader of JSON in the first of some formats that fits: an array begins and ends as one."""
        first, *others = formats
        try:
            names = self._keys(f"read_json_objects({paths}, format = {quote_text(first)})")
        except ValueError as error:
            if others and "Expected top-level JSON array" in str(error):
                return self._json_reader(paths, others, last)
            raise
        for file, end in last.items():
            if first == "array" and end.strip() and not end.rstrip().endswith(b"]"):
                raise ValueError(f"{file} cannot be read: the array is not closed at its end")
        if not names:
            raise ValueError(f"{self.name} has no rows")
        return f"read_json({paths}, auto_detect = false, format = '{first}', columns = {_texts(names)})"

    def _keys(self, objects: str) -> list[str]:
        """The keys of all objects, those that most have first."""
        keys = "CASE json_type(json) WHEN 'OBJECT' THEN json_keys(json) END"
        found = self.fetch(f"SELECT {keys} AS keys FROM {objects} GROUP BY keys ORDER BY count(*) DESC, keys")
        if np.ma.is_masked(found["keys"]):
            other = self.fetch(
                "SELECT json_type(json) AS kind, row FROM (SELECT *, row_number() OVER () AS row "
                f"FROM {objects}) WHERE {keys} IS NULL ORDER BY row LIMIT 1"
            )
            kind = _JSON_TYPES.get(str(_with_none(other["kind"])[0] or "NULL"), "a number")
            row = other["row"][0]
            raise ValueError(f"{self.name} must have an object in each row, got {kind} at data row {row}")
        for keys_of_some in found["keys"]:
            self._check_distinct(keys_of_some)
        names = list(dict.fromkeys(map(str, chain(*found["keys"]))))
        self._check_distinct(names)
        return names

    def _files(self) -> list[str]:
        """The files that the paths stand for."""
        files: list[str] = []
        for path in self._paths:
            found = self.fetch(f"SELECT file FROM glob({quote_text(path)}) ORDER BY file")["file"].tolist()
            if not found:
                raise ValueError(f"{self.name} cannot be read: there is no file {path}")
            files += map(str, found)
        return files

    def _first_line(self, file: str) -> str:
        lines = self.fetch(
            f"SELECT line FROM read_csv({quote_text(file)}, auto_detect = false, header = false, "
            "delim = '\x01', quote = '', escape = '', columns = {'line': 'VARCHAR'}) LIMIT 1"
        )["line"]
        if not lines.size or np.ma.is_masked(lines):
            raise ValueError(f"{file} {'starts with a blank line' if lines.size else 'is empty'}")
        return str(lines[0]).removeprefix("\ufeff")

    def _header(self, line: str, kind: str) -> tuple[str, list[str]]:
        """The delimiter and the column names of a CSV; an unnamed column is named by its position."""
        if line.count('"') % 2:
            raise ValueError(f"{self.name} cannot be read: line 1: a quote in the header is not closed")
        delimiter = delimiter_of(line, kind)
        try:
            found = next(csv.reader([line], delimiter=delimiter))
        except csv.Error as error:  # such as a name of more than 128 KB
            raise ValueError(f"{self.name} cannot be read: line 1: {error}") from error
        names = [name or f"column{place}" for place, name in enumerate(found)]
        self._check_distinct(names)
        return delimiter, names

    def _check_distinct(self, names: Sequence[str]) -> None:
        times = Counter(name.casefold() for name in names)
        for name in names:
            if times[name.casefold()] > 1:
                raise ValueError(f"{self.name} has more than one column named {name!r}, apart from case")

    def fetch(self, query: str) -> dict[str, NDArray[Any]]:
        """The result of a query, by column; an error in the files names them."""
        try:
            found: dict[str, NDArray[Any]] = self._run(query).fetchnumpy()
        except self._error as error:
            raise self._unreadable(error) from error
        except RuntimeError as error:
            if "interrupted" in str(error):
                raise KeyboardInterrupt from error
            raise
        return found

    def stream(self, query: str) -> Generator[Batch, None, None]:
        """The result of a query in batches of columns of numbers, of which few are in memory at a time."""
        try:
            with ArrowStream(self._query(query).__arrow_c_stream__()) as stream:
                while (batch := stream.next_batch()) is not None:
                    yield batch
        except (self._error, OSError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> ValueError:
        return ValueError(f"{self.name} cannot be read: {_first_reason(str(error))}")


def _texts(names: Iterable[str]) -> str:
    """The SQL of columns that are texts."""
    return "{" + ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names) + "}"


def _with_none(column: NDArray[Any]) -> NDArray[Any]:
    """A fetched column with None for missing values."""
    if not np.ma.is_masked(column):
        return np.asarray(np.ma.getdata(column))
    values = np.ma.getdata(column).astype(object)
    values[np.ma.getmaskarray(column)] = None
    return values


def delimiter_of(line: str, kind: str) -> str:
    """The delimiter of a CSV, from its first line.

    Examples
    --------
    >>> delimiter_of('"a,b";c;d', "csv")
    ';'
    """
    return max(_DELIMITERS[kind], key=re.sub(r'"(?:[^"]|"")*"', "", line).count)


def _paths(source: PathLike[str] | Sequence[str | PathLike[str]]) -> list[str]:
    paths = [source] if isinstance(source, PathLike) else list(source)
    if not paths:
        raise ValueError("source must name at least one file, got none")
    return [fspath(path) for path in paths]


def kind_of(paths: Sequence[str]) -> str:
    """The kind of the files, from the endings of their names."""
    kinds = {_ending(path) for path in paths}
    if len(kinds) > 1:
        raise ValueError(f"all files must be of one kind, got {', '.join(sorted(kinds))}")
    kind = kinds.pop()
    if kind not in _KINDS:
        known = ", ".join(f".{ending}" for ending in _KINDS)
        raise ValueError(f"{paths[0]} must end in one of {known}")
    return kind


def _ending(path: str) -> str:
    name = PurePath(path)
    if name.suffix.lower() in {".gz", ".zst"}:
        name = name.with_suffix("")
    return name.suffix.lower().removeprefix(".")


def _first_reason(message: str) -> str:
    """The line number and the reason in one of DuckDB's long messages, as one line."""
    lines = [line.strip() for line in message.splitlines()]
    reason = re.sub(r"^[A-Za-z ]+ Error: ", "", lines[0])
    if "requires the extension" in reason:
        return f"{reason}; pass allow_remote=True to let DuckDB install it"
    at_line = re.search(r"CSV Error on Line: (\d+)", reason)
    if at_line:
        reasons = (line for line in lines[1:] if line and not line.startswith("Original Line"))
        return f"line {at_line.group(1)}: {next(reasons, 'malformed')}"
    # DuckDB counts the rows before the malformed one, and two more.
    in_row = re.search(
        r"^Malformed JSON in file .*, at byte (\d+) in (?:line|record/value) (\d+): (.*?)\.", reason
    )
    if in_row:
        return f"data row {int(in_row.group(2)) - 1}: {in_row.group(3)} at its byte {in_row.group(1)}"
    return reason
