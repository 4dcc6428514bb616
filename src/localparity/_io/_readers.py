"""What DuckDB reads files of each kind by: CSV with a header, JSON by its keys, Parquet, and workbooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from localparity._io._csv import DELIMITERS, distinct, header_of, repeated
from localparity._io._encodings import Transcoded, as_encoding
from localparity._io._packed import read_through
from localparity._io._sheets import SHEETS, read_sheet
from localparity._io._sql import quote_text, with_none

_JSON_FORMATS = {
    "json": ("array", "unstructured"),
    "jsonl": ("newline_delimited",),
    "ndjson": ("newline_delimited",),
}
KINDS = (*DELIMITERS, "parquet", "pq", *_JSON_FORMATS, *SHEETS)
_FIRST_LINES = 16
_LONGEST_LINE = 2**24
_SHEET = "localparity_sheet"
_JSON_TYPES = {"ARRAY": "an array", "VARCHAR": "a text", "BOOLEAN": "true or false", "NULL": "null"}


class Files:
    """Files of one kind.

    Attributes
    ----------
    paths : list of str
        Their paths, also globs.
    name : str
        What messages call them.
    repeated : set of str
        The names that several of their columns have, apart from case.
    typed : bool
        Whether they can say that there is no value, as Parquet and JSON can.
    """

    def __init__(self, paths: list[str], *, encoding: str | None, sheet: str | None) -> None:
        folder = next((path for path in paths if Path(path).is_dir()), None)
        if folder is not None:
            raise ValueError(f"{folder} is a folder; name its files, e.g. {folder}/*.csv")
        self.paths, self.repeated = paths, set[str]()
        self.name = f"{paths[0]} and {len(paths) - 1} more" if len(paths) > 1 else paths[0]
        self._encoding, self._sheet, self._copies = as_encoding(encoding), sheet, Transcoded()

    def rows(self, fetch: Callable[[str], Any], register: Callable[[str, Any], Any]) -> str:
        """The SQL of the rows, given what runs a query and what gives arrays a name."""
        self._fetch, self._register = fetch, register
        kind = kind_of(self.paths)
        self.typed = kind not in (*DELIMITERS, *SHEETS)
        return self._reader(kind)

    def _reader(self, kind: str) -> str:
        if kind in SHEETS:
            return self._sheet_reader()
        if kind not in (*_JSON_FORMATS, *DELIMITERS):
            return f"read_parquet({_listed(self.paths)})"
        last = {file: read_through(file) for file in self._files()}
        copies = {self._copies.copy(file, self._encoding): file for file in last}
        paths = _listed(self.paths if set(copies) == set(last) else copies)
        if kind in _JSON_FORMATS:
            return self._json_reader(paths, _JSON_FORMATS[kind], last)
        first, *others = copies
        lines = self._first_lines(first)
        try:
            header = header_of(lines, kind)
        except ValueError as error:
            raise ValueError(f"{copies[first] if others else self.name} {error}") from error
        for other in others:
            if self._first_lines(other)[: header.skipped + 1] != lines[: header.skipped + 1]:
                raise ValueError(
                    f"{copies[other]} must have the columns of {copies[first]}, in the same order"
                )
        # DuckDB overlooks a field too many that is NULL. No value is, by a text that no field holds, until
        # empty ones are made so.
        return (
            f"(SELECT nullif(COLUMNS(*), '') FROM read_csv({paths}, auto_detect = false, header = true, "
            f"skip = {header.skipped}, delim = {quote_text(header.delimiter)}, quote = '\"', escape = '\"', "
            f"nullstr = '\n', allow_quoted_nulls = false, columns = {_texts(self._distinct(header.names))}))"
        )

    def _sheet_reader(self) -> str:
        """The only sheet of the only workbook, or the one that was named."""
        if len(self.paths) > 1:
            raise ValueError(f"one workbook is read at a time, got {self.name}")
        file = self.paths[0]
        if not Path(file).is_file():
            raise ValueError(f"{file} cannot be read: there is no file {file}")
        names, columns = read_sheet(file, self._sheet)
        self._register(_SHEET, dict(zip(self._distinct(names), columns, strict=True)))
        return _SHEET

    def _distinct(self, names: Sequence[str]) -> list[str]:
        """The names of columns, of which those that occur more than once cannot be asked for."""
        self.repeated = repeated(names)
        return distinct(names)

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
            if first == "array" and ending_of(file, packed=True) == "zst":
                end = self._last_text(file)
            if first == "array" and end.strip() and not end.rstrip().endswith(b"]"):
                raise ValueError(f"{file} cannot be read: the array is not closed at its end")
        if not names:
            raise ValueError(f"{self.name} has no rows")
        return f"read_json({paths}, auto_detect = false, format = '{first}', columns = {_texts(names)})"

    def _last_text(self, file: str) -> bytes:
        """The end of the last line of a file that is packed by zstd, which only DuckDB can unpack."""
        line = f"SELECT line, row_number() OVER () AS place FROM {_lines(file, longest=_LONGEST_LINE)}"
        query = f"SELECT arg_max(right(line, 16), place) AS line FROM ({line}) WHERE trim(line) <> ''"
        try:
            return str(self._fetch(query)["line"][0]).encode()
        except ValueError as error:
            if "Maximum line size" not in str(error):
                raise
            raise ValueError(
                f"{file} has a line of more than {_LONGEST_LINE:,} bytes; unpack it, or write JSON lines"
            ) from error

    def _keys(self, objects: str) -> list[str]:
        """The keys of all objects, those that most have first."""
        keys = "CASE json_type(json) WHEN 'OBJECT' THEN json_keys(json) END"
        found = self._fetch(
            f"SELECT {keys} AS keys FROM {objects} GROUP BY keys ORDER BY count(*) DESC, keys"
        )
        if np.ma.is_masked(found["keys"]):
            other = self._fetch(
                "SELECT json_type(json) AS kind, row FROM (SELECT *, row_number() OVER () AS row "
                f"FROM {objects}) WHERE {keys} IS NULL ORDER BY row LIMIT 1"
            )
            kind = _JSON_TYPES.get(str(with_none(other["kind"])[0] or "NULL"), "a number")
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
        for path in self.paths:
            found = self._fetch(f"SELECT file FROM glob({quote_text(path)}) ORDER BY file")["file"].tolist()
            if not found:
                raise ValueError(f"{self.name} cannot be read: there is no file {path}")
            files += map(str, found)
        return files

    def _first_lines(self, file: str) -> list[str | None]:
        lines = self._fetch(f"SELECT line FROM {_lines(file)} LIMIT {_FIRST_LINES}")["line"]
        if not lines.size:
            raise ValueError(f"{self.name} is empty")
        first, *others = with_none(lines).tolist()
        return [first and first.removeprefix("\ufeff"), *others]

    def _check_distinct(self, names: Sequence[str]) -> None:
        again = repeated(names)
        if again:
            raise self.has_several(next(name for name in names if name in again))

    def has_several(self, name: str) -> ValueError:
        """The error for a name that several columns have."""
        return ValueError(f"{self.name} has more than one column named {name!r}, apart from case")


def _lines(file: str, *, longest: int = 2**21) -> str:
    """The SQL of the lines of a text file."""
    return (
        f"read_csv({quote_text(file)}, auto_detect = false, header = false, delim = '\x01', quote = '', "
        f"escape = '', max_line_size = {longest}, columns = {{'line': 'VARCHAR'}})"
    )


def _listed(paths: Iterable[str]) -> str:
    """The SQL of a list of files."""
    return "[" + ", ".join(map(quote_text, paths)) + "]"


def _texts(names: Iterable[str]) -> str:
    """The SQL of columns that are texts."""
    return "{" + ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names) + "}"


def kind_of(paths: Sequence[str]) -> str:
    """The kind of the files, from the endings of their names."""
    kinds = {ending_of(path) for path in paths}
    if len(kinds) > 1:
        raise ValueError(f"all files must be of one kind, got {', '.join(sorted(kinds))}")
    kind = kinds.pop()
    if kind not in KINDS:
        known = ", ".join(f".{ending}" for ending in KINDS)
        raise ValueError(f"{paths[0]} must end in one of {known}")
    return kind


def ending_of(path: str, *, packed: bool = False) -> str:
    """The ending of a file's name; of a packed one, that before it unless `packed`."""
    name = PurePath(path)
    if name.suffix.lower() in {".gz", ".zst"} and not packed:
        name = name.with_suffix("")
    return name.suffix.lower().removeprefix(".")
