"""Connections to DuckDB, which reach no other machine unless they are told to."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, TypeVar

from localparity._io._files import private_folder
from localparity._progress import Forecast
from localparity._text import shown_address
from localparity._validation import InputError, setting

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray


T = TypeVar("T")

_UNQUOTED = re.compile(r"[\s'\"`<>]")
_REMOTE = re.compile(r"(?!file://)[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def connect(*, memory_limit: str | None = None, allow_remote: bool = False) -> DuckDBPyConnection:
    """A connection; `allow_remote` lets DuckDB install what it needs to read from other machines."""
    import duckdb

    allowed = str(allow_remote).lower()
    config: dict[str, Any] = {"autoinstall_known_extensions": allowed, "autoload_known_extensions": allowed}
    config["temp_directory"] = private_folder()  # DuckDB's own would be one that others can read
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    connection = duckdb.connect(config=config)
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    return connection


def interruptible(connection: DuckDBPyConnection, work: Callable[[], T]) -> T:
    """What `work` returns; Ctrl-C ends the query that it runs on the connection.

    DuckDB looks for signals between its tasks, which may never come: another thread runs the query.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    future = Future[T]()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
        with Forecast(100, "reading") as forecast:
            while not future.done():  # a signal that comes just before a wait does not end it
                wait([future], timeout=0.5)
                forecast.advance(max(connection.query_progress() - forecast.done, 0.0))
    except KeyboardInterrupt:
        while thread.is_alive() and not future.done():  # an interrupt before the query begins does nothing
            connection.interrupt()
            wait([future], timeout=0.05)
        raise
    return future.result()


def remote_among(paths: Iterable[str]) -> list[str]:
    """The paths that are on other machines."""
    return [path for path in paths if _REMOTE.match(path)]


def check_remote(paths: Iterable[str], *, allow_remote: bool) -> None:
    """Refuse paths on other machines unless these may be reached."""
    remote = remote_among(paths)
    if remote and not allow_remote:
        shown = shown_address(remote[0])
        raise InputError(f"is on another machine; pass {setting(allow_remote=True)} to fetch it", file=shown)
    for path in remote:
        if _UNQUOTED.search(path):
            shown = shown_address(path)
            raise InputError("must have its spaces and quotes percent-encoded, as %20 and %27", file=shown)


# SQL: names and texts in it, and what comes back.


def quote_name(name: str) -> str:
    """A column name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A text as a quoted SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def text_of(name: str) -> str:
    """A column as texts."""
    return f"CAST({quote_name(name)} AS VARCHAR)"


def with_none(column: NDArray[Any]) -> NDArray[Any]:
    """A fetched column with None for missing values."""
    import numpy as np

    if not np.ma.is_masked(column):
        return np.asarray(np.ma.getdata(column))
    values = np.ma.getdata(column).astype(object)
    values[np.ma.getmaskarray(column)] = None
    return values


# DuckDB's long messages about files, as one line.


_ADVICE = {
    "Invalid unicode": f"pass its encoding, e.g. {setting(encoding='latin-1')}",
    "requires the extension": f"pass {setting(allow_remote=True)} to let DuckDB install it",
    "state machine": "do all of its lines end alike, and are its quotes closed?",
}


def first_reason(message: str) -> str:
    """The line number and the reason in one of DuckDB's long messages, as one line.

    Its errors have no fields, so the text is all there is to read.
    """
    lines = [line.strip() for line in message.splitlines()]
    reason = re.sub(r"^[A-Za-z ]+ Error: ", "", lines[0])
    at_line = re.search(r"CSV Error on Line: (\d+)", reason)
    if at_line:
        reasons = (line for line in lines[1:] if line and not line.startswith("Original Line"))
        reason = f"line {at_line.group(1)}: {next(reasons, 'malformed')}"
    # DuckDB counts the rows before the malformed one, and two more.
    in_row = re.search(
        r"^Malformed JSON in file .*, at byte (\d+) in (?:line|record/value) (\d+): (.*?)\.", reason
    )
    if in_row:
        return f"data row {int(in_row.group(2)) - 1}: {in_row.group(3)} at its byte {in_row.group(1)}"
    for sign, advice in _ADVICE.items():
        if sign in reason:
            return f"{reason.rstrip('.')}; {advice}"
    return reason
