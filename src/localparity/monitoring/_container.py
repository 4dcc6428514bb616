"""Bytes that say what they are: a mark, a format, a checksum, a header in JSON, and parts."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from localparity._io._files import check_format, parse_json, reading
from localparity._validation import as_count

_HEAD = struct.Struct("<8sH32s")
_SIZE = struct.Struct("<I")
STAMPED = _HEAD.size
"""How many bytes the checksum is in."""


def pack(mark: bytes, version: int, header: dict[str, Any], parts: Sequence[bytes]) -> bytes:
    """Join a header and parts; the checksum covers everything but itself."""
    text = json.dumps({**header, "_sizes": [len(part) for part in parts]}, ensure_ascii=False).encode()
    body = _SIZE.pack(len(text)) + text + b"".join(parts)
    return _HEAD.pack(mark, version, _checksum(mark, version, body)) + body


def unpack(data: bytes, mark: bytes, version: int, name: str) -> tuple[dict[str, Any], list[bytes]]:
    """Split packed bytes into the header and the parts; `name` is what messages call them."""
    if len(data) < _HEAD.size:
        raise ValueError(f"{name} must have at least {_HEAD.size} bytes, got {len(data)}")
    found_mark, found_version, checksum = _HEAD.unpack_from(data)
    if found_mark != mark:
        raise ValueError(f"{name} must begin with {mark!r}, got {found_mark!r}")
    check_format(found_version, version, name, advice="append the batches again, to a new folder")
    body = data[_HEAD.size :]
    if _checksum(mark, version, body) != checksum:
        raise ValueError(f"{name} is damaged: its {len(body)} bytes do not match its checksum")
    with reading(name, struct.error):
        start = _SIZE.size + _SIZE.unpack_from(body)[0]
        header = parse_json(body[_SIZE.size : start])
        sizes = [as_count(length, "_sizes", at_least=0, at_most=len(body)) for length in header.pop("_sizes")]
        ends = list(accumulate(sizes, initial=start))
        if ends[-1] != len(body):
            raise ValueError(f"its parts end at byte {ends[-1]} of {len(body)}")
    return header, [body[begin:end] for begin, end in pairwise(ends)]


def stamp_in(data: bytes) -> str:
    """The checksum that packed bytes begin with, in hexadecimal digits: other bytes have another one.

    The first `STAMPED` bytes are enough.
    """
    return data[_HEAD.size - 32 : _HEAD.size].hex()


def _checksum(mark: bytes, version: int, body: bytes) -> bytes:
    return hashlib.sha256(_HEAD.pack(mark, version, b"") + body).digest()
