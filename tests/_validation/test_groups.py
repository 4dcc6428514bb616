"""The groups of columns of any kind are those of their values one by one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from localparity._validation import NO_GROUP, Blanks, as_groups, as_texts, sort_groups
from localparity._validation._groups import is_missing_group

# Before version 3, pandas reads texts up to a zero byte when it makes categories of them.
letters = "abé\U0001f600 " + ("\0" if pd.__version__ >= "3" else "")
texts = st.text(st.sampled_from(letters), max_size=3)
numbers = st.one_of(st.integers(-3, 3), st.integers(-(2**62), 2**62), st.integers(0, 2**63 - 1))
floats = st.one_of(st.sampled_from([-0.0, 0.0, 0.5, np.inf]), st.floats(allow_nan=False))
dates = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))
mixed = st.one_of(texts, st.integers(-2, 2), st.booleans(), floats, st.tuples(texts, st.integers(0, 1)))


def columns_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Rows of few values."""
    few = st.lists(values, min_size=1, max_size=6)
    return few.flatmap(lambda kept: st.lists(st.sampled_from(kept), min_size=1, max_size=30))


def with_missing(column: st.SearchStrategy[list[Any]]) -> st.SearchStrategy[list[Any]]:
    """Some rows, where one of the numbers drawn says so, have no value."""
    return st.builds(
        lambda rows, gone: [None if row in gone else value for row, value in enumerate(rows)],
        column,
        st.one_of(st.just(set()), st.sets(st.integers(0, 29), max_size=2)),
    )


def check(column: Any, values: list[Any]) -> None:
    expected = oracles.grouping(values)
    if isinstance(expected, int):
        with pytest.raises(ValueError, match=rf"sensitive_features.* has no value at row {expected}$"):
            as_groups(column, len(values), at_least=1)
        return
    names, codes = expected
    found = as_groups(column, len(values), at_least=1)
    assert found.names == names
    assert list(map(type, found.names)) == list(map(type, names))
    assert found.codes.tolist() == codes
    assert found.codes.dtype == np.uint8


def objects(values: list[Any]) -> np.ndarray[Any, Any]:
    return np.fromiter(values, dtype=object)


def in_chunks(array: pa.Array) -> pa.ChunkedArray:
    """Two chunks, each with categories of its own where it has any."""
    middle = len(array) // 2
    parts = [array[:middle], array[middle:]]
    if pa.types.is_dictionary(array.type):
        parts = [part.cast(array.type.value_type).dictionary_encode() for part in parts]
    return pa.chunked_array(parts, array.type)


def categories_of(values: list[Any]) -> list[Any]:
    """The values from last to first, among others that no row has."""
    return ["unused", *sorted({value for value in values if value is not None}, reverse=True), "none"]


TEXTS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "objects": objects,
    "mapping": lambda values: {"sex": values},
    "pandas objects": lambda values: pd.Series(values, dtype=object),
    "pandas str": lambda values: pd.Series(values, dtype="str"),
    "pandas string": lambda values: pd.Series(values, dtype="string"),
    "pandas pyarrow": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.string())),
    "pandas dictionary": lambda values: pd.Series(
        values, dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    ),
    "pandas index": lambda values: pd.Index(values, dtype=object),
    "pandas category": lambda values: pd.Series(values, dtype="category"),
    "pandas categorical": lambda values: pd.Categorical(values, categories_of(values), ordered=True),
    "pandas frame": lambda values: pd.DataFrame({"sex": values}),
    "polars": lambda values: pl.Series(values, dtype=pl.String),
    "polars category": lambda values: pl.Series(values, dtype=pl.Categorical),
    "polars enum": lambda values: pl.Series(values, dtype=pl.Enum(categories_of(values))),
    "polars frame": lambda values: pl.DataFrame({"sex": values}, schema={"sex": pl.String}),
    "polars lazy frame": lambda values: pl.LazyFrame({"sex": values}, schema={"sex": pl.Categorical}),
    "arrow": lambda values: pa.array(values, pa.string()),
    "arrow view": lambda values: pa.array(values, pa.string_view()),
    "arrow chunks": lambda values: in_chunks(pa.array(values, pa.large_string())),
    "arrow dictionary": lambda values: pa.array(values, pa.string()).dictionary_encode(),
    "arrow dictionaries": lambda values: in_chunks(pa.array(values, pa.string()).dictionary_encode()),
    "arrow small codes": lambda values: pa.array(values, pa.dictionary(pa.uint8(), pa.string())),
    "arrow table": lambda values: pa.table({"sex": pa.array(values, pa.string())}),
    "arrow batch": lambda values: pa.record_batch({"sex": pa.array(values, pa.string())}),
    "capsule": lambda values: Capsule(pa.table({"sex": pa.array(values, pa.string())})),
}


