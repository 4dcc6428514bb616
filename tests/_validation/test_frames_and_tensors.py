"""Columns and rows as pandas, Polars and torch have them, where arrays are expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
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
    for labels in (pd.Series([1, 0]), pl.Series([1, 0]), torch.tensor([1, 0])):
        assert validation.as_labels(labels, 2).tolist() == [1, 0]


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
            None, scores, sensitive_features=groups.map(ages), min_share=0.3, n_resamples=0
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
