"""Packed files are whole, or refused."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from localparity._io._readers import read_through
from localparity._io._table import Table

CSV = "p,sex\n" + "0.25,f\n0.5,m\n" * 20


def packed(folder: Path, ending: str) -> bytes:
    if ending == "gz":
        return gzip.compress(CSV.encode())
    path = folder / "valid.csv.zst"
    duckdb.sql(
        f"COPY (SELECT unnest({CSV.splitlines()!r})) TO '{path}' (HEADER false, QUOTE '', COMPRESSION zstd)"
    )
    return path.read_bytes()


def read(path: Path, content: bytes) -> list[float]:
    path.write_bytes(content)
    found: list[float] = Table(path).read(numbers=["p"], values=["sex"])["p"].tolist()
    return found


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_packed_file_that_is_cut_or_goes_on_is_refused(tmp_path: Path, ending: str) -> None:
    path, valid = tmp_path / f"a.csv.{ending}", packed(tmp_path, ending)
    assert read(path, valid) == [0.25, 0.5] * 20
    for end in range(1, len(valid)):
        with pytest.raises(ValueError, match=rf"a.csv.{ending} (cannot be read|is empty)"):
            read(path, valid[:end])
    for more in (b"x", b"more", valid[:-1]):
        with pytest.raises(ValueError, match=rf"a.csv.{ending} cannot be read"):
            read(path, valid + more)


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_file_packed_in_parts_is_all_of_them(tmp_path: Path, ending: str) -> None:
    path, valid = tmp_path / f"a.txt.{ending}", packed(tmp_path, ending)
    path.write_bytes(valid + valid)
    assert read_through(str(path)) == (2 * CSV.encode() if ending == "gz" else b"")
    if ending == "zst":
        path.write_bytes(valid + (0x184D2A50).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"any")
        assert read_through(str(path)) == b""


def test_other_bytes_under_a_checksum_are_refused(tmp_path: Path) -> None:
    path, valid = tmp_path / "a.csv.gz", packed(tmp_path, "gz")
    for place in range(10, len(valid)):  # those before tell when and where it was packed
        damaged = bytearray(valid)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"a.csv.gz cannot be read"):
            read_through(str(path))


def test_the_end_of_a_long_file_and_of_none(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 10_000 + b"]")
    assert read_through(str(path)) == b"x" * 4095 + b"]"
    assert read_through("s3://bucket/a.json") == b""


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("cut", [1, 2, 10, 23])
def test_an_array_that_is_cut_is_refused(tmp_path: Path, pack: Callable[[bytes], bytes], cut: int) -> None:
    text = b'[{"p": 0.1, "sex": "f"},\n{"p": 0.2, "sex": "m"}\n]'
    path = tmp_path / ("a.json" if pack is bytes else "a.json.gz")
    assert read(path, pack(text + b"\n")) == [0.1, 0.2]
    with pytest.raises(ValueError, match=r"a.json.* cannot be read"):
        read(path, pack(text[:-cut]))


def zstd(folder: Path, lines: list[str]) -> bytes:
    path = folder / "lines.json.zst"
    rows = ", ".join(f"('{line}')" for line in lines)
    options = "HEADER false, QUOTE '', DELIMITER '\x01', COMPRESSION zstd"
    duckdb.sql(f"COPY (FROM (VALUES {rows})) TO '{path}' (FORMAT csv, {options})")
    return path.read_bytes()


def test_an_array_that_is_cut_within_zstd_is_refused(tmp_path: Path) -> None:
    lines = ['[{"p": 0.1, "sex": "f"},', '{"p": 0.2, "sex": "m"}', "]"]
    path = tmp_path / "a.json.zst"
    assert read(path, zstd(tmp_path, lines)) == [0.1, 0.2]
    for cut in (lines[:2], lines[:1], [*lines[:1], " "], [*lines[:2], ","]):
        with pytest.raises(ValueError, match=r"a.json.zst cannot be read"):
            read(path, zstd(tmp_path, cut))
