"""How DuckDB reads files of each kind: CSV with a header, JSON by its keys, Parquet, and workbooks."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePath
from shutil import rmtree
from typing import Any, BinaryIO, NamedTuple
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from localparity._io._duckdb import quote_text, with_none
from localparity._io._files import private_folder
from localparity._validation import InputError, require, setting, unknown_name

# The first lines of a CSV: what separates its values, and what its columns are called.


DELIMITERS = {"csv": ",;\t|", "txt": ",;\t|", "tsv": "\t"}
"""What may separate values, by the endings of files."""

_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""Excel's own first line."""


class Header(NamedTuple):
    """How a CSV begins: what separates values, the names of the columns, and the lines before those."""

    delimiter: str
    names: list[str]
    skipped: int


def header_of(lines: Sequence[str | None], kind: str) -> Header:
    r"""The header in the first lines of a CSV, of which blank ones are None.

    Examples
    --------
    >>> header_of(["sep=;", None, "p ; sex;"], "csv")
    Header(delimiter=';', names=['p', 'sex', 'column2'], skipped=2)
    """
    delimiter, skipped = None, 0
    for line in lines:
        found = None if line is None else _SEPARATOR_LINE.fullmatch(line.strip())
        if line is not None and line.strip() and not found:
            break
        delimiter, skipped = found[1] if found else delimiter, skipped + 1
    else:
        raise InputError("has no line with the names of its columns")
    assert line is not None
    number = skipped + 1
    if line.count('"') % 2:
        raise InputError(f"cannot be read: line {number}: a quote in the header is not closed")
    delimiter = delimiter or delimiter_of(line, kind)
    try:
        found_names = next(csv.reader([line], delimiter=delimiter, skipinitialspace=delimiter != " "))
    except csv.Error as error:  # such as a name of more than 128 KB
        raise InputError(f"cannot be read: line {number}: {error}") from error
    names = [name.strip() or f"column{place}" for place, name in enumerate(found_names)]
    return Header(delimiter, names, skipped)


def delimiter_of(line: str, kind: str) -> str:
    """The delimiter of a CSV, from its first line."""
    return max(DELIMITERS[kind], key=re.sub(r'"(?:[^"]|"")*"', "", line).count)


def repeated(names: Sequence[str]) -> set[str]:
    """The names that occur more than once, apart from case, which SQL ignores."""
    times = Counter(name.casefold() for name in names)
    return {name for name in names if times[name.casefold()] > 1}


def distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number after each that occurred before, apart from case."""
    found: list[str] = []
    seen: set[str] = set()
    for name in names:
        new, times = name, 1
        while new.casefold() in seen:
            times += 1
            new = f"{name}.{times}"
        seen.add(new.casefold())
        found.append(new)
    return found


# Text files that are not UTF-8, copied to ones that are.


_READ = 2**20
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def as_encoding(encoding: str | None) -> str | None:
    """The name of a text encoding, as Python calls it; None for UTF-8."""
    if encoding is None:
        return None
    try:
        name = codecs.lookup(encoding).name
        "".encode(encoding)  # which a codec of another kind, such as base64, refuses
    except (LookupError, TypeError, ValueError):
        raise InputError(
            f"must be the name of an encoding, such as 'latin-1', got {encoding!r}", "encoding"
        ) from None
    return None if name in ("utf-8", "utf-8-sig", "ascii") else name


class Transcoded:
    """Copies of text files in UTF-8, private and deleted with this object."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def copy(self, file: str, encoding: str | None) -> str:
        """The path of a file's copy; of the file itself where it is UTF-8, or not on this machine."""
        encoding = (encoding or _marked(file)) if Path(file).is_file() else None
        if encoding is None:
            return file
        path = self._new_path(file)
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            with _opened(file) as source, path.open("w", encoding="utf-8", newline="") as copy:
                while read := source.read(_READ):
                    copy.write(decoder.decode(read))
                copy.write(decoder.decode(b"", final=True))
        except UnicodeError as error:
            raise InputError(f"cannot be read as {encoding}: {error}", file=file) from error
        return str(path)

    def evened(self, file: str) -> str:
        """The path of a file's copy, all of whose lines end with one character."""
        path = self._new_path(file)
        with _opened(file) as source, path.open("wb") as copy:
            for line in source:
                copy.write(line[:-2] + b"\n" if line.endswith(b"\r\n") else line)
        return str(path)

    def _new_path(self, file: str) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(dir=private_folder() or None))
            finalize(self, rmtree, self._folder, ignore_errors=True)
        return self._folder / f"{len(list(self._folder.iterdir()))}.{Path(file).name.removesuffix('.gz')}"


def _marked(file: str) -> str | None:
    """The encoding that the first bytes of a file reveal: a mark, or zeros in every other byte of ASCII."""
    with _opened(file) as stream:
        first = stream.read(64)
    for mark, encoding in _MARKS.items():
        if first.startswith(mark):
            return encoding
    for start, encoding in enumerate(("utf-16-be", "utf-16-le")):
        if len(first) > 3 and not any(first[start::2]) and all(first[1 - start :: 2]):
            return encoding
    return None


