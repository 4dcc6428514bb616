"""What a monitor asks of the place where it keeps its periods: a folder, or a database."""

from __future__ import annotations

import os
import re
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit, urlunsplit

import numpy as np

from localparity._io._duckdb import connect
from localparity._io._files import (
    check_format,
    locked,
    parse_sealed,
    reading,
    rewriting,
    seal_json,
    sha256_of,
    write_whole,
)
from localparity._types import FloatArray, Group
from localparity._validation import as_count, require
from localparity.monitoring._sketch import STAMPED, pack, stamp_in, unpack
from localparity.predictions import Predictions

# The bytes of a monitor's period, and of the periods that were removed.


_PERIOD, _REMOVED, _VERSION = b"LPPERIOD", b"LPGONE\0\0", 4


class StoredPeriod(NamedTuple):
    """The ids of a period's batches with the sha256 of their rows, its sketch, and its last look.

    Looks are the batches of the monitor, numbered from 1; `newer` periods existed at the last look. The
    sketch of a period that was removed is empty.
    """

    batches: dict[str, str]
    look: int
    newer: int
    sketch: bytes

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> StoredPeriod:
        """The period in some bytes; `name` is what messages call them."""
        header, parts = unpack(content, _PERIOD, _VERSION, name)
        with reading(name):
            (sketch,) = parts
            batches, digests = (list(map(str, header[field])) for field in ("batches", "digests"))
            look, newer = as_count(header["look"], "look"), as_count(header["newer"], "newer", at_least=0)
            return cls(dict(zip(batches, digests, strict=True)), look, newer, sketch)

    def to_bytes(self) -> bytes:
        """The bytes of the period."""
        header = {
            "batches": list(self.batches),
            "digests": list(self.batches.values()),
            "look": self.look,
            "newer": self.newer,
        }
        return pack(_PERIOD, _VERSION, header, [self.sketch])


class RemovedPeriods(NamedTuple):
    """The sketch of all people in the periods that were removed, from the first to the last of these."""

    first: str
    last: str
    periods: int
    look: int
    sketch: bytes

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> RemovedPeriods:
        """The periods in some bytes; `name` is what messages call them."""
        header, parts = unpack(content, _REMOVED, _VERSION, name)
        with reading(name):
            (sketch,) = parts
            first, last = str(header["first"]), str(header["last"])
            periods, look = as_count(header["periods"], "periods"), as_count(header["look"], "look")
            return cls(first, last, periods, look, sketch)

    def to_bytes(self) -> bytes:
        """The bytes of the periods."""
        header = {"first": self.first, "last": self.last, "periods": self.periods, "look": self.look}
        return pack(_REMOVED, _VERSION, header, [self.sketch])


BatchKey = Literal["id", "digest"]
Key = tuple[Group, int | None]
"""A group, and the label of its people; None where there are no labels."""


class Batch(NamedTuple):
    """A batch that was counted: its id, the sha256 of its rows, and its period."""

    id: str
    digest: str
    period: str

    @classmethod
    def of(cls, ordered: Mapping[Key, FloatArray], batch_id: str, period: str) -> Batch:
        """The batch of some rows, whose order does not matter: a query that is run again may have another."""
        digest = sha256()
        for (group, label), scores in ordered.items():
            digest.update(f"{group!r} {label} {scores.size}\n".encode())
            digest.update(scores.tobytes())
        return cls(batch_id, digest.hexdigest(), period)


def sorted_scores(rows: Predictions) -> dict[Key, FloatArray]:
    """The scores of the people of each group and label, from the lowest to the highest."""
    found: dict[Key, FloatArray] = {}
    for code, group in enumerate(rows.groups):
        among = rows.codes == code
        for label in (None,) if rows.labels is None else (0, 1):
            chosen = among if label is None else among & (rows.labels == label)
            found[group, label] = np.sort(rows.scores[chosen].astype(np.float64) + 0.0)  # -0.0 is 0.0
    return found


class RemovedMeanwhileError(LookupError):
    """Raised where another process has removed a period that is about to be read."""


