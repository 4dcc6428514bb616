"""Damaged sketches, and folders of a monitor."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import strategies as st

import localparity as lp
from fuzzing import damaged, damaged_json, fuzz, read_or_refuse
from localparity.monitoring import Monitor, ScoreSketch
from localparity.monitoring._sketch import join_parts, open_sealed, seal_parts, split_parts

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
    header, parts = open_sealed(valid, "it")

    def check(lying: tuple[object, list[bytes]]) -> None:
        content = seal_parts(*lying) if isinstance(lying[0], dict) else b""
        sketch = read_or_refuse(lambda: ScoreSketch.from_bytes(content), "the sketch")
        if sketch is not None and sketch.size:
            assert sketch.merge(sketch).size == 2 * sketch.size
            counts = read_or_refuse(sketch.counts, "the sketch")
            assert counts is None or counts.size == sketch.size

    lying_parts = damaged(parts[0]).map(lambda part: (header, [part, *parts[1:]]))
    fuzz(st.tuples(damaged_json(header), st.just(parts)) | lying_parts, check)


def test_a_damaged_monitor_is_refused_or_works(tmp_path: Path) -> None:
    Monitor(tmp_path).append(BATCH, at=datetime(2026, 5, 17, tzinfo=UTC), batch_id="1")
    path = tmp_path / "monitor.sqlite"
    valid = path.read_bytes()

    def check(content: bytes) -> None:
        path.write_bytes(content)
        series = read_or_refuse(lambda: Monitor(tmp_path).series(), str(tmp_path))
        assert (
            series in (None, []) if not content else series is None or [point.rows for point in series] == [4]
        )

    fuzz(damaged(valid), check)


@pytest.mark.parametrize("kind", ["state", "period"])
def test_a_row_that_lies_and_whose_checksum_fits_is_refused_or_works(kind: str, tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.append(BATCH, at=datetime(2026, 5, 17, tzinfo=UTC), batch_id="1")
    (payload,) = monitor.store.recall(kind).values()
    name = "" if kind == "state" else "2026-05-17"
    header = json.loads(payload) if kind == "state" else split_parts(payload, "it")[0]
    parts = [] if kind == "state" else split_parts(payload, "it")[1]

    def check(lying: object) -> None:
        with monitor.store.writing():
            content = json.dumps(lying).encode() if kind == "state" else join_parts(lying, parts)
            monitor.store.remember(kind, {name: content})
        read_or_refuse(lambda: Monitor(tmp_path).series(), str(tmp_path))

    inputs = damaged_json(header)
    fuzz(inputs if kind == "state" else inputs.filter(lambda lying: isinstance(lying, dict)), check)