def _opened(file: str) -> gzip.GzipFile | BinaryIO:
    return gzip.open(file) if file.lower().endswith(".gz") else Path(file).open("rb")


def _ends_in_both_ways(file: str) -> bool:
    """Whether a text file has lines that end with CR LF, and others with LF alone."""
    with_return = without = False
    with _opened(file) as stream:
        while read := stream.read(_READ):
            read += stream.read(1) if read.endswith(b"\r") else b""
            ends = read.count(b"\r\n") if b"\r" in read else 0
            with_return |= ends > 0
            without |= read.count(b"\n") > ends if ends else b"\n" in read
            if with_return and without:
                return True
    return False


# Whether a packed file is whole, which DuckDB does not check.


_LAST = 2**21 + 1
"""One more than the bytes of a line that DuckDB reads; it overlooks a last line of very many more."""


def read_through(file: str) -> bytes:
    """The last bytes of a file's content, after a check that one packed by gzip is whole.

    They are empty where they are not known, as of a file on another machine.
    """
    path, last = Path(file), b""
    if not path.is_file():
        return last
    with _opened(file) as stream:
        if isinstance(stream, gzip.GzipFile):
            try:
                while read := stream.read(_READ):  # at the end, the checksum and the size are compared
                    last = (last + read)[-_LAST:]
            except (EOFError, OSError, zlib.error) as error:
                raise InputError(f"cannot be read: {error}", file=file) from error
            return last
        stream.seek(max(0, path.stat().st_size - _LAST))
        return stream.read()


# Sheets of workbooks, as Excel and LibreOffice write them: their columns as arrays.


SHEETS = ("xlsx", "xlsm", "xls", "ods")
"""The endings of workbooks."""


def read_sheet(file: str, sheet: str | None) -> tuple[list[str], list[NDArray[Any]]]:
    """The names of a sheet's columns and their values, None where missing; the only sheet, or the named one.

    Rows without any value are left out, above the names and below them.
    """
    calamine = require("python_calamine", extra="excel")
    _check_cells(file)
    try:
        workbook = calamine.load_workbook(file)
        name = _sheet_name(file, workbook, sheet)
        cells = workbook.get_sheet_by_name(name).to_python()
    except calamine.CalamineError as error:
        raise InputError(f"cannot be read: {error}", file=file) from error
    rows = [row for row in cells if any(value not in ("", None) for value in row)]
    if len(rows) < 2:
        raise InputError(f"has no rows in sheet {name!r}" if rows else "is empty", file=file)
    header, *rows = rows
    names = [str(value).strip() or f"column{place}" for place, value in enumerate(header)]
    return names, [_column(values) for values in zip(*rows, strict=True)]


_MOST_CELLS, _CELL_BYTES = 10**8, 20
_CELL = re.compile(rb'\br="([A-Z]{1,3})([0-9]{1,7})"')