class Store(Protocol):
    """A place that keeps periods; whatever happens, it has a batch wholly, with its id, or not at all.

    `name` is what messages call it, `settings_name` what they call its settings. Methods that change anything
    but notes, and those that look for batches, are called inside `writing`.
    """

    name: str
    settings_name: str

    def settings(self) -> dict[str, Any]:
        """What the first batch has fixed; empty before it."""
        ...

    def version(self) -> str:
        """A text that is another one after every batch."""
        ...

    def stamps(self) -> dict[str, str]:
        """The periods, in order; each with a text that is another one if its content is."""
        ...

    def read(self, periods: Sequence[str]) -> Iterator[StoredPeriod]:
        """The content of some periods; a RemovedMeanwhileError if one is not there."""
        ...

    def removed(self) -> RemovedPeriods | None:
        """The periods that were removed, if any were."""
        ...

    def recall(self, note: str) -> bytes | None:
        """What `remember` was given last under a name."""
        ...

    def remember(self, note: str, content: bytes) -> None:
        """Keep something under a name; nothing is lost but time if it cannot be kept."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Inside, no other process writes."""
        ...

    def keep_settings(self, settings: dict[str, Any]) -> None:
        """Keep what the first batch fixes."""
        ...

    def find(self, key: BatchKey, value: str) -> Batch | None:
        """The batch with an id or with a digest; those of removed periods are known, too."""
        ...

    def last_look(self) -> int:
        """The number of the last look, 0 before the first."""
        ...

    def newer(self, period: str) -> int:
        """The number of periods that are newer than one."""
        ...

    def add(self, batch: Batch, stored: StoredPeriod) -> None:
        """Replace the period of a batch by what it is with the batch."""
        ...

    def remove(self, removed: RemovedPeriods) -> None:
        """Remove the periods up to the last of those removed, but for the ids of their batches."""
        ...


# An index of the batches that a folder has counted, so that an append does not read every period.
#
# The index can be deleted at any time: it only finds what the periods hold. A batch is in the index, on disk,
# before its period is written. After a kill between the two, the newest batch of the index is not in its
# period: the index is stale and is rebuilt. So it never lacks a batch that was counted. A changed byte could
# hide one, so batches are kept in buckets, each with a checksum: one bucket is read to find a batch, however
# many there are, and a bucket that is missing or does not match its checksum makes the index stale too.


_MARK, _BUCKET_FORMAT = b"LPBUCKET", 3
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
            header, _ = unpack(found[0], _MARK, _BUCKET_FORMAT, "the bucket")
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
        (number, pack(_MARK, _BUCKET_FORMAT, {"number": number, **each}, []))
        for number, each in buckets.items()
    )
    connection.executemany("INSERT OR REPLACE INTO buckets VALUES (?, ?)", rows)


# A monitor's folder: a file for each period, which survives a kill at any moment.
#
# A period is one file with its sketch and the ids of the batches in it, written under another name and
# renamed into place: a batch and its id are both in the file or neither is. The files of removed periods have
# the ids alone. What is written last is the time of the last change in the folder of the periods, as the file
# system has it: the index is fresh as long as that is so, and is rebuilt after a kill, or when somebody else
# has put a file there or taken one away.


_SETTINGS, _INDEX, _FRESH, _LOCK_FILE = "monitor.json", "index.sqlite", "index.fresh", "lock"
_PERIODS, _REMOVED_FOLDER, _NOTES = "periods", "removed", "notes"
_SUMMARY = "removed.sketch"
_ENDING = ".period"
_FOLDER_FORMAT = 2


