"""Damaged sketches, and folders of a monitor."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import strategies as st

import localparity as lp
from fuzzing import damaged, damaged_json, fuzz, read_or_refuse, sealed
from localparity.monitoring import Monitor, ScoreSketch
from localparity.monitoring._sketch import pack, unpack

pytest.importorskip("datasketches")

BATCH = lp.Predictions.from_arrays([0, 1, 1, 0], [0.1, 0.6, 0.7, 0.2], sensitive_features=list("abab"))


def valid_sketch(rows: int = 4) -> bytes:
    sketch = ScoreSketch(k=8)
    for _ in range(rows // 4):
        sketch.add(BATCH)
    return sketch.to_bytes()


VALID = [valid_sketch(), valid_sketch(400), ScoreSketch().to_bytes()]


@pytest.mark.parametrize("valid", VALID, ids=["rows", "many rows", "none"])
def test_a_damaged_sketch_is_refused(valid: bytes) -> None:
    def check(content: bytes) -> None:
        assert (
            content == valid or read_or_refuse(lambda: ScoreSketch.from_bytes(content), "the sketch") is None
        )

    fuzz(damaged(valid), check)


@pytest.mark.parametrize("valid", VALID[:2], ids=["rows", "many rows"])
def test_a_sketch_that_lies_and_whose_checksum_fits_is_refused_or_works(valid: bytes) -> None:
    header, parts = unpack(valid, b"LPSKETCH", 2, "it")

    def check(lying: tuple[object, list[bytes]]) -> None:
        content = pack(b"LPSKETCH", 2, *lying) if isinstance(lying[0], dict) else b""
        sketch = read_or_refuse(lambda: ScoreSketch.from_bytes(content), "the sketch")
        if sketch is not None and sketch.size:
            assert sketch.merge(sketch).size == 2 * sketch.size
            counts = read_or_refuse(sketch.counts, "the sketch")
            assert counts is None or counts.size == sketch.size

    lying_parts = damaged(parts[0]).map(lambda part: (header, [part, *parts[1:]]))
    fuzz(st.tuples(damaged_json(header), st.just(parts)) | lying_parts, check)


@pytest.mark.parametrize("name", ["monitor.json", "periods/2026-05-17.period"])
def test_a_damaged_monitor_is_refused_or_works(name: str, tmp_path: Path) -> None:
    at = datetime(2026, 5, 17, tzinfo=UTC)
    Monitor(tmp_path).append(BATCH, at=at, batch_id="1")
    path = tmp_path / name
    valid = path.read_bytes()

    def check(content: bytes) -> None:
        path.write_bytes(content)
        series = read_or_refuse(lambda: Monitor(tmp_path).series(), str(path))
        assert series is None or [point.rows for point in series] == [4]

    inputs = damaged(valid)
    if name.endswith(".json"):
        inputs |= damaged_json(json.loads(valid)).map(sealed)
    fuzz(inputs, check)
