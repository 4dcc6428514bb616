"""Where a monitor keeps what it knows: a SQLite file in its folder, or a PostgreSQL server.

Everything is in two tables. A row of the first has a kind, a name, a payload and a checksum of all three: the
state of the monitor, a period, what alarms need of a batch, or what was remembered. The second has the ids of
the batches that were counted and the digests of their rows. A batch changes all of them in one transaction.

A changed byte of a SQLite file is noticed, or changes nothing: payloads have checksums, the state has the sum
of the marks of all periods, so that none can be hidden, and batches are looked for in two indexes each.
"""

from __future__ import annotations

import json
import re
import sqlite3
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from localparity._io._files import (
    check_format,
    limit_work,
    locked_folder,
    parse_json,
    reading,
    replacing,
    sha256_of,
)
from localparity._text import brief, shown_address
from localparity._types import ScoreRange
from localparity._validation import InputError, as_choice, as_count, as_score_range, require
from localparity.monitoring._sketch import (
    ScoreSketch,
    describe_sketch,
    join_parts,
    restore_sketch,
    split_parts,
)
from localparity.monitoring._watch import Watch

Every = Literal["day", "hour"]
EVERYONE = ""
"""The name under which everyone is counted, those of removed periods too."""


class StoredPeriod(NamedTuple):
    """The sketch of a period, and its last look.

    Looks are the batches of the monitor, numbered from 1; `newer` periods existed at the last look.
    """

    look: int
    newer: int
    sketch: ScoreSketch

    @classmethod
    def from_bytes(cls, payload: bytes, name: str) -> StoredPeriod:
        """The period in some bytes; `name` is what messages call them."""
        header, parts = split_parts(payload, name)
        with reading(name):
            look, newer = as_count(header["look"], "look"), as_count(header["newer"], "newer", at_least=0)
        return cls(look, newer, restore_sketch(header, parts, name))

    def to_bytes(self) -> bytes:
        """The bytes of the period."""
        header, parts = describe_sketch(self.sketch)
        return join_parts({"look": self.look, "newer": self.newer, **header}, parts)


class RemovedPeriods(NamedTuple):
    """The first and the last of the periods that were removed, and how many there were."""

    first: str
    last: str
    periods: int

    @classmethod
    def of(cls, first: object, last: object, periods: object) -> RemovedPeriods:
        """Those that a file names."""
        return cls(str(first), str(last), as_count(periods, "periods"))


@dataclass(frozen=True)
class MonitorState:
    """What a monitor knows in addition to its periods.

    The first batch fixes `every` and `score_range`, the first that has them `columns`. `total` is the sum of
    the marks of all periods. Alarms count people at or below the `cutoffs`, which were chosen when so many
    people had been counted as `chosen_at` says. `last_period` is that of the last batch.
    """

    every: Every
    score_range: ScoreRange
    columns: dict[str, Any] | None = None
    watch: Watch | None = None
    look: int = 0
    total: int = 0
    removed: RemovedPeriods | None = None
    last_period: str = ""
    cutoffs: tuple[float, ...] = ()
    chosen_at: int = 0

    @classmethod
    def from_bytes(cls, payload: bytes, name: str) -> MonitorState:
        """The state in some bytes; `name` is what messages call them."""
        with reading(name):
            values = parse_json(payload)
            check_format(values.pop("format"), _FORMAT, name, advice="append the batches to a new monitor")
            columns, watch, removed = values["columns"], values["watch"], values["removed"]
            return cls(
                as_choice(values["every"], "every", ("day", "hour")),
                as_score_range(values["score_range"]),
                None if columns is None else dict(columns),
                None if watch is None else Watch(**watch),
                as_count(values["look"], "look", at_least=0),
                int(values["total"], 16),
                None if removed is None else RemovedPeriods.of(*removed),
                str(values["last_period"]),
                tuple(map(float, values["cutoffs"])),
                as_count(values["chosen_at"], "chosen_at", at_least=0),
            )

    def to_bytes(self) -> bytes:
        """The bytes of the state."""
        watch = None if self.watch is None else asdict(self.watch)
        values = {**vars(self), "format": _FORMAT, "watch": watch, "total": f"{self.total:x}"}
        return json.dumps(values).encode()