class Capsule:
    """Of a library that nobody knows, which speaks Arrow's C interface."""

    def __init__(self, kept: Any) -> None:
        self._kept = kept

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._kept.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", TEXTS.values(), ids=TEXTS)
@given(values=with_missing(columns_of(texts)))
def test_texts(kind: Callable[[list[Any]], Any], values: list[Any]) -> None:
    check(kind(values), values)


@pytest.mark.parametrize("dtype", ["U", "S", "T"])
@given(values=columns_of(st.text("abcdefg", max_size=12)))
def test_texts_of_numpy(dtype: str, values: list[str]) -> None:
    array = np.array(values, dtype=np.dtypes.StringDType() if dtype == "T" else dtype)
    check(array, array.tolist())
    check(array[::-1], array[::-1].tolist())
    if dtype == "U":
        check(array.astype(array.dtype.newbyteorder(">")), values)


@given(
    values=columns_of(numbers),
    kind=st.sampled_from([np.array, pd.Series, pl.Series, pa.array, objects, list]),
)
def test_whole_numbers(values: list[int], kind: Callable[[Any], Any]) -> None:
    check(kind(values), values)


@given(
    values=columns_of(st.integers(-128, 127)), dtype=st.sampled_from(["i1", "<i2", ">i4", "i8", "f2", ">f8"])
)
def test_whole_numbers_of_other_dtypes(values: list[int], dtype: str) -> None:
    array = np.array(values, dtype)
    check(array, array.tolist())


@given(values=columns_of(st.integers(0, 2**64 - 1)))
def test_large_whole_numbers(values: list[int]) -> None:
    check(np.array(values, dtype=np.uint64), values)


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]"])
@given(values=with_missing(columns_of(st.integers(-3, 3))))
def test_whole_numbers_some_of_which_are_missing(dtype: str, values: list[Any]) -> None:
    check(pd.Series(values, dtype=dtype), values)
    check(pl.Series(values, dtype=pl.Int64), values)
    check(pa.array(values, pa.int64()), values)
    check(pd.Series(pd.Categorical(values)), values)


@given(
    values=columns_of(st.booleans()),
    kind=st.sampled_from([np.array, pd.Series, pl.Series, pa.array, objects]),
)
def test_truth_values(values: list[bool], kind: Callable[[Any], Any]) -> None:
    check(kind(values), values)


@given(values=with_missing(columns_of(floats)))
def test_floats(values: list[Any]) -> None:
    gaps = [np.nan if value is None else value for value in values]
    for column in (
        np.array(gaps),
        pd.Series(gaps),
        pl.Series(values, dtype=pl.Float64),
        pa.array(gaps),
        objects(gaps),
    ):
        check(column, values)


@given(values=with_missing(columns_of(dates)))
def test_dates(values: list[Any]) -> None:
    check(np.array(values, dtype="M8[us]"), values)
    check(pd.Series(values, dtype="M8[us]"), values)
    check(pd.Series(values, dtype="M8[us]").astype("category"), values)
    check(pl.Series(values, dtype=pl.Datetime("us")), values)
    check(pa.array(values, pa.timestamp("us")), values)


@given(values=with_missing(columns_of(mixed)))
def test_values_of_several_types(values: list[Any]) -> None:
    check(objects(values), values)
    check(pd.Series(objects(values)), values)


