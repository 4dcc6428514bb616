"""Bytes that say what they are, and what is said of those that are not."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localparity.monitoring._container import pack, unpack

MARK = b"LP-ABOUT"


@given(st.lists(st.binary(max_size=20), max_size=4), st.dictionaries(st.sampled_from("abc"), st.integers()))
def test_what_is_packed_comes_back(parts: list[bytes], header: dict[str, int]) -> None:
    assert unpack(pack(MARK, 3, header, parts), MARK, 3, "it") == (header, parts)


@given(st.data())
def test_any_damaged_byte_is_found(data: st.DataObject) -> None:
    packed = bytearray(pack(MARK, 3, {"k": 1}, [b"some bytes"]))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match=r"it (must begin with|was written by|is damaged)"):
        unpack(bytes(packed), MARK, 3, "it")


def test_the_field_that_does_not_fit_is_named() -> None:
    packed = pack(MARK, 3, {}, [])
    with pytest.raises(ValueError, match=r"it .* 18 bytes, got 5"):
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
        (b'{"_sizes": [3]}', "it is damaged: .* 18 of 17"),
        (b"\xff", "it is damaged: 'utf-8' codec"),
    ],
)
def test_a_header_that_lies_under_a_checksum_that_fits(header: bytes, message: str) -> None:
    body = header + b"ab"
    head = struct.pack("<8sHII", MARK, 3, zlib.crc32(body, len(header)), len(header))
    with pytest.raises(ValueError, match=message):
        unpack(head + body, MARK, 3, "it")
