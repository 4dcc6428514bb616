"""Columns and rows as pandas, Polars and torch have them, where arrays are expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import localparity as lp
from localparity import _validation as validation

SCORES = [0.25, 0.5, 0.5, 1.0]
SEX = ["f", "m", "f", "m"]


@pytest.mark.parametrize(
    "convert",
    [
        pd.Series,
        pl.Series,
        torch.tensor,
        lambda values: torch.tensor(values, requires_grad=True),
        lambda values: pd.Series(values, dtype="float32"),
        lambda values: pd.Series(values, dtype="Float64"),
        lambda values: torch.tensor(values, dtype=torch.float32),
        pa.array,
        lambda values: pa.chunked_array([values[:1], values[1:]]),
        lambda values: pa.table({"score": values}),
        lambda values: pl.LazyFrame({"score": values}),
        lambda values: pl.Series(values, dtype=pl.Decimal(10, 2)),
        lambda values: duckdb.sql(f"SELECT unnest({values}) AS score"),
    ],
)
def test_scores(convert: Callable[[list[float]], Any]) -> None:
    assert lp.mcdp(None, convert(SCORES), sensitive_features=SEX) == 0.5


@pytest.mark.parametrize(
    "groups",
    [
        pd.Series(SEX),
        pd.Series(SEX, dtype="category"),
        pd.Series(SEX, dtype="string"),
        pl.Series(SEX),
        torch.tensor([3, 4, 3, 4]),
        pd.DataFrame({"sex": SEX}),
        pl.DataFrame({"sex": SEX}),
        pa.table({"sex": SEX}),
        nw.from_native(pd.Series(SEX), series_only=True),
        {"sex": pl.DataFrame({"sex": SEX}), "all": pa.array([1, 1, 1, 1])},
    ],
)
def test_groups(groups: Any) -> None:
    assert lp.mcdp(None, SCORES, sensitive_features=groups) == 0.5


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_several_columns_make_the_combinations_that_occur(kind: Callable[[Any], Any]) -> None:
    found = validation.as_groups(kind({"sex": ["f", "f", "m", "m"], "old": [True, False, True, True]}), 4)
    assert found.names == (("f", False), ("f", True), ("m", True))
    assert found.codes.tolist() == [1, 0, 2, 2]


def test_labels() -> None:
    for labels in (pd.Series([1, 0]), pl.Series([1, 0]), torch.tensor([1, 0]), pa.array([True, False])):
        assert validation.as_labels(labels, 2).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_are_not_copied(dtype: Any) -> None:
    scores = np.array(SCORES, dtype)
    for column in (
        pd.Series(scores, copy=False),
        pl.Series(scores),
        pa.array(scores),
        pa.table({"p": scores}),
    ):
        kept = validation.as_scores(column, (0.0, 1.0)).values
        assert kept.dtype == dtype
        assert np.shares_memory(kept, validation.as_scores(column, (0.0, 1.0)).values)


@pytest.mark.parametrize(
    "scores",
    [
        pl.Series([0.1, None, 0.2]),
        pa.array([0.1, None, 0.2]),
        pa.chunked_array([[0.1], [None, 0.2]]),
        pa.array([0, None, 1]),
        pd.Series([0.1, None, 0.2], dtype="Float64"),
        pd.Series([0, None, 1], dtype="Int64"),
        pd.Series([0.1, None, 0.2], dtype="float64[pyarrow]"),
    ],
)
def test_a_missing_number_is_named(scores: Any) -> None:
    _check_missing(scores)


def test_a_missing_number_of_duckdb_is_named() -> None:
    _check_missing(duckdb.sql("SELECT unnest([0.1, NULL, 0.2]) AS p"))


def _check_missing(scores: Any) -> None:
    with pytest.raises(ValueError, match=r"y_score .*got nan at row 1"):
        validation.as_scores(scores, (0.0, 1.0))
    with pytest.raises(ValueError, match=r"sample_weight .*got nan at row 1"):
        validation.as_weights(scores, 3)
    with pytest.raises(ValueError, match=r"y_true .*got (nan at row 1|0\.1 at row 0)"):
        validation.as_labels(scores, 3)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table, pl.LazyFrame])
def test_frames_that_do_not_fit(kind: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"y_score .*(two columns|got \(2, 2\))"):
        validation.as_scores(kind({"no": [0.1, 0.2], "yes": [0.9, 0.8]}), (0.0, 1.0))
    with pytest.raises(ValueError, match=r"sample_weight .*got \(1, 3\)"):
        validation.as_weights(kind({"a": [1.0], "b": [1.0], "c": [1.0]}), 1)
    with pytest.raises(ValueError, match="y_score is empty"):
        validation.as_scores(kind({"yes": []}), (0.0, 1.0))
    with pytest.raises(ValueError, match="sensitive_features has no columns"):
        validation.as_groups(kind({}), 1)
    with pytest.raises(ValueError, match=r"sensitive_features\['sex'\] has 2 rows, y_score has 3"):
        validation.as_groups(kind({"sex": ["f", "m"]}), 3)


def test_columns_of_the_same_name() -> None:
    table = pd.DataFrame([[1, 2], [3, 4]], columns=["sex", "sex"])
    with pytest.raises(ValueError, match=r"sensitive_features .*unique column names.*'sex'"):
        validation.as_groups(table, 2)


def test_a_column_that_names_people_is_no_group() -> None:
    names = [f"p{name % 20_000}" for name in range(1_000_001)]
    for column in (pd.Series(names), pd.Series(names, dtype=object), pl.Series(names), pa.array(names)):
        with pytest.raises(ValueError, match="sensitive_features has more than 10,000 groups"):
            validation.as_groups(column, len(names))


def test_what_has_a_numpy_form_and_is_no_frame() -> None:
    class Own:
        def to_numpy(self) -> Any:
            raise NotImplementedError

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array(SCORES)

    assert validation.as_scores(Own(), (0.0, 1.0)).values.tolist() == SCORES


def test_values_that_cannot_be_hashed_are_named() -> None:
    for column in (
        pd.Series(["f", ["m"], "m"]),
        pl.Series([["f"], ["m"], ["m"]]),
        pa.array([["f"], ["m"], ["m"]]),
    ):
        with pytest.raises(ValueError, match=r"sensitive_features must be hashable: "):
            validation.as_groups(column, 3)


def test_a_missing_value_is_named() -> None:
    with pytest.raises(ValueError, match="sensitive_features has no value at row 1"):
        validation.as_groups(pd.Series(["f", pd.NA, "m", "m"], dtype=object), 4)


def test_the_resolution_follows_the_dtype() -> None:
    for kind in (pd.Series, pl.Series):
        assert validation.as_scores(kind([0, 1]), (0.0, 1.0)).resolution == 4 * np.finfo(np.float64).eps
    singles = (
        pd.Series([0, 1], dtype="float32"),
        pl.Series([0, 1], dtype=pl.Float32),
        torch.tensor([0.0, 1.0]),
    )
    for values in singles:
        found = validation.as_scores(values, (0.0, 1.0))
        assert found.values.dtype == np.float32
        assert found.resolution == 4 * np.finfo(np.float32).eps


SHUFFLED = pd.Series(["f", "m", "f", "m"], index=[3, 1, 0, 2])


def _joins() -> dict[str, Callable[[Any], Any]]:
    """Calls whose other argument has the index 0 to 3; each takes the groups."""
    scores, labels = pd.Series([0.1, 0.4, 0.6, 0.9]), pd.Series([0, 0, 1, 1])
    ages = {"f": 20.0, "m": 30.0}
    return {
        "mcdp": lambda groups: lp.mcdp(None, scores, sensitive_features=groups),
        "approximate": lambda groups: lp.mcdp_approximate(
            None, scores, sensitive_features=groups, epsilon=0.1
        ),
        "predictions": lambda groups: lp.Predictions.from_arrays(None, scores, sensitive_features=groups),
        "weights": lambda groups: lp.mcdp(
            None, scores.to_numpy(), sensitive_features=groups, sample_weight=scores
        ),
        "labels": lambda groups: lp.mcdp(
            labels, scores.to_numpy(), sensitive_features=groups, criterion="equalized_odds"
        ),
        "two columns": lambda groups: lp.mcdp(None, scores, sensitive_features={"sex": groups, "y": labels}),
        "split": lambda groups: lp.worst_split(
            lp.Predictions.from_arrays(None, scores, sensitive_features=groups.map(ages)),
            min_group_size=1,
            n_resamples=0,
        ),
        "objective": lambda groups: lp.models.MCDPObjective(labels, sensitive_features=groups),
    }


@pytest.mark.parametrize("join", _joins().values(), ids=_joins())
def test_rows_of_other_indexes_are_not_joined_by_position(join: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"sensitive_features.* indexes|indexes.*sensitive_features"):
        join(SHUFFLED)
    join(SHUFFLED.sort_index())
    join(SHUFFLED.reset_index(drop=True))


def test_the_two_arguments_whose_indexes_differ_are_named() -> None:
    scores = pd.Series([0.1, 0.4, 0.6, 0.9])
    with pytest.raises(ValueError, match=r"y_score and sensitive_features have different indexes.*to_numpy"):
        lp.mcdp(None, scores, sensitive_features=SHUFFLED)
    assert lp.mcdp(None, scores, sensitive_features=SHUFFLED.to_numpy()) == 0.5
    assert lp.mcdp(None, scores, sensitive_features=SHUFFLED.loc[scores.index]) == 0.5
    with pytest.raises(ValueError, match=r"sensitive_features.* 4 rows, y_score has 3"):
        lp.mcdp(None, scores[:3], sensitive_features=SHUFFLED)


def test_estimators_do_not_join_other_indexes_either() -> None:
    pytest.importorskip("lightgbm")
    X, y = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0]}), pd.Series([0, 1, 1, 0])
    trees = lp.models.LocalParityLGBMClassifier(n_estimators=1)
    with pytest.raises(ValueError, match="X and sensitive_features have different indexes"):
        trees.fit(X, y, sensitive_features=SHUFFLED)
    with pytest.raises(ValueError, match="X and y have different indexes"):
        trees.fit(X, y[::-1], sensitive_features=SHUFFLED.to_numpy())
