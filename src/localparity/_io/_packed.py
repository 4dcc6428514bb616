"""Packed files: whether they are whole, which DuckDB does not check."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO

_READ = 2**20
_LAST = 2**12
_ZSTD, _SKIPPED = 0xFD2FB528, range(0x184D2A50, 0x184D2A60)


def read_through(file: str) -> bytes:
    """The last bytes of a file's content; a packed file that is damaged, cut or goes on is a ValueError.

    They are empty where they are not known: in a file packed by zstd, and in one that is not on this machine.
    """
    path = Path(file)
    if not path.is_file():
        return b""
    ending = path.suffix.lower()
    with path.open("rb") as stream:
        try:
            if ending == ".zst":
                _check_frames(stream, path.stat().st_size)
                return b""
            if ending == ".gz":
                return _read_gzip(stream)
        except (EOFError, OSError, ValueError, zlib.error) as error:
            raise ValueError(f"{file} cannot be read: {error}") from error
        stream.seek(max(0, path.stat().st_size - _LAST))
        return stream.read()


def _read_gzip(stream: BinaryIO) -> bytes:
    """The last bytes of what is packed by gzip, whose module compares the checksum and the size."""
    last = b""
    with gzip.GzipFile(fileobj=stream) as content:
        while read := content.read(_READ):
            last = (last + read)[-_LAST:]
    return last


def _check_frames(stream: BinaryIO, size: int) -> None:
    """Go from frame to frame, and from block to block, to the end of a zstd file.

    The blocks are not unpacked: DuckDB does that, and compares the checksum of a frame that has one.
    The format: https://datatracker.ietf.org/doc/html/rfc8878
    """
    while stream.tell() < size:
        magic = _number(stream, 4)
        if magic in _SKIPPED:
            stream.seek(_number(stream, 4), 1)
        elif magic == _ZSTD:
            _check_frame(stream)
        else:
            raise ValueError(f"byte {stream.tell() - 4} is not the start of a zstd frame")
    if stream.tell() > size:
        raise _cut(stream)


def _check_frame(stream: BinaryIO) -> None:
    descriptor = _number(stream, 1)
    single = descriptor >> 5 & 1
    window, dictionary = 1 - single, (0, 1, 2, 4)[descriptor & 3]
    stream.seek(window + dictionary + (single, 2, 4, 8)[descriptor >> 6], 1)
    last = 0
    while not last:
        block = _number(stream, 3)
        last, repeated = block & 1, block >> 1 & 3 == 1
        stream.seek(1 if repeated else block >> 3, 1)
    stream.seek(4 * (descriptor >> 2 & 1), 1)


def _number(stream: BinaryIO, size: int) -> int:
    found = stream.read(size)
    if len(found) < size:
        raise _cut(stream)
    return int.from_bytes(found, "little")


def _cut(stream: BinaryIO) -> EOFError:
    return EOFError(f"it ends within a zstd frame, at byte {stream.seek(0, 2)}")
