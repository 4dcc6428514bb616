"""Rows that stream by are counted the same however they are cut into batches, and in however many threads."""

from __future__ import annotations

from collections.abc import Generator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from localparity.counts._coarsen import cell_numbers
from localparity.engines._duckdb_stream import InvalidRowError, RowStream
from localparity.engines.protocol import CellSelection

LEVEL = 6
KEYS = [(group, label) for group in ("a", "b", "c") for label in (0, 1)]


def make_columns(rows: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    scores = rng.random(rows)
    scores[: rows // 3] = scores[: rows // 3].round(1)
    weights = rng.random(rows) * 10.0 ** rng.integers(-6, 6, rows)
    weights[::7] = 0.0
    groups, labels = (rng.integers(1, 1 + many, rows).astype(np.uint8) for many in (3, 2))
    return {"s": scores, "g0": groups, "y": labels, "w": weights}


def stream_of(columns: dict[str, NDArray[Any]], cuts: list[int], score_range: Any = (0.0, 1.0)) -> RowStream:
    """The columns, cut into batches at some rows."""

    def batches(_: str) -> Generator[Any, None, None]:
        ends = [0, *sorted(min(cut, columns["s"].size) for cut in cuts), columns["s"].size]
        for start, end in pairwise(ends):
            yield {name: column[start:end] for name, column in columns.items()}

    return RowStream(batches, KEYS, [3, 2], score_range, LEVEL)


def some(*numbers: int) -> NDArray[np.bool_]:
    chosen = np.zeros(2**LEVEL + 1, dtype=bool)
    chosen[list(numbers)] = True
    return chosen


@given(st.lists(st.integers(0, 500), max_size=8), st.integers(1, 300), st.integers(0, 10))
def test_batches_of_any_size_give_the_same_counts(cuts: list[int], most_first: int, seed: int) -> None:
    columns = make_columns(500, seed)
    whole, _ = stream_of(columns, []).count(10**6)
    first, counted = stream_of(columns, cuts).count(most_first)
    everything = CellSelection(LEVEL, np.arange(2**LEVEL + 1))
    expected = whole.count_cells(LEVEL, everything)
    if counted is None:
        assert first.size == whole.size
        found = first.count_cells(LEVEL, everything)
    else:
        assert most_first < first.size
        found = counted
    assert found.keys == expected.keys
    for one, two in zip(found.steps, expected.steps, strict=True):
        assert one.tobytes() == two.tobytes()


@given(st.lists(st.integers(0, 500), max_size=8), st.sampled_from([(0.0, 1.0), (-1.0, 2.0)]))
def test_found_rows_are_those_of_the_cells(cuts: list[int], score_range: tuple[float, float]) -> None:
    columns, chosen = make_columns(500), some(1, 32, 40, 41)
    within = CellSelection(LEVEL, np.flatnonzero(chosen))
    held = stream_of(columns, cuts, score_range).find(within, "")
    inside = chosen[cell_numbers(columns["s"], LEVEL, score_range)] & (columns["w"] > 0)
    assert held.size == inside.sum()
    np.testing.assert_array_equal(
        np.sort(np.concatenate([part.scores for part in held.parts] or [np.empty(0)])),
        np.sort(columns["s"][inside]),
    )


def test_cells_are_cut_again_in_memory() -> None:
    columns = make_columns(2000)
    within = CellSelection(LEVEL, np.array([0, 1, 32, 64]))
    held = stream_of(columns, []).find(within, "")
    for level in (LEVEL, LEVEL + 3, 30, 40):
        if level <= LEVEL + 3:
            table = held.count_cells(level, within)
            np.testing.assert_array_equal(cell_numbers(table.highest, level, (0.0, 1.0)), table.numbers)
            assert (np.diff(table.numbers) > 0).all()
        deep = CellSelection(level, np.unique(cell_numbers(held.parts[0].scores[:5], level, (0.0, 1.0))))
        inside = np.isin(cell_numbers(held.parts[0].scores, level, (0.0, 1.0)), deep.numbers)
        assert held.within(deep).size == inside.sum()


def test_a_row_without_weight_is_nobody() -> None:
    columns = make_columns(500)
    columns["w"][columns["g0"] == 2] = 0.0
    stream = stream_of(columns, [100, 300])
    first, _ = stream.count(10**6)
    assert first.size == np.count_nonzero(columns["w"])
    assert {key for key in stream.weightless if key[0] == "b"} == {("b", 0), ("b", 1)}
    assert "b" not in {group for (group, _), atoms in first.count_scores().items() if atoms.size}


@pytest.mark.parametrize(
    ("name", "value"),
    [("s", np.nan), ("s", -0.01), ("s", 1.01), ("s", np.inf), ("w", np.nan), ("w", -1.0), ("w", 1e-30)],
)
def test_a_bad_value_in_any_batch_stops_all_threads(name: str, value: float) -> None:
    columns = make_columns(500)
    columns[name][410] = value
    for most_first in (10, 10**6):
        with pytest.raises(InvalidRowError):
            stream_of(columns, list(range(0, 500, 20))).count(most_first)


def test_distinct_scores_are_never_overestimated() -> None:
    columns = make_columns(5000)
    columns["s"][:2] = -0.0, 0.0
    first, _ = stream_of(columns, [1000]).count(10**6)
    distinct = np.unique(np.concatenate([part.scores for part in first.parts])).size
    assert 0.99 * distinct <= first.fewest_distinct() <= distinct
