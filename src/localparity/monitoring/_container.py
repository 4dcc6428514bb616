"""Bytes that say what they are: a mark, a version, a checksum, a header in JSON, and parts."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from localparity._io._files import damage_of, parse_json
from localparity._validation import as_count

_HEAD = struct.Struct("<8sHII")


def pack(mark: bytes, version: int, header: dict[str, Any], parts: Sequence[bytes]) -> bytes:
    """One run of bytes; the checksum covers the header, its size and all parts.

    Examples
    --------
    >>> unpack(pack(b"LP-ABOUT", 1, {"k": 2}, [b"xy"]), b"LP-ABOUT", 1, "the file")
    ({'k': 2}, [b'xy'])
    """
    text = json.dumps({**header, "_sizes": [len(part) for part in parts]}, ensure_ascii=False).encode()
    body = text + b"".join(parts)
    return _HEAD.pack(mark, version, zlib.crc32(body, len(text)), len(text)) + body


def unpack(data: bytes, mark: bytes, version: int, name: str) -> tuple[dict[str, Any], list[bytes]]:
    """The header and the parts; what does not fit is an error that names the field."""
    if len(data) < _HEAD.size:
        raise ValueError(f"{name} has {len(data)} bytes where {_HEAD.size} or more are expected")
    found_mark, found_version, checksum, size = _HEAD.unpack_from(data)
    if found_mark != mark:
        raise ValueError(f"{name} begins with the mark {found_mark!r} where {mark!r} is expected")
    if found_version != version:
        raise ValueError(f"{name} has version {found_version} where version {version} is expected")
    body = data[_HEAD.size :]
    if zlib.crc32(body, size) != checksum:
        raise ValueError(f"{name} is damaged: its checksum does not fit its {len(body)} bytes")
    with damage_of(name):
        header = parse_json(body[:size])
        sizes = [as_count(length, "_sizes", at_least=0) for length in header.pop("_sizes")]
        ends = list(accumulate(sizes, initial=size))
        if ends[-1] != len(body):
            raise ValueError(f"its parts end at {ends[-1]} of {len(body)} bytes")
    return header, [body[start:end] for start, end in pairwise(ends)]
