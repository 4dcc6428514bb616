"""Tables as matrices: text columns, numbers, and what does not fit."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest

from localparity.models._encoding import TableEncoder, table_columns

FRAME = pd.DataFrame({"n": [1.0, 3.0, 5.0], "t": ["b", "a", "b"], "flag": [True, False, True]})


def test_texts_are_not_scaled_and_numbers_are() -> None:
    encoder = TableEncoder().fit(FRAME)
    assert list(encoder.get_feature_names_out()) == ["n", "t=a", "t=b", "flag"]
    deviation = np.sqrt(8 / 3)
    expected = [[-2 / deviation, 0, 1], [0, 1, 0], [2 / deviation, 0, 1]]
    np.testing.assert_allclose(encoder.transform(FRAME)[:, :3], expected)


def test_polars_and_pandas_give_the_same() -> None:
    same = TableEncoder().fit(pl.from_pandas(FRAME)).transform(pl.from_pandas(FRAME))
    np.testing.assert_array_equal(same, TableEncoder().fit_transform(FRAME))


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
        (
            {"t": ["a", "x", "b"]},
            r"column 't' has 'x' at row 1.*'a', 'b'",
        ),
        ({"t": ["a", None, "b"]}, r"column 't' .*(nan|None) at row 1"),
        ({"n": [1.0, np.nan, 2.0]}, r"column 'n' .*nan at row 1"),
        ({"n": ["p", "q", "r"]}, r"column 'n' must be numbers.*'p' at row 0"),
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
    learned = {"names": ["a", "b"], "categories": [None, ["x"]], "means": [0.0, 0.0], "scales": [1.0, 1.0]}
    assert TableEncoder.from_dict(learned).to_dict() == learned
    for name in ("categories", "means", "scales"):
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
