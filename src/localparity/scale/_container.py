"""Bytes that say what they are: a mark, a version, a checksum, a header in JSON, and parts."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

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
    header = json.loads(body[:size])
    parts, at = [], size
    for length in header.pop("_sizes"):
        parts.append(body[at : at + length])
        at += length
    return header, parts
