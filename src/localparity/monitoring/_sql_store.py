"""A monitor in a database: every batch is one transaction, and writers wait for each other.

A database keeps many monitors, each under its name, in four tables. A batch that is counted changes the rows
of its period, of its id and of the last look together or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from localparity._io._files import check_format, parse_sealed, reading, seal_json
from localparity.monitoring._container import stamp_in
from localparity.monitoring._databases import Database, Execute
from localparity.monitoring._store import Batch, BatchKey, RemovedMeanwhileError
from localparity.monitoring._stored_period import RemovedPeriods, StoredPeriod

_FORMAT = 1
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
            check_format(settings.pop("format"), _FORMAT, self.name, advice="append the batches again")
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
        text = seal_json({"format": _FORMAT, **settings}).decode()
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
