"""Arrow batches become arrays without a copy, and their memory lives as long as these."""

from __future__ import annotations

import gc
from contextlib import closing

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from localparity._io._arrow import ArrowStream, Batch


def read(source: object) -> list[Batch]:
    found = []
    with closing(ArrowStream(source.__arrow_c_stream__())) as stream:  # type: ignore[attr-defined]
        while (batch := stream.next_batch()) is not None:
            found.append(batch)
    return found


def test_columns_are_those_of_the_query() -> None:
    found = read(
        duckdb.sql("SELECT i::FLOAT AS s, (i % 3)::UTINYINT AS k, i / 2 AS w FROM range(300000) t(i)")
    )
    gc.collect()
    columns = {name: np.concatenate([batch[name] for batch in found]) for name in found[0]}  # type: ignore[misc]
    assert [column.dtype for column in columns.values()] == [np.float32, np.uint8, np.float64]
    numbers = np.arange(300_000)
    for name, expected in (("s", numbers), ("k", numbers % 3), ("w", numbers / 2)):
        np.testing.assert_array_equal(columns[name], expected)


def test_a_slice_begins_at_its_offset_and_missing_values_are_none() -> None:
    table = pa.table({"s": pa.array([0.5, None, 0.25, 0.75]), "k": pa.array([1, 2, 3, 4], pa.uint8())})
    (batch,) = read(table.slice(2))
    assert batch["k"] is not None
    assert batch["k"].tolist() == [3, 4]
    (batch,) = read(table.slice(1, 2))
    assert batch["s"] is None
    assert batch["k"] is not None
    assert not batch["k"].flags.writeable


def test_no_rows_and_unknown_types() -> None:
    assert sum(len(batch["s"]) for batch in read(pa.table({"s": pa.array([], pa.float64())}))) == 0  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"column 't' .* got 'u'"):
        read(pa.table({"t": ["a"]}))


def test_an_error_on_the_way_is_raised_and_the_connection_stays_usable() -> None:
    with duckdb.connect() as connection:
        failing = connection.sql(
            "SELECT CASE WHEN i > 250000 THEN error('too late') ELSE '1' END::FLOAT AS s FROM range(300000) t(i)"
        )
        with pytest.raises((OSError, duckdb.Error), match="too late"):
            read(failing)
        many = connection.sql("SELECT i::FLOAT AS s FROM range(10000000) t(i)")
        with closing(ArrowStream(many.__arrow_c_stream__())) as left:
            first = left.next_batch()
        assert connection.sql("SELECT 1").fetchall() == [(1,)]
    assert first is not None
    assert first["s"] is not None
    assert first["s"][:3].tolist() == [0.0, 1.0, 2.0]