@given(values=with_missing(columns_of(mixed)))
def test_values_of_several_types_where_there_is_no_pandas(values: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pandas", None)
        check(objects(values), values)


def test_texts_that_differ_after_a_zero_byte() -> None:
    values = ["a", "a\0", "a\0b", "a\0c", "a"]
    for kind in (list, objects, lambda values: pd.Series(values, dtype=object), pl.Series, pa.array):
        check(kind(values), values)


def test_relations_of_duckdb() -> None:
    relation = duckdb.sql("SELECT * FROM (VALUES ('m', 1), ('f', 2), ('m', 2)) AS people(sex, age)")
    check(relation.select("sex"), ["m", "f", "m"])
    check(relation, [("m", 1), ("f", 2), ("m", 2)])


@given(data=st.data(), sizes=st.lists(st.integers(1, 300), min_size=2, max_size=4), rows=st.integers(1, 500))
def test_combinations(data: st.DataObject, sizes: list[int], rows: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    columns = {str(place): rng.integers(size, size=rows) for place, size in enumerate(sizes)}
    names, codes = oracles.grouping(list(zip(*(column.tolist() for column in columns.values()), strict=True)))
    for kind in (dict, pd.DataFrame, pl.DataFrame, pa.table):
        found = as_groups(kind(columns), rows, at_least=1)
        assert found.names == names
        assert found.codes.tolist() == codes
        assert found.codes.dtype == (np.uint8 if len(names) <= 256 else np.uint16)


@pytest.mark.parametrize("rows", [65_535, 65_536, 100_001])
@pytest.mark.parametrize("kind", [pd.Categorical.from_codes, lambda codes, names: np.array(names)[codes]])
def test_many_rows_of_categories_out_of_order(rows: int, kind: Callable[..., Any]) -> None:
    names = [f"{name:03}" for name in range(256)][::-1]
    codes = np.random.default_rng(0).integers(256, size=rows)
    found = as_groups(kind(codes, names), rows)
    np.testing.assert_array_equal(found.codes, 255 - codes)
    assert found.names == tuple(names[::-1])
    few = as_groups(pd.Categorical.from_codes(codes % 3, names[:3]), rows)
    np.testing.assert_array_equal(few.codes, 2 - codes % 3)


def test_codes_that_come_late() -> None:
    values = np.zeros(100_000, np.int64)
    values[[30_000, 99_999]] = 9, 4
    found = as_groups(values, values.size)
    assert found.names == (0, 4, 9)
    assert found.codes[[0, 30_000, 99_999]].tolist() == [0, 2, 1]
    assert found.codes.sum() == 3


@pytest.mark.parametrize("count", [255, 256, 257, 65_536, 65_537])
@pytest.mark.parametrize("scale", [1, 10**9, 0.1, "text"])
def test_many_values(count: int, scale: Any) -> None:
    numbers = np.random.default_rng(0).permutation(np.tile(np.arange(count), 2))
    values = np.char.mod("%05d", numbers) if scale == "text" else numbers * scale
    found = as_groups(values, values.size, at_most=count)
    np.testing.assert_array_equal(found.codes, numbers)
    assert found.names == tuple(sorted(set(values.tolist())))
    assert found.codes.dtype == np.min_scalar_type(count - 1)


def test_rows_without_a_value_are_of_the_unknown_group_where_they_are_kept() -> None:
    kept = Blanks(("NA",), kept=True)
    found = as_groups(["b", None, "NA", "a"], 4, blanks=kept)
    assert found.names == ("a", "b", NO_GROUP)
    assert found.codes.tolist() == [1, 2, 2, 0]
    numbers = as_groups(np.array([1.0, 3.0, np.nan, 2.0]), 4, blanks=Blanks(("3",), kept=True))
    assert numbers.names == (1.0, 2.0, NO_GROUP)
    columns = {"sex": ["f", None, "m", "f"], "region": ["n", "n", "NA", "s"]}
    both = as_groups(columns, 4, blanks=kept)
    assert both.names == (("f", "n"), ("f", "s"), NO_GROUP)
    assert both.codes.tolist() == [0, 2, 2, 1]
    with pytest.raises(ValueError, match="has no value at row 2"):
        as_groups(["b", "a", "NA"], 3, blanks=Blanks(("NA",)))


def test_a_text_for_no_group_that_no_row_has_is_said() -> None:
    columns = {"sex": ["f", "NA", "m"], "region": ["n", "n", "?"]}
    with pytest.warns(UserWarning, match="missing_values has 'none'"):
        found = as_groups(columns, 3, blanks=Blanks(("NA", "none", "?"), kept=True))
    assert found.names == (("f", "n"), NO_GROUP)


def test_nobody_has_a_group() -> None:
    with pytest.raises(ValueError, match=r"^sensitive_features has no value in any of its 3 rows$"):
        as_groups([None, None, None], 3, blanks=Blanks(kept=True))


def test_the_unknown_group_is_behind_all_others_and_equals_none() -> None:
    assert sort_groups([NO_GROUP, 10, 2]) == (2, 10, NO_GROUP)
    assert not NO_GROUP < 3
    assert NO_GROUP > "z"
    assert (str(NO_GROUP), repr(NO_GROUP)) == ("(unknown)", "(unknown)")
    assert NO_GROUP != "(unknown)"
    assert [is_missing_group(group) for group in (NO_GROUP, " ", ("a", ""), ("a", 1), "a")] == 3 * [
        True
    ] + 2 * [False]


def test_texts_that_stand_for_no_value() -> None:
    assert as_texts([8, "x"], "missing_values") == ("8", "x")
    with pytest.raises(ValueError, match="missing_values must be a text or several, got 3"):
        as_texts(3, "missing_values")
