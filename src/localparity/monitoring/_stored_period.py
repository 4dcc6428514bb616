"""The bytes of a monitor's period, and of the periods that were removed."""

from __future__ import annotations

from typing import NamedTuple

from localparity._io._files import reading
from localparity._validation import as_count
from localparity.monitoring._container import pack, unpack

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
