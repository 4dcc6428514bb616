"""Columns out of CSV, TSV, Parquet and JSON files, through DuckDB.

Nothing is guessed: the header line names a CSV's columns, all of its values are text until a column is asked
for as numbers, and a line or a value that does not fit is an error that says where it stands.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localparity._validation import unknown_name

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Source = str | PathLike[str] | Sequence[str | PathLike[str]]

_DELIMITERS = {"csv": ",;\t|", "txt": ",;\t|", "tsv": "\t"}
_READERS = {
    "parquet": "read_parquet({})",
    "pq": "read_parquet({})",
    "json": "read_json({})",
    "jsonl": "read_json({}, format = 'newline_delimited')",
    "ndjson": "read_json({}, format = 'newline_delimited')",
}


def quote_name(name: str) -> str:
    """A column's name as SQL takes it, whatever characters it has.

    Examples
    --------
    >>> print(quote_name('a "b"; drop table c'))
    "a ""b""; drop table c"
    """
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A text as SQL takes it, whatever characters it has."""
    return "'" + text.replace("'", "''") + "'"


class Table:
    r"""The rows of files of one kind, of which columns can be read.

    Parameters
    ----------
    source : path or sequence of paths
        CSV, TSV, Parquet, JSON or JSON lines, also compressed; a glob stands for the files that match it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = path.write_text("p,sex\n0.2,f\n0.9,m\n")
    >>> table = Table(path)
    >>> table.columns
    ['p', 'sex']
    >>> table.read(numbers=["p"], values=["sex"])["p"]
    array([0.2, 0.9])
    """

    def __init__(self, source: Source) -> None:
        import duckdb

        paths = [source] if isinstance(source, str | PathLike) else list(source)
        if not paths:
            raise ValueError("no file is named")
        self._paths = [fspath(path) for path in paths]
        self.name = self._paths[0] if len(paths) == 1 else f"{self._paths[0]} and {len(paths) - 1} more"
        self._error: type[Exception] = duckdb.Error
        self._connection: DuckDBPyConnection = duckdb.connect()
        kind = _kind(self._paths)
        self._from = self._reader(kind)
        described = self._fetch(f"DESCRIBE SELECT * FROM {self._from}")
        self.columns = [str(name) for name in described["column_name"]]

    def read(self, *, numbers: Iterable[str], values: Iterable[str]) -> dict[str, NDArray[Any]]:
        """The named columns: `numbers` as float64, `values` as they are.

        True and false count as 1 and 0. A missing number, and a text where a number is expected, are errors;
        a missing value is None.
        """
        numbers, values = list(dict.fromkeys(numbers)), list(dict.fromkeys(values))
        for name in (*numbers, *values):
            if name not in self.columns:
                raise unknown_name(f"column in {self.name} named", name, self.columns)
        expressions = [_as_number(name) for name in numbers] + [quote_name(name) for name in values]
        selected = ", ".join(f"{expression} AS c{i}" for i, expression in enumerate(expressions))
        fetched = self._fetch(f"SELECT {selected} FROM {self._from}")
        columns = {name: fetched[f"c{i}"] for i, name in enumerate((*numbers, *values))}
        if not next(iter(columns.values())).size:
            raise ValueError(f"{self.name} has no rows")
        found: dict[str, NDArray[Any]] = {name: self._all_numbers(name, columns[name]) for name in numbers}
        return found | {name: _with_none(columns[name]) for name in values}

    def _all_numbers(self, name: str, column: NDArray[Any]) -> NDArray[np.float64]:
        missing = np.ma.getmaskarray(column)
        if missing.any():
            row = int(np.argmax(missing))
            no_number = f"{_as_number(name)} IS NULL LIMIT 1"
            query = f"SELECT {quote_name(name)} AS value FROM {self._from} WHERE {no_number}"
            value = _with_none(self._fetch(query)["value"])[0]
            what = "no value" if value is None else repr(str(value))
            raise ValueError(
                f"column {name!r} of {self.name} has {what} in data row {row + 1} where numbers are expected"
            )
        return np.ma.getdata(column).astype(np.float64, copy=False)

    def _reader(self, kind: str) -> str:
        paths = "[" + ", ".join(map(quote_text, self._paths)) + "]"
        if kind in _READERS:
            return _READERS[kind].format(paths)
        delimiter, names = self._header(paths, _DELIMITERS[kind])
        columns = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
        return (
            f"read_csv({paths}, auto_detect = false, header = true, delim = {quote_text(delimiter)}, "
            f"quote = '\"', escape = '\"', columns = {{{columns}}})"
        )

    def _header(self, paths: str, delimiters: str) -> tuple[str, list[str]]:
        """The delimiter and the column names of a CSV, from its first line."""
        lines = self._fetch(
            f"SELECT line FROM read_csv({paths}, auto_detect = false, header = false, delim = '\x01', "
            "quote = '', escape = '', columns = {'line': 'VARCHAR'}) LIMIT 1"
        )["line"]
        if not lines.size:
            raise ValueError(f"{self.name} is empty")
        line = str(lines[0]).removeprefix("\ufeff")
        delimiter = max(delimiters, key=re.sub(r'"(?:[^"]|"")*"', "", line).count)
        names = next(csv.reader([line], delimiter=delimiter))
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise ValueError(f"{self.name} has more than one column named {repeated!r}")
        return delimiter, names

    def _fetch(self, query: str) -> dict[str, NDArray[Any]]:
        try:
            return self._connection.execute(query).fetchnumpy()
        except self._error as error:
            raise ValueError(f"{self.name} cannot be read: {_first_reason(str(error))}") from error


def _as_number(name: str) -> str:
    """A column as numbers, NULL where it is none; true and false are 1 and 0."""
    text = f"CAST({quote_name(name)} AS VARCHAR)"
    truth = f"CASE lower({text}) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
    return f"coalesce({truth}, TRY_CAST({text} AS DOUBLE))"


def _with_none(column: NDArray[Any]) -> NDArray[Any]:
    """A fetched column with None for what is missing."""
    if not np.ma.is_masked(column):
        return np.asarray(np.ma.getdata(column))
    values = np.ma.getdata(column).astype(object)
    values[np.ma.getmaskarray(column)] = None
    return values


def _kind(paths: Sequence[str]) -> str:
    """The kind of the files, from the endings of their names."""
    kinds = {_ending(path) for path in paths}
    if len(kinds) > 1:
        raise ValueError(f"the files are of several kinds ({', '.join(sorted(kinds))}) where one is expected")
    kind = kinds.pop()
    if kind not in _READERS and kind not in _DELIMITERS:
        known = ", ".join(f".{ending}" for ending in (*_DELIMITERS, *_READERS))
        raise ValueError(f"{paths[0]} ends with none of {known}, so its kind is not known")
    return kind


def _ending(path: str) -> str:
    name = PurePath(path)
    if name.suffix.lower() in {".gz", ".zst"}:
        name = name.with_suffix("")
    return name.suffix.lower().removeprefix(".")


def _first_reason(message: str) -> str:
    """Of an engine's long message, where it happened and what, in one line."""
    lines = [line.strip() for line in message.splitlines()]
    reason = re.sub(r"^[A-Za-z ]+ Error: ", "", lines[0])
    at_line = re.search(r"CSV Error on Line: (\d+)", reason)
    if at_line:
        what = next(
            (line for line in lines[1:] if line and not line.startswith("Original Line")), "malformed"
        )
        return f"line {at_line.group(1)}: {what}"
    return reason
