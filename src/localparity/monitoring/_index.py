"""An index of the batches that a monitor has counted, so that an append does not read every period.

The index can be deleted at any time: it only finds what the periods hold. A batch is in the index, on disk,
before its period is written. After a kill between the two, the newest batch of the index is not in its
period: the index is stale and is rebuilt. So it never lacks a batch that was counted. A changed byte could
hide one, so the sha256 of the index is kept beside it, and an index that does not match it is stale too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from localparity._io._files import sha256_of

_FORMAT = 2
_TABLES = f"""
CREATE TABLE batches (id TEXT PRIMARY KEY, digest TEXT NOT NULL, period TEXT NOT NULL);
CREATE INDEX digests ON batches (digest);
CREATE TABLE periods (period TEXT PRIMARY KEY, look INTEGER NOT NULL);
CREATE INDEX looks ON periods (look);
PRAGMA user_version = {_FORMAT};
"""

StaleIndexError = sqlite3.DatabaseError
"""Raised where the index is missing, damaged, of another format, or does not match the periods."""


class Batch(NamedTuple):
    """A batch that was counted: its id, the sha256 of its rows, and its period."""

    id: str
    digest: str
    period: str


class BatchIndex:
    """The batches of a monitor, by id and by the sha256 of their rows, in a SQLite file.

    The file is opened on first use; `close` ends it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._checksum = path.with_suffix(".sha256")
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Inside, what SQLite complains of is that the file cannot be written."""
        try:
            yield
        except sqlite3.Error as error:
            raise OSError(f"{self._path} cannot be written: {error}") from error

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def find(self, column: str, value: str) -> Batch | None:
        """The batch with an "id" or a "digest"."""
        return self._batch(f"WHERE {column} = ?", value)

    def newest(self) -> Batch | None:
        """The batch that was added last."""
        return self._batch("ORDER BY rowid DESC")

    def periods(self) -> tuple[int, int]:
        """The number of periods, and the number of the last look."""
        query = "SELECT count(*), coalesce(max(look), 0) FROM periods"
        found: tuple[int, int] = self._open().execute(query).fetchone()
        return found

    def newer_periods(self, period: str) -> int:
        """The number of periods that are newer than one."""
        query = "SELECT count(*) FROM periods WHERE period > ?"
        found: int = self._open().execute(query, (period,)).fetchone()[0]
        return found

    def add(self, batch: Batch, look: int) -> None:
        """Add a batch and its look at its period; both are on disk when this returns."""
        with self._open() as connection:
            connection.execute("INSERT INTO batches VALUES (?, ?, ?)", batch)
            connection.execute("INSERT OR REPLACE INTO periods VALUES (?, ?)", (batch.period, look))
        self._keep_checksum()

    def rebuild(self, periods: Iterable[tuple[str, int, Iterable[Batch]]]) -> None:
        """Index some periods afresh, given the name, the last look and the batches of each."""
        self.close()
        self._path.unlink(missing_ok=True)
        # A journal that a killed process left would be played back into the new file.
        self._path.with_name(f"{self._path.name}-journal").unlink(missing_ok=True)
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.executescript(_TABLES)
            for period, look, batches in periods:
                connection.execute("INSERT INTO periods VALUES (?, ?)", (period, look))
                connection.executemany("INSERT OR IGNORE INTO batches VALUES (?, ?, ?)", batches)
        self._keep_checksum()

    def _batch(self, which: str, *values: str) -> Batch | None:
        query = f"SELECT id, digest, period FROM batches {which} LIMIT 1"
        found = self._open().execute(query, values).fetchone()
        return None if found is None else Batch(*found)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if not self._checksum.exists() or self._checksum.read_bytes() != self._found_checksum():
                raise StaleIndexError(f"{self._path} does not match its sha256")
            self._connection = sqlite3.connect(self._path)
            if self._connection.execute("PRAGMA user_version").fetchone() != (_FORMAT,):
                raise StaleIndexError(f"{self._path} is of another format")
        return self._connection

    def _found_checksum(self) -> bytes:
        return sha256_of(self._path).encode() if self._path.exists() else b""

    def _keep_checksum(self) -> None:
        """Keep the checksum of what is on disk now; torn by a kill, it matches nothing."""
        self._checksum.write_bytes(self._found_checksum())
