"""Tables as matrices: text columns, numbers, and what does not fit."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localparity.models import UnseenValuesWarning
from localparity.models._encoding import CategoryEncoder, TableEncoder, table_columns

FRAME = pd.DataFrame({"n": [1.0, 3.0, 5.0], "t": ["b", "a", "b"], "flag": [True, False, True]})


def test_texts_are_not_scaled_and_numbers_are() -> None:
    encoder = TableEncoder().fit(FRAME)
    assert list(encoder.get_feature_names_out()) == ["n", "t=a", "t=b", "flag"]
    deviation = np.sqrt(8 / 3)
    expected = [[-2 / deviation, 0, 1], [0, 1, 0], [2 / deviation, 0, 1]]
    np.testing.assert_allclose(encoder.transform(FRAME)[:, :3], expected)


@pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas])
def test_other_frames_give_the_same_as_pandas(kind: Callable[[pd.DataFrame], Any]) -> None:
    same = TableEncoder().fit(kind(FRAME)).transform(kind(FRAME))
    np.testing.assert_array_equal(same, TableEncoder().fit_transform(FRAME))


FRAMES: dict[str, Callable[[list[str | None]], Any]] = {
    "objects": lambda texts: pd.DataFrame({"t": pd.Series(texts, dtype=object)}),
    "str": lambda texts: pd.DataFrame({"t": pd.Series(texts, dtype="str")}),
    "categories": lambda texts: pd.DataFrame({"t": pd.Categorical(texts, categories=list("cab"))}),
    "polars": lambda texts: pl.DataFrame({"t": texts}, schema={"t": pl.String}),
    "polars categories": lambda texts: pl.DataFrame({"t": texts}, schema={"t": pl.Categorical}),
    "arrow": lambda texts: pa.table({"t": pa.array(texts, pa.string())}),
    "arrow dictionary": lambda texts: pa.table({"t": pa.array(texts, pa.string()).dictionary_encode()}),
}
few_texts = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=20)


@pytest.mark.parametrize("kind", FRAMES.values(), ids=FRAMES)
@given(fitted=few_texts.filter(any), new=few_texts.filter(any))
def test_texts_are_their_places_among_those_of_fit(
    kind: Callable[[list[str | None]], Any], fitted: list[str | None], new: list[str | None]
) -> None:
    encoder = CategoryEncoder().fit(kind(fitted))
    known: list[str | None] = sorted({text for text in fitted if text is not None})
    if kind is FRAMES["categories"]:
        known = ["c", "a", "b"]
    known += [None] if None in fitted else []
    assert encoder.categories_ == [known]
    unseen = [text for text in new if text not in known]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = encoder.transform(kind(new))[:, 0]
    expected = [float(known.index(text)) if text in known else np.nan for text in new]
    np.testing.assert_array_equal(found, expected)
    assert bool(caught) == bool(unseen)


def test_a_categorical_column_has_all_its_categories() -> None:
    frame = FRAME.astype({"t": pd.CategoricalDtype(["a", "b", "c"])})
    assert TableEncoder().fit(frame).transform(frame).shape == (3, 5)


def test_weights_count_as_repeated_rows() -> None:
    weighted = TableEncoder().fit(FRAME, sample_weight=[1, 2, 1])
    repeated = TableEncoder().fit(FRAME.iloc[[0, 1, 1, 2]])
    np.testing.assert_allclose(weighted.means_, repeated.means_)
    np.testing.assert_allclose(weighted.scales_, repeated.scales_)


def test_a_constant_column_stays_finite() -> None:
    np.testing.assert_array_equal(TableEncoder().fit_transform([[7.0], [7.0]]), [[0.0], [0.0]])


def test_a_described_encoder_comes_back() -> None:
    encoder = TableEncoder().fit(FRAME)
    again = TableEncoder.from_dict(encoder.to_dict())
    columns = table_columns(encoder, FRAME, reset=False)
    np.testing.assert_array_equal(again.encode(columns), encoder.encode(columns))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": [1.0, np.inf, 2.0]}, r"column 'n' .*inf at row 1"),
        ({"n": [None, "q", "r"]}, r"column 'n' must be numbers.*'q' at row 1"),
        ({"t": [np.nan, 1.0, 2.0]}, r"column 't' must be texts.*1.0 at row 1"),
    ],
)
def test_values_that_do_not_fit(change: dict[str, list[object]], message: str) -> None:
    encoder = TableEncoder().fit(FRAME)
    with pytest.raises(ValueError, match=message):
        encoder.transform(FRAME.assign(**change))


def test_other_columns_than_at_fit() -> None:
    encoder = TableEncoder().fit(FRAME)
    with pytest.raises(ValueError, match="feature names"):
        encoder.transform(FRAME.rename(columns={"n": "m"}))
    with pytest.raises(ValueError, match="feature"):
        encoder.transform(FRAME[["n", "t"]])


def test_a_description_that_does_not_fit_itself() -> None:
    learned = {
        "names": ["a", "b"],
        "categories": [None, ["x", None]],
        "missing": [False, True],
        "means": [0.0, 0.0],
        "scales": [1.0, 1.0],
    }
    assert TableEncoder.from_dict(learned).to_dict() == learned
    for name in ("categories", "missing", "means", "scales"):
        with pytest.raises(ValueError, match="the encoder has 2 names"):
            TableEncoder.from_dict(learned | {name: learned[name][:1]})


def test_numbers_in_a_column_of_objects_are_numbers() -> None:
    plain = pd.DataFrame({"b": [1.5, 2.5, 4.0]})
    for column in (pd.Series([1.5, 2.5, 4.0], dtype=object), pd.Series([1.5, 2.5, 4.0], dtype="Float64")):
        np.testing.assert_array_equal(
            TableEncoder().fit_transform(pd.DataFrame({"b": column})), TableEncoder().fit_transform(plain)
        )


def test_dates_are_refused() -> None:
    table = pd.DataFrame({"day": pd.to_datetime(["2026-01-01", "2026-01-02"])})
    with pytest.raises(ValueError, match=r"column 'day' of X.*dates"):
        TableEncoder().fit(table)


GAPPY = pd.DataFrame({"n": [1.0, None, 5.0], "t": ["b", None, "b"]})


def test_missing_values_that_fit_saw_have_columns_of_their_own() -> None:
    encoder = TableEncoder().fit(GAPPY)
    assert list(encoder.get_feature_names_out()) == ["n", "n is missing", "t=b", "t is missing"]
    np.testing.assert_array_equal(encoder.transform(GAPPY), [[-1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    again = TableEncoder.from_dict(encoder.to_dict())
    columns = table_columns(encoder, GAPPY, reset=False)
    np.testing.assert_array_equal(again.encode(columns), encoder.encode(columns))


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", None, "b"], dtype=object),
        pd.Series(["b", np.nan, "b"], dtype=object),
        pd.Series(["b", pd.NA, "b"], dtype="string"),
        pd.Series(["b", None, "b"], dtype="category"),
    ],
    ids=["None", "nan", "NA", "category"],
)
def test_every_kind_of_missing_text_is_the_same(column: pd.Series[str]) -> None:
    encoder = CategoryEncoder().fit(GAPPY)
    found = encoder.transform(GAPPY.assign(t=column))[:, 1]
    np.testing.assert_array_equal(found, [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(CategoryEncoder().fit_transform(GAPPY.assign(t=column))[:, 1], found)


@pytest.mark.parametrize("dtype", [object, "Float64", "float64"])
def test_every_kind_of_missing_number_is_the_same(dtype: object) -> None:
    frame = pd.DataFrame({"n": pd.Series([1, None, 5], dtype=dtype)})
    np.testing.assert_array_equal(CategoryEncoder().fit_transform(frame)[:, 0], [1.0, np.nan, 5.0])


def test_decimals_and_truth_values_are_numbers() -> None:
    frame = pl.DataFrame({"d": [Decimal("1.5"), None], "flag": [True, None]})
    np.testing.assert_array_equal(CategoryEncoder().fit_transform(frame), [[1.5, 1.0], [np.nan, np.nan]])


def test_polars_has_missing_values_too() -> None:
    np.testing.assert_array_equal(
        TableEncoder().fit_transform(pl.from_pandas(GAPPY)), TableEncoder().fit_transform(GAPPY)
    )


@pytest.mark.parametrize(
    ("change", "message", "expected"),
    [
        ({"t": ["a", "x", "y"]}, r"2 in 2 new categories of column 't'$", [[1, 0], [0, 0], [0, 0]]),
        ({"t": ["a", None, "b"]}, r"1 missing in column 't'$", [[1, 0], [0, 0], [0, 1]]),
        ({"t": [None, "x", None]}, r"1 in 1 new category of column 't'; 2 missing in", np.zeros((3, 2))),
        ({"t": [None, None, None]}, r"3 missing in column 't'$", np.zeros((3, 2))),
    ],
)
def test_texts_that_fit_did_not_see_are_no_category(
    change: dict[str, list[object]], message: str, expected: list[list[float]]
) -> None:
    encoder = TableEncoder().fit(FRAME)
    with pytest.warns(UnseenValuesWarning, match=message) as caught:
        found = encoder.transform(FRAME.assign(**change))
    assert len(caught) == 1
    np.testing.assert_array_equal(found[:, 1:3], expected)


def test_a_missing_number_that_fit_did_not_expect_is_the_mean() -> None:
    encoder = TableEncoder().fit(FRAME)
    with pytest.warns(UnseenValuesWarning, match=r"1 missing in column 'n'$"):
        found = encoder.transform(FRAME.assign(n=[1.0, np.nan, 5.0]))
    np.testing.assert_array_equal(found, encoder.transform(FRAME))  # whose middle number is the mean


def test_a_category_of_few_people_is_not_named() -> None:
    encoder = TableEncoder().fit(pd.DataFrame({"job": ["care"] * 20}))
    with pytest.warns(UnseenValuesWarning, match=r"10 in 1 new.*'astronaut'"):
        encoder.transform(pd.DataFrame({"job": ["astronaut"] * 10}))
    with pytest.warns(UnseenValuesWarning, match=r"9 in 1 new category of column 'job'$"):
        encoder.transform(pd.DataFrame({"job": ["astronaut"] * 9}))


def test_a_column_without_any_value() -> None:
    frame = pd.DataFrame({"n": [1.0, 2.0], "empty": [None, None]})
    encoder = TableEncoder().fit(frame)
    assert encoder.transform(frame)[:, 1:].tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert encoder.transform(frame.assign(empty=[3.0, None]))[:, 1:].tolist() == [[3.0, 0.0], [0.0, 1.0]]


def test_declared_categories_are_categories_whatever_they_are_and_keep_their_order() -> None:
    frame = pd.DataFrame({"size": pd.Categorical([10, 2, 10], categories=[10, 2, 5])})
    encoder = CategoryEncoder().fit(frame)
    assert encoder.categories_ == [[10, 2, 5]]
    assert encoder.transform(frame)[:, 0].tolist() == [0.0, 1.0, 0.0]
    assert encoder.transform(pd.DataFrame({"size": [5, 2]}))[:, 0].tolist() == [2.0, 1.0]
    assert CategoryEncoder().fit(pd.DataFrame({"size": [1, 2]})).transform(frame)[:, 0].tolist() == [
        10,
        2,
        10,
    ]


def test_many_categories_take_the_memory_of_their_rows() -> None:
    names = [f"place {number}" for number in range(20_000)]
    encoder = TableEncoder().fit(pd.DataFrame({"place": pd.Categorical(names[:2], categories=names)}))
    tracemalloc.start()
    encoder.transform(pd.DataFrame({"place": names[:1]}))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_categories_that_are_no_values_are_refused() -> None:
    learned = TableEncoder().fit(pd.DataFrame({"job": ["care", "trades"]})).to_dict()
    assert TableEncoder.from_dict(learned).categories_ == [["care", "trades"]]
    with pytest.raises(ValueError, match=r"categories .*got \['care'\]"):
        TableEncoder.from_dict({**learned, "categories": [[["care"], "trades"]]})
    for name, number in (("scales", 0.0), ("means", float("inf"))):
        with pytest.raises(ValueError, match=name):
            TableEncoder.from_dict({**learned, name: [number]})