class FolderStore:
    """Periods in a folder, as `Store` describes it; the folder is created by the first batch."""

    def __init__(self, folder: Path) -> None:
        self.name, self.settings_name = str(folder), str(folder / _SETTINGS)
        self._folder, self._periods = folder, folder / _PERIODS
        self._index = BatchIndex(folder / _INDEX)

    def settings(self) -> dict[str, Any]:
        """What the first batch has fixed; empty before it."""
        path = self._folder / _SETTINGS
        if not path.exists():
            return {}
        with reading(str(path)):
            settings = parse_sealed(path.read_bytes())
            check_format(
                settings.pop("format", 1),
                _FOLDER_FORMAT,
                str(path),
                advice="append the batches to a new folder",
            )
        return settings

    def version(self) -> str:
        """A text that is another one after every batch."""
        return str(self._changed()) if self._periods.exists() else ""

    def stamps(self) -> dict[str, str]:
        """The periods, in order, each with the checksum of its file."""
        removed, found = self.removed(), {}
        for name in sorted(_names(self._periods)):
            if removed is None or name > removed.last:
                with suppress(FileNotFoundError), self._path(name).open("rb") as file:
                    found[name] = stamp_in(file.read(STAMPED))
        return found

    def read(self, periods: Sequence[str]) -> Iterator[StoredPeriod]:
        """The content of some periods."""
        for name in periods:
            try:
                yield _read(self._path(name))
            except FileNotFoundError:
                raise RemovedMeanwhileError(f"{self._path(name)} was removed") from None

    def removed(self) -> RemovedPeriods | None:
        """The periods that were removed, if any were."""
        path = self._folder / _SUMMARY
        return RemovedPeriods.from_bytes(path.read_bytes(), str(path)) if path.exists() else None

    def recall(self, note: str) -> bytes | None:
        """What was remembered last under a name."""
        path = self._folder / _NOTES / note
        return path.read_bytes() if path.exists() else None

    def remember(self, note: str, content: bytes) -> None:
        """Keep something under a name, where the folder can be written."""
        with suppress(OSError):
            write_whole(self._folder / _NOTES / note, content)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Inside, no other process writes, and the index is fresh."""
        self._periods.mkdir(parents=True, exist_ok=True)
        with locked(self._folder / _LOCK_FILE), closing(self._index):
            if not self._is_fresh():
                self._finish_removal()
                self._rebuild()
            yield

    def keep_settings(self, settings: dict[str, Any]) -> None:
        """Keep what the first batch fixes."""
        content = seal_json({"format": _FOLDER_FORMAT, **settings})
        write_whole(self._folder / _SETTINGS, content, durable=True)

    def find(self, key: BatchKey, value: str) -> Batch | None:
        """The batch with an id or with a digest."""
        try:
            return self._index.find(key, value)
        except StaleIndexError:  # a bucket is damaged
            self._rebuild()
            return self._index.find(key, value)

    def last_look(self) -> int:
        """The number of the last look, 0 before the first."""
        return self._index.head().look

    def newer(self, period: str) -> int:
        """The number of periods that are newer than one; the files are listed for a late batch only."""
        if period >= self._index.head().latest:
            return 0
        return sum(name > period for name in _names(self._periods))

    def add(self, batch: Batch, stored: StoredPeriod) -> None:
        """Replace the period of a batch by what it is with the batch."""
        try:
            self._index.add(batch, stored.look)
        except StaleIndexError:  # the other bucket of the batch is damaged, or the head of the file
            self._rebuild((stored.look, [batch]))
        self._write(self._path(batch.period), stored)
        self._keep_fresh()

    def remove(self, removed: RemovedPeriods) -> None:
        """Remove the periods up to the last of those removed; after a kill the next writer goes on."""
        (self._folder / _FRESH).unlink(missing_ok=True)
        write_whole(self._folder / _SUMMARY, removed.to_bytes(), durable=True)
        self._finish_removal()
        self._keep_fresh()

    def _finish_removal(self) -> None:
        """Take away the files of periods that were removed; of each, the ids of its batches stay."""
        removed = self.removed()
        last = "" if removed is None else removed.last
        for name in [name for name in _names(self._periods) if name <= last]:
            stored = _read(self._path(name))
            self._write(self._path(name, _REMOVED_FOLDER), stored._replace(sketch=b""))
            self._path(name).unlink()

    def _write(self, path: Path, stored: StoredPeriod) -> None:
        write_whole(path, stored.to_bytes(), durable=True, staging=self._folder)

    def _is_fresh(self) -> bool:
        """Whether the index has the batches of all periods, and no other."""
        fresh = self._folder / _FRESH
        try:
            newest = self._index.head().newest
        except StaleIndexError:
            return False
        if not fresh.exists() or fresh.read_bytes() != str(self._changed()).encode():
            return False
        return newest is None or self._is_counted(newest)

    def _is_counted(self, batch: Batch) -> bool:
        paths = [self._path(batch.period, folder) for folder in (_PERIODS, _REMOVED_FOLDER)]
        return any(path.exists() and _read(path).batches.get(batch.id) == batch.digest for path in paths)

    def _keep_fresh(self) -> None:
        """Keep the time of the last change; torn by a kill, it matches nothing."""
        (self._folder / _FRESH).write_bytes(str(self._changed()).encode())

    def _changed(self) -> int:
        """When a file was last put among the periods or taken away, in nanoseconds."""
        return self._periods.stat().st_mtime_ns

    def _rebuild(self, *added: tuple[int, list[Batch]]) -> None:
        """Index all periods afresh, and a batch that is about to be added with its look."""
        self._index.rebuild(chain(self._indexed(), added))
        self._keep_fresh()

    def _indexed(self) -> Iterator[tuple[int, list[Batch]]]:
        """The look and the batches of each period, removed ones first."""
        for folder in (_REMOVED_FOLDER, _PERIODS):
            for name in sorted(_names(self._folder / folder)):
                stored = _read(self._path(name, folder))
                yield stored.look, [Batch(*each, name) for each in stored.batches.items()]

    def _path(self, period: str, folder: str = _PERIODS) -> Path:
        return self._folder / folder / f"{period}{_ENDING}"


def _read(path: Path) -> StoredPeriod:
    return StoredPeriod.from_bytes(path.read_bytes(), str(path))


def _names(folder: Path) -> Iterable[str]:
    """The names of the periods whose files are in a folder."""
    if not folder.exists():
        return []
    with os.scandir(folder) as files:
        return [file.name.removesuffix(_ENDING) for file in files if file.name.endswith(_ENDING)]


# The databases that can keep a monitor: how each is connected to, locked and asked.


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


# A monitor in a database: every batch is one transaction, and writers wait for each other.
#
# A database keeps many monitors, each under its name, in four tables. A batch that is counted changes the
# rows of its period, of its id and of the last look together or not at all.


_SQL_FORMAT = 1
_AT_ONCE = 64
"""How many periods are read by one query."""
_TABLES = """
CREATE TABLE localparity_monitors (
    monitor TEXT PRIMARY KEY, settings TEXT NOT NULL, look BIGINT NOT NULL, removed {blob});