def mark_of(period: str, stamp: str) -> int:
    """A number for a period with its content; the sum of those of some periods stands for all of them."""
    return int(sha256_of(f"{period} {stamp}".encode()), 16)


class RemovedMeanwhileError(LookupError):
    """Raised where another process has removed a period that is about to be read."""


# The two databases: how each is connected to, locked and asked. Batches are looked for in all `indexes`, and
# what these say must agree. A transaction is None where nothing was written yet; with a monitor to lock, it
# makes the tables, and others wait.


Execute = Callable[..., list[Any]]
"""Takes a query with ? for each value, and the values; returns the rows."""
_SECONDS = 600.0  # how long a writer waits for others
_LONGEST = 2**29  # the most bytes of a value in a SQLite file
_FORMAT = 7
_AT_ONCE = 64
_LOOKS_AT_ONCE = 1024
_TABLES = (
    "CREATE TABLE localparity_rows (monitor {text} NOT NULL, kind {text} NOT NULL, name {text} NOT NULL, "
    "stamp TEXT NOT NULL, payload {blob} NOT NULL, PRIMARY KEY (monitor, kind, name))",
    "CREATE TABLE localparity_batches (monitor {text} NOT NULL, id {text} NOT NULL, digest TEXT NOT NULL)",
    "CREATE UNIQUE INDEX localparity_ids ON localparity_batches (monitor, id)",
    "CREATE INDEX localparity_digests ON localparity_batches (monitor, digest)",
)
_IN_SQLITE = (
    *(statement.format(text="TEXT", blob="BLOB") for statement in _TABLES),
    "CREATE INDEX localparity_ids_again ON localparity_batches (monitor, id, digest)",
    "CREATE INDEX localparity_digests_again ON localparity_batches (monitor, digest, id)",
)
_SCHEMA = {(re.findall(r"(?:TABLE|INDEX) (\w+)", statement)[0], statement) for statement in _IN_SQLITE}


