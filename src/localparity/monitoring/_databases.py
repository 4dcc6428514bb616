"""The databases that can keep a monitor: how each is connected to, locked and asked."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit, urlunsplit

from localparity._io._connection import connect
from localparity._io._files import locked, rewriting
from localparity._validation import require

Execute = Callable[..., list[Any]]
"""Takes a query with ? for each value, and the values; returns the rows."""

_LOCK = "SELECT pg_advisory_xact_lock(hashtext('localparity'), hashtext(?))"
_DEFAULT = "monitor"


class Database(Protocol):
    """A database; `name` has no password, and `blob` is its type of bytes."""

    name: str
    blob: str

    def transaction(self, *, lock: str | None = None) -> AbstractContextManager[Execute]:
        """Inside, one transaction; those that lock the same monitor wait for each other."""
        ...

    def has_tables(self, execute: Execute) -> bool:
        """Whether the tables of monitors were made."""
        ...


class Postgres:
    """A PostgreSQL server."""

    blob = "BYTEA"

    def __init__(self, url: SplitResult) -> None:
        self.name = _without_password(url)
        self._url = urlunsplit(url._replace(fragment=""))
        self._secrets = {url.password or "", *parse_qs(url.query).get("password", [])}
        self._connection: Any = None

    @contextmanager
    def transaction(self, *, lock: str | None = None) -> Iterator[Execute]:
        """Inside, one transaction; a monitor is locked to its end, and so is the making of tables."""
        psycopg = require("psycopg", extra="warehouse")

        def execute(query: str, *values: Any) -> list[Any]:
            cursor = self._connection.execute(query.replace("?", "%s"), values, prepare=False)
            return [] if cursor.description is None else list(cursor.fetchall())

        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(self._url, autocommit=True)
                weakref.finalize(self, self._connection.close)
            with self._connection.transaction():
                if lock is not None:
                    execute(_LOCK, lock)
                    if not self.has_tables(execute):
                        execute(_LOCK, "")
                yield execute
        except psycopg.Error as error:
            raise OSError(f"{self.name}: {self._hidden(str(error))}") from None

    def has_tables(self, execute: Execute) -> bool:
        """Whether the tables of monitors were made, even where the user may not read them."""
        return bool(execute("SELECT 1 WHERE to_regclass('localparity_monitors') IS NOT NULL"))

    def _hidden(self, message: str) -> str:
        """A message without the password."""
        for secret in (self._secrets | set(map(unquote, self._secrets))) - {""}:
            message = message.replace(secret, "***")
        return " ".join(message.split())


class DuckDb:
    """A file of DuckDB. Writers wait for each other; each changes a copy, which then takes the file's place.

    DuckDB changes its file in place when it closes it, and a process that is killed meanwhile can leave one
    that nobody can read.
    """

    blob = "BLOB"

    def __init__(self, path: Path) -> None:
        self.name = f"duckdb:///{path}"
        self._path = path

    @contextmanager
    def transaction(self, *, lock: str | None = None) -> Iterator[Execute]:
        """Inside, one transaction; nothing is made by a question to a file that does not exist."""
        import duckdb

        try:
            if lock is not None:
                with self._changing() as execute:
                    yield execute
            elif self._path.exists():
                with closing(connect(str(self._path), read_only=True)) as connection:
                    yield _executing(connection)
            else:
                yield lambda query, *values: []
        except duckdb.Error as error:
            raise OSError(f"{self.name}: {' '.join(str(error).split())}") from None

    @contextmanager
    def _changing(self) -> Iterator[Execute]:
        """Inside, a transaction in a copy of the file, which replaces the file at the end."""
        with locked(self._path.with_name(f"{self._path.name}.lock")):
            if self._path.with_name(f"{self._path.name}.wal").exists():
                connect(str(self._path)).close()  # puts what another program left there into the file
            with rewriting(self._path) as copy, closing(connect(str(copy))) as connection:
                connection.begin()
                yield _executing(connection)
                connection.commit()
                connection.execute("CHECKPOINT")

    def has_tables(self, execute: Execute) -> bool:
        """Whether the tables of monitors were made."""
        return bool(execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'localparity_monitors'"))


def _executing(connection: Any) -> Execute:
    return lambda query, *values: connection.execute(query, values).fetchall()


def is_database(location: str) -> bool:
    """Whether a location is the URL of a database rather than a folder.

    Examples
    --------
    >>> is_database("postgresql://host/scores#credit"), is_database("kept")
    (True, False)
    """
    return re.match(r"(postgres(ql)?|duckdb)://", location) is not None


def open_database(url: str) -> tuple[Database, str]:
    """The database of a URL, and the name of the monitor that follows #.

    Examples
    --------
    >>> database, monitor = open_database("duckdb:///kept.duckdb#credit")
    >>> database.name, monitor
    ('duckdb:///kept.duckdb', 'credit')
    """
    parts = urlsplit(url)
    monitor = unquote(parts.fragment) or _DEFAULT
    if parts.scheme == "duckdb":
        if parts.netloc or not parts.path.strip("/"):
            raise ValueError(f"a file of DuckDB must be given as duckdb:///FILE, got {url!r}")
        return DuckDb(Path(unquote(parts.path[1:]))), monitor
    return Postgres(parts), monitor


def _without_password(url: SplitResult) -> str:
    """The URL of a server with its user, and without a password or options."""
    try:
        port = f":{url.port}" if url.port else ""
    except ValueError:
        port = None
    if port is None or "@" in f"{url.path}{url.query}{url.fragment}":
        # Which part is the password cannot be told, so that nothing of it is shown.
        raise ValueError("the URL of a database must have its user and password percent-encoded")
    return f"{url.scheme}://{f'{url.username}@' if url.username else ''}{url.hostname or ''}{port}{url.path}"