CREATE TABLE localparity_periods (
    monitor TEXT, period TEXT, stamp TEXT NOT NULL, content {blob} NOT NULL, PRIMARY KEY (monitor, period));
CREATE TABLE localparity_batches (
    monitor TEXT, id TEXT, digest TEXT NOT NULL, period TEXT NOT NULL, PRIMARY KEY (monitor, id));
CREATE INDEX localparity_digests ON localparity_batches (monitor, digest);
CREATE TABLE localparity_notes (
    monitor TEXT, note TEXT, content {blob} NOT NULL, PRIMARY KEY (monitor, note));
"""


class SqlStore:
    """The periods of one monitor in a database, as `Store` describes it; the first batch makes the tables."""

    def __init__(self, database: Database, monitor: str) -> None:
        self.name = self.settings_name = f"{database.name}#{monitor}"
        self._database, self._monitor = database, monitor
        self._execute: Execute | None = None

    def settings(self) -> dict[str, Any]:
        """What the first batch has fixed; empty before it."""
        rows = self._select("SELECT settings FROM localparity_monitors WHERE monitor = ?")
        if not rows or not rows[0][0]:
            return {}
        with reading(self.name):
            settings = parse_sealed(rows[0][0].encode())
            check_format(settings.pop("format"), _SQL_FORMAT, self.name, advice="append the batches again")
        return settings

    def version(self) -> str:
        """A text that is another one after every batch."""
        return str(self.last_look() or "")

    def stamps(self) -> dict[str, str]:
        """The periods, in order, each with the checksum of its content."""
        query = "SELECT period, stamp FROM localparity_periods WHERE monitor = ?"
        return dict(sorted((period, stamp) for period, stamp in self._select(query)))

    def read(self, periods: Sequence[str]) -> Iterator[StoredPeriod]:
        """The content of some periods."""
        query = "SELECT period, content FROM localparity_periods WHERE monitor = ? AND period IN ({})"
        for start in range(0, len(periods), _AT_ONCE):
            asked = periods[start : start + _AT_ONCE]
            found = dict(self._select(query.format(", ".join("?" * len(asked))), *asked))
            for period in asked:
                if period not in found:
                    raise RemovedMeanwhileError(f"period {period} in {self.name} was removed")
                yield StoredPeriod.from_bytes(bytes(found[period]), f"period {period} in {self.name}")

    def removed(self) -> RemovedPeriods | None:
        """The periods that were removed, if any were."""
        rows = self._select("SELECT removed FROM localparity_monitors WHERE monitor = ?")
        if not rows or rows[0][0] is None:
            return None
        return RemovedPeriods.from_bytes(bytes(rows[0][0]), f"the removed periods in {self.name}")

    def recall(self, note: str) -> bytes | None:
        """What was remembered last under a name."""
        rows = self._select("SELECT content FROM localparity_notes WHERE monitor = ? AND note = ?", note)
        return bytes(rows[0][0]) if rows else None

    def remember(self, note: str, content: bytes) -> None:
        """Keep something under a name, where the database can be written."""
        with suppress(OSError), nullcontext() if self._execute else self.writing():
            self._put("notes", {"note": note}, {"content": content})

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Inside, no other process writes to this monitor; it is one transaction."""
        with self._database.transaction(lock=self._monitor) as execute:
            if not self._database.has_tables(execute):
                for statement in _TABLES.format(blob=self._database.blob).split(";")[:-1]:
                    execute(statement)
            self._execute = execute
            try:
                yield
            finally:
                self._execute = None

    def keep_settings(self, settings: dict[str, Any]) -> None:
        """Keep what the first batch fixes."""
        text = seal_json({"format": _SQL_FORMAT, **settings}).decode()
        self._put("monitors", {}, {"settings": text, "look": self.last_look()})

    def find(self, key: BatchKey, value: str) -> Batch | None:
        """The batch with an id or with a digest."""
        query = f"SELECT id, digest, period FROM localparity_batches WHERE monitor = ? AND {key} = ? LIMIT 1"
        rows = self._select(query, value)
        return Batch(*rows[0]) if rows else None

    def last_look(self) -> int:
        """The number of the last look, 0 before the first."""
        rows = self._select("SELECT look FROM localparity_monitors WHERE monitor = ?")
        return int(rows[0][0]) if rows else 0

    def newer(self, period: str) -> int:
        """The number of periods that are newer than one."""
        query = "SELECT count(*) FROM localparity_periods WHERE monitor = ? AND period > ?"
        return int(self._select(query, period)[0][0])

    def add(self, batch: Batch, stored: StoredPeriod) -> None:
        """Replace the period of a batch by what it is with the batch."""
        content = stored.to_bytes()
        self._put("batches", {"id": batch.id}, {"digest": batch.digest, "period": batch.period})
        self._put("periods", {"period": batch.period}, {"stamp": stamp_in(content), "content": content})
        self._select("UPDATE localparity_monitors SET look = look + 1 WHERE monitor = ?")

    def remove(self, removed: RemovedPeriods) -> None:
        """Remove the periods up to the last of those removed."""
        query = "UPDATE localparity_monitors SET removed = ? WHERE monitor = ?"
        self._run(query, removed.to_bytes(), self._monitor)
        self._select("DELETE FROM localparity_periods WHERE monitor = ? AND period <= ?", removed.last)

    def _put(self, table: str, key: dict[str, Any], values: dict[str, Any]) -> None:
        """Write a row of this monitor in the place of the one that has its key."""
        row = {"monitor": self._monitor, **key, **values}
        query = f"INSERT INTO localparity_{table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        changed = ", ".join(f"{name} = excluded.{name}" for name in values)
        self._run(
            f"{query} ON CONFLICT ({', '.join(['monitor', *key])}) DO UPDATE SET {changed}", *row.values()
        )

    def _select(self, query: str, *values: Any) -> list[Any]:
        """The rows of a query that asks for this monitor first."""
        return self._run(query, self._monitor, *values)

    def _run(self, query: str, *values: Any) -> list[Any]:
        """The rows of a query; none where nothing was written yet."""
        if self._execute is not None:
            return self._execute(query, *values)
        with self._database.transaction() as execute:
            return execute(query, *values) if self._database.has_tables(execute) else []
