"""The file of a monitor's period."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from localparity._io._files import reading, write_whole
from localparity._validation import as_count
from localparity.monitoring._container import pack, unpack

_MARK, _VERSION = b"LPPERIOD", 3


class StoredPeriod(NamedTuple):
    """The ids of a period's batches with the sha256 of their rows, its sketch, and its last look.

    Looks are the batches of the monitor, numbered from 1; `newer` periods existed at the last look.
    """

    batches: dict[str, str]
    look: int
    newer: int
    sketch: bytes

    @classmethod
    def read(cls, path: Path) -> StoredPeriod:
        """The period in a file."""
        header, parts = unpack(path.read_bytes(), _MARK, _VERSION, str(path))
        with reading(str(path)):
            (sketch,) = parts
            batches, digests = (list(map(str, header[name])) for name in ("batches", "digests"))
            look, newer = as_count(header["look"], "look"), as_count(header["newer"], "newer", at_least=0)
            return cls(dict(zip(batches, digests, strict=True)), look, newer, sketch)

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        header = {
            "batches": list(self.batches),
            "digests": list(self.batches.values()),
            "look": self.look,
            "newer": self.newer,
        }
        write_whole(path, pack(_MARK, _VERSION, header, [self.sketch]), durable=True)
