"""An index of the batches that a folder has counted, so that an append does not read every period.

The index can be deleted at any time: it only finds what the periods hold. A batch is in the index, on disk,
before its period is written. After a kill between the two, the newest batch of the index is not in its
period: the index is stale and is rebuilt. So it never lacks a batch that was counted. A changed byte could
hide one, so batches are kept in buckets, each with a checksum: one bucket is read to find a batch, however
many there are, and a bucket that is missing or does not match its checksum makes the index stale too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from localparity._io._files import sha256_of
from localparity.monitoring._container import pack, unpack
from localparity.monitoring._store import Batch, BatchKey

_MARK, _FORMAT = b"LPBUCKET", 3
_BUCKETS = 256
_HEAD = _BUCKETS
"""The number of the bucket with the head."""

StaleIndexError = sqlite3.DatabaseError
"""Raised where the index is missing, damaged, of another format, or cannot be written as it is."""


class Head(NamedTuple):
    """The number of the last look, the batch that was added last, and the latest period that has batches."""

    look: int
    newest: Batch | None
    latest: str


class BatchIndex:
    """The batches of a monitor, by id and by the sha256 of their rows, in a SQLite file.

    The file is opened on first use; `close` ends it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def head(self) -> Head:
        """What the index knows without looking for a batch."""
        header = self._bucket(_HEAD)
        newest = None if header["newest"] is None else Batch(*header["newest"])
        return Head(header["look"], newest, header["latest"])

    def find(self, key: BatchKey, value: str) -> Batch | None:
        """The first batch with an id or with a digest."""
        found = map(Batch._make, self._bucket(_number(key, value))["batches"])
        return next((batch for batch in found if getattr(batch, key) == value), None)

    def add(self, batch: Batch, look: int) -> None:
        """Add a batch and its look; both are on disk when this returns."""
        changed = {}
        for number in {_number("id", batch.id), _number("digest", batch.digest)}:
            changed[number] = {"batches": [*self._bucket(number)["batches"], batch]}
        head = Head(look, batch, max(self.head().latest, batch.period))
        with self._open() as connection:
            _put(connection, changed | {_HEAD: head._asdict()})

    def rebuild(self, periods: Iterable[tuple[int, Iterable[Batch]]]) -> None:
        """Index some periods afresh, given the last look and the batches of each."""
        self.close()
        self._path.unlink(missing_ok=True)
        # A journal that a killed process left would be played back into the new file.
        self._path.with_name(f"{self._path.name}-journal").unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(self._path)) as connection, connection:
                connection.execute("CREATE TABLE buckets (number INTEGER PRIMARY KEY, content BLOB NOT NULL)")
                _put(connection, _buckets_of(periods))
        except sqlite3.Error as error:
            raise OSError(f"{self._path} cannot be written: {error}") from error

    def _bucket(self, number: int) -> dict[str, Any]:
        query = "SELECT content FROM buckets WHERE number = ?"
        found = self._open().execute(query, (number,)).fetchone()
        try:
            header, _ = unpack(found[0], _MARK, _FORMAT, "the bucket")
        except (ValueError, TypeError) as error:
            raise StaleIndexError(f"{self._path} is damaged") from error
        if header["number"] != number:
            raise StaleIndexError(f"{self._path} has bucket {header['number']} in the place of {number}")
        return header

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if not self._path.exists():
                raise StaleIndexError(f"{self._path} is missing")
            self._connection = sqlite3.connect(self._path)
        return self._connection


def _number(key: BatchKey, value: str) -> int:
    """The bucket in which a batch with an id or with a digest is."""
    return int(sha256_of(f"{key} {value}".encode())[:8], 16) % _BUCKETS


def _buckets_of(periods: Iterable[tuple[int, Iterable[Batch]]]) -> dict[int, dict[str, Any]]:
    """The content of all buckets; a batch that is in two periods, as after a kill, is in the index once."""
    head, seen = Head(0, None, ""), set[str]()
    buckets: dict[int, dict[str, Any]] = {number: {"batches": []} for number in range(_BUCKETS)}
    for look, batches in periods:
        for batch in batches:
            if batch.id not in seen:
                seen.add(batch.id)
                for number in {_number("id", batch.id), _number("digest", batch.digest)}:
                    buckets[number]["batches"].append(batch)
            latest = max(head.latest, batch.period)
            head = Head(look, batch, latest) if look >= head.look else head._replace(latest=latest)
    return buckets | {_HEAD: head._asdict()}


def _put(connection: sqlite3.Connection, buckets: dict[int, dict[str, Any]]) -> None:
    """Write some buckets in the place of those that there are."""
    rows = (
        (number, pack(_MARK, _FORMAT, {"number": number, **each}, [])) for number, each in buckets.items()
    )
    connection.executemany("INSERT OR REPLACE INTO buckets VALUES (?, ?)", rows)
