"""Frames of every library at the door, and results in the library that they came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity._validation import library_of

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")


class ArrowStream:
    """What speaks Arrow's PyCapsule interface and nothing else."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class ArrowArray:
    """The same of one array."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._array.__arrow_c_array__(requested_schema)


Select = Callable[[Any, list[str]], Any]
Column = Callable[[Any, str], Any]
Kind = tuple[Callable[[Any], Any], Column, Select, Any]


def item(frame: Any, name: str) -> Any:
    return frame[name]


def selected(frame: Any, names: list[str]) -> Any:
    return frame.select(names)


KINDS: dict[str, Kind] = {
    "pandas": (lambda table: table.to_pandas(), item, lambda f, names: f[names], pd.DataFrame),
    "pandas of Arrow": (
        lambda table: table.to_pandas(types_mapper=pd.ArrowDtype), item, lambda f, names: f[names], pd.DataFrame,
    ),
    "polars": (pl.from_arrow, item, selected, pl.DataFrame),
    "lazy": (lambda table: pl.from_arrow(table).lazy(), lambda f, name: f.select(name), selected, pl.DataFrame),
    "pyarrow": (lambda table: table, item, selected, pa.Table),
    "pyarrow tables": (lambda table: table, lambda f, name: f.select([name]), selected, pa.Table),
    "record batch": (lambda table: table.to_batches()[0], item, selected, pa.Table),
    "duckdb": (
        duckdb.from_arrow, lambda f, name: f.select(name), lambda f, names: f.select(*names), pa.Table,
    ),
    "stream": (
        lambda table: table, lambda f, name: ArrowStream(f[name]), lambda f, names: ArrowStream(f.select(names)), pa.Table,
    ),
    "array": (
        lambda table: table, lambda f, name: ArrowArray(f[name].combine_chunks()),
        lambda f, names: ArrowStream(f.select(names)), pa.Table,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def columns() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "p": rng.random(80),
        "sex": rng.choice(["f", "m"], 80),
        "old": rng.random(80) > 0.5,
        "y": rng.integers(0, 2, 80),
        "w": rng.random(80) + 0.1,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_frame_is_its_columns(columns: dict[str, Any], kind: str) -> None:
    make, column, select, result = KINDS[kind]
    frame = make(pa.table(columns))
    asked: dict[str, Any] = {"criterion": "equal_opportunity", "epsilon": 0.01}
    y_true, y_score, weights = (column(frame, name) for name in ("y", "p", "w"))
    plain: dict[str, Any] = {"sample_weight": columns["w"], **asked}
    one = lp.mcdp(y_true, y_score, sensitive_features=column(frame, "sex"), sample_weight=weights, **asked)
    assert one == lp.mcdp(columns["y"], columns["p"], sensitive_features=columns["sex"], **plain)
    both = select(frame, ["sex", "old"])
    two = lp.mcdp(y_true, y_score, sensitive_features=both, sample_weight=weights, **asked)
    groups = {name: columns[name] for name in ("sex", "old")}
    assert two == lp.mcdp(columns["y"], columns["p"], sensitive_features=groups, **plain)
    found = lp.audit(None, y_score, sensitive_features=both, n_resamples=0)
    assert isinstance(found.to_frame(), result)
    assert len(found.to_frame()) == len(found.pairs) * len(found.findings)


@pytest.mark.parametrize("groups", [["a", "b"], [1, 2], [(1, "a"), (2, "b")]])
def test_groups_of_any_kind_become_columns(groups: list[Any]) -> None:
    named = np.fromiter([groups[0]] * 3 + [groups[1]] * 3, dtype=object)
    for compare in ("between_groups", "to_overall"):
        found = lp.audit(
            None, pl.Series([0.1, 0.2, 0.3, 0.5, 0.6, 0.7]), sensitive_features=named, n_resamples=0, compare=compare
        )  # fmt: skip
        frame = found.to_frame()
        assert frame["mcdp"].to_list() == [value for pair in found.pairs for value in pair.mcdp]


def test_arrays_and_counts_have_no_library(columns: dict[str, Any]) -> None:
    found = lp.audit(None, columns["p"], sensitive_features=columns["sex"], n_resamples=0)
    assert found.library is None
    assert isinstance(found.to_frame(), pd.DataFrame)


def test_what_looks_like_a_frame_and_is_none_has_no_library() -> None:
    class Column:
        def to_numpy(self) -> np.ndarray:
            return np.array([0.5])

    assert library_of(Column()) is None
    assert library_of(Column(), pl.Series(["f"])) == "polars"