def _check_cells(file: str) -> None:
    """Refuse a workbook of Excel that would take all memory: calamine makes every cell up to the last one."""
    if not zipfile.is_zipfile(file):
        return
    try:
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                if name.startswith("xl/"):
                    _check_part(file, archive, name)
    except (EOFError, OSError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        raise InputError(f"cannot be read: {error}", file=file) from error


def _check_part(file: str, archive: zipfile.ZipFile, name: str) -> None:
    """Refuse a sheet, or another part of a workbook, that is too large once it is unpacked."""
    size, tags, row, column, rest = 0, 0, 0, 0, b""
    with archive.open(name) as stream:
        while read := stream.read(_READ):
            size, tags = size + len(read), tags + read.count(b"<")
            for letters, digits in _CELL.findall(rest + read):
                row, column = max(row, int(digits)), max(column, _place(letters))
            if max(size // _CELL_BYTES, tags, row * column) > _MOST_CELLS:
                reason = f"{name} has more than {_MOST_CELLS:,} cells"
                raise InputError(f"cannot be read: {reason}; save it as CSV", file=file)
            rest = read[-16:]


def _place(letters: bytes) -> int:
    """The number of a column, which are called A to Z, AA to ZZ and so on."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _sheet_name(file: str, workbook: Any, sheet: str | None) -> str:
    names: list[str] = workbook.sheet_names
    if not names:
        raise InputError("has no sheets", file=file)
    if sheet is None:
        filled = [name for name in names if workbook.get_sheet_by_name(name).total_height > 0] or names
        if len(filled) > 1:
            listed = ", ".join(map(repr, filled))
            raise InputError(f"has the sheets {listed}; name one, e.g. {setting(sheet=filled[0])}", file=file)
        return filled[0]
    if sheet not in names:
        raise unknown_name(f"sheet in {file} named", sheet, names)
    return sheet


def _column(values: Sequence[Any]) -> NDArray[Any]:
    """Numbers as numbers, whole ones as such, and everything else as texts."""
    given = [value for value in values if value not in ("", None)]
    kinds = {type(value) for value in given}
    if kinds and kinds <= {int, float}:
        missing = [value in ("", None) for value in values]
        whole = all(float(value).is_integer() and abs(value) < 2**53 for value in given)
        dtype = np.int64 if whole else np.float64
        found = np.array([0 if empty else value for value, empty in zip(values, missing, strict=True)], dtype)
        return np.ma.array(found, mask=missing)
    return np.array([None if value in ("", None) else _text(value) for value in values], dtype=object)


def _text(value: Any) -> str:
    """A value as its sheet shows it, without a decimal point where it is whole."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


_JSON_FORMATS = {
    "json": ("array", "unstructured"),
    "jsonl": ("newline_delimited",),
    "ndjson": ("newline_delimited",),
}
KINDS = (*DELIMITERS, "parquet", "pq", *_JSON_FORMATS, *SHEETS)
_FIRST_LINES = 16
_SHEET = "localparity_sheet"
_JSON_TYPES = {"ARRAY": "an array", "VARCHAR": "a text", "BOOLEAN": "true or false", "NULL": "null"}


class Files:
    """Files of one kind, given by paths and globs.

    `repeated` are the names that several columns have, apart from case; `typed` is whether the files can say
    that a value is missing, as Parquet and JSON can.
    """

    def __init__(self, paths: list[str], *, encoding: str | None, sheet: str | None) -> None:
        folder = next((path for path in paths if Path(path).is_dir()), None)
        if folder is not None:
            raise InputError(f"is a folder; name its files, e.g. {folder}/*.csv", file=folder)
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
        for file, end in last.items():
            if len(end) == _LAST and not re.search(rb"[\r\n]", end):
                raise InputError(
                    f"cannot be read: its last line has more than {_LAST - 1:,} bytes", file=file
                )
        mixed = any(_ends_in_both_ways(copy) for copy in copies if Path(copy).is_file())
        try:
            reader = self._csv_reader(paths, copies, kind)
            if mixed:  # which DuckDB takes inside quotes alone
                self._fetch(f"SELECT count(*) AS n FROM {reader}")
        except InputError:
            if not mixed:
                raise
            copies = {self._copies.evened(copy): file for copy, file in copies.items()}
            return self._csv_reader(_listed(copies), copies, kind)
        return reader

    def _csv_reader(self, paths: str, copies: Mapping[str, str], kind: str) -> str:
        """The reader of text files, by the header of the first; `copies` are what is read of each."""
        first, *others = copies
        lines = self._first_lines(first)
        try:
            header = header_of(lines, kind)
        except InputError as error:
            error.file = copies[first] if others else self.name
            raise
        for other in others:
            if self._first_lines(other)[: header.skipped + 1] != lines[: header.skipped + 1]:
                raise InputError(
                    f"must have the columns of {copies[first]}, in the same order", file=copies[other]
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
            raise InputError(f"one workbook is read at a time, got {self.name}")
        file = self.paths[0]
        if not Path(file).is_file():
            raise InputError("does not exist", file=file)
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
            if others and "Expected top-level JSON array" in str(error):  # DuckDB says it in words alone
                return self._json_reader(paths, others, last)
            raise
        for file, end in last.items():
            if first == "array" and end.strip() and not end.rstrip().endswith(b"]"):
                raise InputError("cannot be read: the array is not closed at its end", file=file)
        if not names:
            raise InputError("has no rows", file=self.name)
        return f"read_json({paths}, auto_detect = false, format = '{first}', columns = {_texts(names)})"

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
            row = int(other["row"][0])
            reason = f"must have an object in each row, got {kind} at data row {row}"
            raise InputError(reason, file=self.name, row=row - 1)
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
                raise InputError("does not exist", file=path)
            files += map(str, found)
        return files

    def _first_lines(self, file: str) -> list[str | None]:
        lines = self._fetch(f"SELECT line FROM {_lines(file)} LIMIT {_FIRST_LINES}")["line"]
        if not lines.size:
            raise InputError("is empty", file=self.name)
        first, *others = with_none(lines).tolist()
        return [first and first.removeprefix("\ufeff"), *others]

    def _check_distinct(self, names: Sequence[str]) -> None:
        again = repeated(names)
        if again:
            raise self.has_several(next(name for name in names if name in again))

    def has_several(self, name: str) -> InputError:
        """The error for a name that several columns have."""
        return InputError(f"has more than one column named {name!r}, apart from case", file=self.name)


def _lines(file: str) -> str:
    """The SQL of the lines of a text file."""
    return (
        f"read_csv({quote_text(file)}, auto_detect = false, header = false, delim = '\x01', quote = '', "
        "escape = '', max_line_size = 2097152, columns = {'line': 'VARCHAR'})"
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
        raise InputError(f"all files must be of one kind, got {', '.join(sorted(kinds))}")
    kind = kinds.pop()
    if kind not in KINDS:
        known = ", ".join(f".{ending}" for ending in KINDS)
        raise InputError(f"must end in one of {known}", file=paths[0])
    return kind


def ending_of(path: str) -> str:
    """The ending of a file's name; of a packed one, that before it."""
    return PurePath(path.lower().removesuffix(".gz")).suffix.removeprefix(".")
