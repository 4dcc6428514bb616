"""Bytes that say what they are, and what is said of those that are not."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localparity.monitoring._sketch import pack, unpack

MARK = b"LP-ABOUT"


@given(st.lists(st.binary(max_size=20), max_size=4), st.dictionaries(st.sampled_from("abc"), st.integers()))
def test_what_is_packed_comes_back(parts: list[bytes], header: dict[str, int]) -> None:
    assert unpack(pack(MARK, 3, header, parts), MARK, 3, "it") == (header, parts)


def test_any_other_byte_is_refused() -> None:
    packed = pack(MARK, 3, {"k": 1}, [b"some bytes", b""])
    for place, byte in enumerate(packed):
        for other in {byte ^ 1, byte ^ 128, 0, 255} - {byte}:
            changed = packed[:place] + bytes([other]) + packed[place + 1 :]
            with pytest.raises(
                ValueError, match=r"it (must begin with|was written by|is damaged: .*checksum)"
            ):
                unpack(changed, MARK, 3, "it")
    for cut in range(len(packed)):
        with pytest.raises(ValueError, match=r"it (must have at least 42|is damaged: .*checksum)"):
            unpack(packed[:cut], MARK, 3, "it")


def test_the_field_that_does_not_fit_is_named() -> None:
    packed = pack(MARK, 3, {}, [])
    with pytest.raises(ValueError, match=r"it .* 42 bytes, got 5"):
        unpack(packed[:5], MARK, 3, "it")
    with pytest.raises(ValueError, match=r"it .*localparity 0.1, in format 3; .*format 4"):
        unpack(packed, MARK, 4, "it")
    with pytest.raises(ValueError, match=r"it .* b'LP-OTHER', got b'LP-ABOUT'"):
        unpack(packed, b"LP-OTHER", 3, "it")
    with pytest.raises(ValueError, match=r"it is damaged: .*checksum"):
        unpack(packed[:-1], MARK, 3, "it")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"[]", "it is damaged: .*object, got list"),
        (b"[" * 50_000, "it is damaged: .*nested"),
        (b"{}", "it is damaged: '_sizes' is missing"),
        (b'{"_sizes": 3}', "it is damaged: 'int' object is not iterable"),
        (b'{"_sizes": [-1]}', "it is damaged: _sizes .* got -1"),
        (b'{"_sizes": [1]}', "it is damaged: .* 20 of 21"),
        (b'{"_sizes": [2, 1]}', "it is damaged: .* 25 of 24"),
        (b"\xff", "it is damaged: 'utf-8' codec"),
    ],
)
def test_a_header_that_lies_under_a_checksum_that_fits(header: bytes, message: str) -> None:
    body = header + b"ab"
    body = struct.pack("<I", len(header)) + body
    start = struct.pack("<8sH", MARK, 3)
    head = start + hashlib.sha256(start + bytes(32) + body).digest()
    with pytest.raises(ValueError, match=message):
        unpack(head + body, MARK, 3, "it")
