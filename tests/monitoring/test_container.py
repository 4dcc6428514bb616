"""Bytes that say what they are, and what is said of those that are not."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localparity.monitoring._sketch import join_parts, open_sealed, seal_parts, split_parts


@given(st.lists(st.binary(max_size=20), max_size=4), st.dictionaries(st.sampled_from("abc"), st.integers()))
def test_what_is_packed_comes_back(parts: list[bytes], header: dict[str, int]) -> None:
    assert split_parts(join_parts(header, parts), "it") == (header, parts)
    assert open_sealed(seal_parts(header, parts), "it") == (header, parts)


def test_any_other_byte_is_refused() -> None:
    packed = seal_parts({"k": 1}, [b"some bytes", b""])
    for place, byte in enumerate(packed):
        for other in {byte ^ 1, byte ^ 128, 0, 255} - {byte}:
            changed = packed[:place] + bytes([other]) + packed[place + 1 :]
            with pytest.raises(
                ValueError, match=r"it (must begin with|was written by|is damaged: .*checksum)"
            ):
                open_sealed(changed, "it")
    for cut in range(len(packed)):
        with pytest.raises(ValueError, match=r"it (must have at least 42|is damaged: .*checksum)"):
            open_sealed(packed[:cut], "it")


def test_the_field_that_does_not_fit_is_named() -> None:
    packed = seal_parts({}, [])
    with pytest.raises(ValueError, match=r"it .* 42 bytes, got 5"):
        open_sealed(packed[:5], "it")
    with pytest.raises(ValueError, match=r"it .*localparity 0.1, in format 1; .*format 2"):
        open_sealed(packed[:8] + b"\x01" + packed[9:], "it")
    with pytest.raises(ValueError, match=r"it .* b'LPSKETCH', got b'LPSKETCI'"):
        open_sealed(packed[:7] + b"I" + packed[8:], "it")
    with pytest.raises(ValueError, match=r"it is damaged: .*checksum"):
        open_sealed(packed[:-1], "it")


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
def test_a_header_that_lies(header: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_parts(struct.pack("<I", len(header)) + header + b"ab", "it")
