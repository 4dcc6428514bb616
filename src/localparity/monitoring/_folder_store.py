"""A monitor's folder: a file for each period, which survives a kill at any moment.

A period is one file with its sketch and the ids of the batches in it, written under another name and renamed
into place: a batch and its id are both in the file or neither is. The files of removed periods have the ids
alone. What is written last is the time of the last change in the folder of the periods, as the file system
has it: the index is fresh as long as that is so, and is rebuilt after a kill, or when somebody else has put
a file there or taken one away.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from localparity._io._files import check_format, locked, parse_sealed, reading, seal_json, write_whole
from localparity.monitoring._container import STAMPED, stamp_in
from localparity.monitoring._index import BatchIndex, StaleIndexError
from localparity.monitoring._store import Batch, BatchKey, RemovedMeanwhileError
from localparity.monitoring._stored_period import RemovedPeriods, StoredPeriod

_SETTINGS, _INDEX, _FRESH, _LOCK = "monitor.json", "index.sqlite", "index.fresh", "lock"
_PERIODS, _REMOVED, _NOTES = "periods", "removed", "notes"
_SUMMARY = "removed.sketch"
_ENDING = ".period"
_FORMAT = 2


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
                settings.pop("format", 1), _FORMAT, str(path), advice="append the batches to a new folder"
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
        with locked(self._folder / _LOCK), closing(self._index):
            if not self._is_fresh():
                self._finish_removal()
                self._rebuild()
            yield

    def keep_settings(self, settings: dict[str, Any]) -> None:
        """Keep what the first batch fixes."""
        content = seal_json({"format": _FORMAT, **settings})
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
            self._write(self._path(name, _REMOVED), stored._replace(sketch=b""))
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
        paths = [self._path(batch.period, folder) for folder in (_PERIODS, _REMOVED)]
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
        for folder in (_REMOVED, _PERIODS):
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