class SqliteFile:
    """The file of a folder, which the first batch makes, with the folder."""

    indexes = ("INDEXED BY localparity_{}s", "INDEXED BY localparity_{}s_again")

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder, self._path = folder, folder / "monitor.sqlite"

    @contextmanager
    def transaction(self, *, lock: str | None = None) -> Iterator[Execute | None]:
        """Inside, one transaction; other writers wait for one that locks, readers for its end alone."""
        if not self._path.exists():
            self._check_format()
            if lock is None:
                yield None
                return
        try:
            if not self._path.exists():
                self._create()
            with closing(self._connect()) as connection:

                def execute(query: str, *values: Any) -> list[Any]:
                    return connection.execute(query, values).fetchall()

                execute("BEGIN" if lock is None else "BEGIN IMMEDIATE")
                is_made = self._is_made(execute)
                if lock is not None and not is_made:
                    for statement in _IN_SQLITE:
                        execute(statement)
                yield execute if is_made or lock is not None else None
                execute("COMMIT")
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 255
            if code == sqlite3.SQLITE_BUSY:
                why = f"others have written to it for {_SECONDS:g} s; try again"
                raise OSError(f"{self._path} is locked: {why}") from error
            if code in _REFUSALS:
                raise OSError(f"{self._path} cannot be used: {error}") from error
            raise InputError(f"is damaged: {error}", str(self._path)) from error

    def _create(self) -> None:
        """Create a database without tables that says what it is: an empty file is a damaged one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with locked_folder(self._folder):
            if not self._path.exists():
                with replacing(self._path) as temporary, closing(sqlite3.connect(temporary)) as connection:
                    connection.execute("PRAGMA journal_mode = MEMORY")
                    connection.execute(f"PRAGMA user_version = {_FORMAT}")

    def _connect(self) -> sqlite3.Connection:
        address = f"{self._path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(address, timeout=_SECONDS, isolation_level=None, uri=True)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        for setting in ("cell_size_check = ON", "synchronous = EXTRA"):
            connection.execute(f"PRAGMA {setting}")
        limit_work(connection)
        return connection

    def _is_made(self, execute: Execute) -> bool:
        """Whether the file has the tables, and nothing else; it has none before the first batch."""
        schema = set(execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        if schema != _SCHEMA and (schema or execute("PRAGMA user_version") != [(_FORMAT,)]):
            tables = "its tables are not those of a monitor"
            raise sqlite3.DatabaseError(tables if self._path.stat().st_size else "it is empty")
        return bool(schema)

    def _check_format(self) -> None:
        if (self._folder / "monitor.json").exists():
            reason = "has files of a monitor of an earlier localparity; append the batches to a new folder"
            raise InputError(reason, self.name)


_REFUSALS = {
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
}
"""What the system, and not the content of a file, is to blame for."""


class PostgresServer:
    """A PostgreSQL server, which keeps many monitors."""

    indexes = ("",)
    _LOCK = "SELECT pg_advisory_xact_lock(hashtext('localparity'), hashtext(?))"

    def __init__(self, url: SplitResult) -> None:
        self.name = shown_address(urlunsplit(_without_password(url)))
        self._url = urlunsplit(url._replace(fragment=""))
        self._secrets = {
            url.password or "",
            *re.findall("(?:pass|key|secret|token)[^=&]*=([^&]*)", url.query),
        }
        self._connection: Any = None

    @contextmanager
    def transaction(self, *, lock: str | None = None) -> Iterator[Execute | None]:
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
                    execute(self._LOCK, lock)
                    self._make_tables(execute)
                yield execute if lock is not None or self._is_made(execute) else None
        except psycopg.Error as error:
            raise OSError(f"{self.name}: {self._hidden(str(error))}") from None

    def _make_tables(self, execute: Execute) -> None:
        if not self._is_made(execute):
            execute(self._LOCK, "")
        if not self._is_made(execute):
            for statement in _TABLES:
                execute(statement.format(text='TEXT COLLATE "C"', blob="BYTEA"))

    def _is_made(self, execute: Execute) -> bool:
        """Whether the tables of monitors were made, even where the user may not read them."""
        return bool(execute("SELECT to_regclass('localparity_rows') IS NOT NULL")[0][0])

    def _hidden(self, message: str) -> str:
        """A message without the password."""
        for secret in (self._secrets | set(map(unquote, self._secrets))) - {""}:
            message = message.replace(secret, "***")
        return " ".join(message.split())


def is_database(location: str) -> bool:
    """Whether a location is the URL of a database rather than a folder."""
    return re.match(r"postgres(ql)?://", location, re.IGNORECASE) is not None


def _without_password(url: SplitResult) -> SplitResult:
    """The URL of a server with its user, and without a password or options."""
    with suppress(ValueError):
        _ = url.port
        if "@" not in f"{url.path}{url.query}{url.fragment}" and url.netloc.count("@") < 2:
            user, at, host = url.netloc.rpartition("@")
            return url._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query="", fragment="")
    # Which part is the password cannot be told, so that nothing of it is shown.
    raise ValueError("the URL of a database must have its user and password percent-encoded")


class SqlStore:
    """The rows of one monitor in a folder, or in the PostgreSQL database of a URL, by its name after #.

    Methods that change anything but what is remembered are called inside `writing`.
    """

    def __init__(self, location: str) -> None:
        self._database: SqliteFile | PostgresServer
        if is_database(location):
            url = urlsplit(location)
            self._database, self._monitor = PostgresServer(url), unquote(url.fragment) or "monitor"
            self.name = f"{self._database.name}#{self._monitor}"
        else:
            self._database, self._monitor = SqliteFile(Path(location)), "monitor"
            self.name = self._database.name
        self._execute: Execute | None = None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Inside, no other process writes to this monitor; it is one transaction."""
        with self._database.transaction(lock=self._monitor) as execute:
            self._execute = execute
            try:
                yield
            finally:
                self._execute = None

    def state(self) -> MonitorState | None:
        """What the monitor knows in addition to its periods; None before the first batch."""
        query = "SELECT stamp, payload FROM localparity_rows WHERE monitor = ? AND kind = 'state'"
        return self._state_in(self._select(query))

    def _state_in(self, rows: Sequence[Any]) -> MonitorState | None:
        if not rows:
            if self._select("SELECT 1 FROM localparity_batches WHERE monitor = ? LIMIT 1"):
                raise InputError("is damaged: its state is missing", self.name)
            return None
        ((stamp, payload),) = rows
        return MonitorState.from_bytes(self._checked("state", "", stamp, payload), self.name)

    def periods(self) -> tuple[MonitorState | None, dict[str, str]]:
        """The state, and the stamp of each period, in order; other content has another stamp."""
        rows = self._select(
            "SELECT kind, name, stamp, CASE WHEN kind = 'state' THEN payload END FROM localparity_rows "
            "WHERE monitor = ? AND kind IN ('state', 'period')"
        )
        state = self._state_in([(stamp, payload) for kind, _, stamp, payload in rows if kind == "state"])
        stamps = {str(name): str(stamp) for kind, name, stamp, _ in rows if kind == "period"}
        stamps = dict(sorted(stamps.items()))
        if state is not None and sum(map(mark_of, stamps, stamps.values())) % 2**256 != state.total:
            raise InputError("is damaged: a period is missing, or is not the one that was kept", self.name)
        stamps.pop(EVERYONE, None)
        return state, stamps

    def read(self, periods: Sequence[str]) -> Iterator[StoredPeriod]:
        """The content of some periods; a RemovedMeanwhileError if one is not there."""
        for start in range(0, len(periods), _AT_ONCE):
            names = periods[start : start + _AT_ONCE]
            query = (
                "SELECT name, stamp, payload FROM localparity_rows WHERE monitor = ? AND kind = 'period' AND "
                f"name IN ({', '.join('?' * len(names))})"
            )
            rows = {name: (stamp, payload) for name, stamp, payload in self._select(query, *names)}
            for name in names:
                if name not in rows:
                    raise RemovedMeanwhileError(f"{self._title(name)} was removed")
                payload = self._checked("period", name, *rows[name])
                yield StoredPeriod.from_bytes(payload, self._title(name))

    def newer(self, period: str) -> int:
        """The number of periods that are newer than one."""
        query = "SELECT count(*) FROM localparity_rows WHERE monitor = ? AND kind = 'period' AND name > ?"
        return int(self._select(query, period)[0][0])

    def recall(self, kind: str, since: str = "") -> dict[str, bytes]:
        """What is remembered of a kind under each name, from one name on; what is damaged is left out."""
        query = (
            "SELECT name, stamp, payload FROM localparity_rows WHERE monitor = ? AND kind = ? AND name >= ?"
        )
        remembered, damaged = {}, []
        for name, stamp, payload in self._select(query, kind, since):
            if _is_whole(kind, name, stamp, payload):
                remembered[name] = payload
            else:
                damaged.append(str(name))
        if damaged:
            what = f"what {self.name} remembers" + (f" of {brief(damaged[0])}" if damaged[0] else "")
            warnings.warn(f"{what} is damaged, and is found out anew", stacklevel=2)
        return remembered

    def remember(self, kind: str, payloads: Mapping[str, bytes]) -> None:
        """Keep something of a kind under each name; nothing is lost but time if it cannot be kept."""
        with suppress(OSError), nullcontext() if self._execute else self.writing():
            self._put(kind, payloads)

    def find(self, column: Literal["id", "digest"], value: str) -> str | None:
        """The id of the batch with an id or with a digest; those of removed periods are known, too."""
        answers: set[str | None] = {
            self._select(
                f"SELECT min(id) FROM localparity_batches {index.format(column)} "
                f"WHERE monitor = ? AND {column} = ?",
                value,
            )[0][0]
            for index in self._database.indexes
        }
        if len(answers) > 1:
            raise InputError("is damaged: its indexes of the batches do not agree", self.name)
        return answers.pop()

    def add(self, batch_id: str, digest: str, periods: Mapping[str, StoredPeriod], look: bytes) -> None:
        """Replace the period of a batch, and everyone, by what they are with the batch, and keep its look."""
        query = "INSERT INTO localparity_batches (monitor, id, digest) VALUES (?, ?, ?)"
        self._select(query, batch_id, digest)
        number = periods[EVERYONE].look
        self._put("look", {_look_name(number): look})
        self._replace(periods, look=number)

    def looks(self, first: int, last: int) -> Iterator[tuple[str, bytes]]:
        """What alarms need of each batch, from one number to another, and what messages call it."""
        query = (
            "SELECT name, stamp, payload FROM localparity_rows WHERE monitor = ? AND kind = 'look' AND "
            "name BETWEEN ? AND ? ORDER BY name"
        )
        for start in range(first, last + 1, _LOOKS_AT_ONCE):
            wanted = range(start, min(start + _LOOKS_AT_ONCE, last + 1))
            rows = self._select(query, _look_name(wanted[0]), _look_name(wanted[-1]))
            if [name for name, _, _ in rows] != list(map(_look_name, wanted)):
                raise InputError("is damaged: a batch that it counted is missing", self.name)
            for name, stamp, payload in rows:
                yield f"{name} in {self.name}", self._checked("look", name, stamp, payload)

    def remove(self, names: Sequence[str], removed: RemovedPeriods) -> None:
        """Remove some periods and what is remembered of them."""
        self._replace(dict.fromkeys(names), removed=removed)
        query = "DELETE FROM localparity_rows WHERE monitor = ? AND name > '' AND name <= ?"
        self._select(query, names[-1])

    def keep_state(self, state: MonitorState) -> None:
        """Replace the state."""
        self._put("state", {"": state.to_bytes()})

    def _replace(self, periods: Mapping[str, StoredPeriod | None], **changes: Any) -> None:
        """Put some periods in the place of what they were, or nothing, and change the state with them."""
        state = self.state()
        assert state is not None
        total = state.total
        query = "SELECT stamp FROM localparity_rows WHERE monitor = ? AND kind = 'period' AND name = ?"
        for name, stored in periods.items():
            total -= sum(mark_of(name, stamp) for (stamp,) in self._select(query, name))
            if stored is not None:
                payload = stored.to_bytes()
                self._put("period", {name: payload})
                total += mark_of(name, _stamp_of("period", name, payload))
        self.keep_state(replace(state, total=total % 2**256, **changes))

    def _put(self, kind: str, payloads: Mapping[str, bytes]) -> None:
        """Write rows in the place of those that have their names."""
        items = list(payloads.items())
        for start in range(0, len(items), _AT_ONCE):
            rows = [
                (self._monitor, kind, name, _stamp_of(kind, name, payload), payload)
                for name, payload in items[start : start + _AT_ONCE]
            ]
            self._run(
                "INSERT INTO localparity_rows (monitor, kind, name, stamp, payload) VALUES "
                f"{', '.join(['(?, ?, ?, ?, ?)'] * len(rows))} ON CONFLICT (monitor, kind, name) "
                "DO UPDATE SET stamp = excluded.stamp, payload = excluded.payload",
                *chain.from_iterable(rows),
            )

    def _checked(self, kind: str, name: str, stamp: str, payload: bytes) -> bytes:
        """The payload of a row that is as it was written."""
        if not _is_whole(kind, name, stamp, payload):
            what = self._title(name) if kind == "period" else self.name
            raise InputError("is damaged: its bytes do not match its checksum", what)
        return payload

    def _title(self, period: str) -> str:
        return f"period {period} in {self.name}" if period else f"everyone in {self.name}"

    def _select(self, query: str, *values: Any) -> list[Any]:
        """The rows of a query that asks for this monitor first."""
        return self._run(query, self._monitor, *values)

    def _run(self, query: str, *values: Any) -> list[Any]:
        """The rows of a query; none where nothing was written yet."""
        if self._execute is not None:
            return self._execute(query, *values)
        with self._database.transaction() as execute:
            return [] if execute is None else execute(query, *values)


def _is_whole(kind: str, name: Any, stamp: Any, payload: Any) -> bool:
    """Whether a row is as it was written; a SQLite file may hold values of any type in any column."""
    is_typed = isinstance(name, str) and isinstance(payload, bytes)
    return is_typed and stamp == _stamp_of(kind, name, payload)


def _stamp_of(kind: str, name: str, payload: bytes) -> str:
    """The checksum of a row."""
    return sha256_of(f"{kind} {name}\n".encode() + payload)


def _look_name(number: int) -> str:
    """The name of a look; in order, and not among the names of periods."""
    return f"look {number:015}"
