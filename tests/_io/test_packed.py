"""Packed files are whole, or refused."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from localparity._io._readers import read_through
from localparity._io._table import Table

CSV = "p,sex\n" + "0.25,f\n0.5,m\n" * 20


def read(path: Path, content: bytes) -> list[float]:
    path.write_bytes(content)
    found: list[float] = Table(path).read(numbers=["p"], values=["sex"])["p"].tolist()
    return found


def test_a_packed_file_that_is_cut_or_goes_on_is_refused(tmp_path: Path) -> None:
    path, valid = tmp_path / "a.csv.gz", gzip.compress(CSV.encode())
    assert read(path, valid) == [0.25, 0.5] * 20
    for end in range(1, len(valid)):
        with pytest.raises(ValueError, match=r"a.csv.gz (cannot be read|is empty)"):
            read(path, valid[:end])
    for more in (b"x", b"more", valid[:-1]):
        with pytest.raises(ValueError, match=r"a.csv.gz cannot be read"):
            read(path, valid + more)


def test_a_file_packed_in_parts_is_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(2 * gzip.compress(CSV.encode()))
    assert read_through(str(path)) == 2 * CSV.encode()


def test_a_file_packed_otherwise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a.csv.zst must end in"):
        read(tmp_path / "a.csv.zst", CSV.encode())


def test_other_bytes_under_a_checksum_are_refused(tmp_path: Path) -> None:
    path, valid = tmp_path / "a.csv.gz", gzip.compress(CSV.encode())
    for place in range(10, len(valid)):  # those before tell when and where it was packed
        damaged = bytearray(valid)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"a.csv.gz cannot be read"):
            read_through(str(path))


def test_the_end_of_a_long_file_and_of_none(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 2**22 + b"]")
    assert read_through(str(path)) == b"x" * 2**21 + b"]"
    assert read_through("s3://bucket/a.json") == b""


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("cut", [1, 2, 10, 23])
def test_an_array_that_is_cut_is_refused(tmp_path: Path, pack: Callable[[bytes], bytes], cut: int) -> None:
    text = b'[{"p": 0.1, "sex": "f"},\n{"p": 0.2, "sex": "m"}\n]'
    path = tmp_path / ("a.json" if pack is bytes else "a.json.gz")
    assert read(path, pack(text + b"\n")) == [0.1, 0.2]
    with pytest.raises(ValueError, match=r"a.json.* cannot be read"):
        read(path, pack(text[:-cut]))
