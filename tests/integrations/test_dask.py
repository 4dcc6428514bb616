"""Trees of a real Dask cluster with two processes, against those of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from localparity.integrations.dask import train
from localparity.models import MCDPObjective

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
xgboost = pytest.importorskip("xgboost")

PARAMETERS: dict[str, Any] = {"max_depth": 4, "learning_rate": 0.3, "nthread": 1, "seed": 0}
ROUNDS = 10


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    minutes = {f"distributed.comm.timeouts.{what}": "300s" for what in ("connect", "tcp")}
    with (
        dask.config.set(minutes),  # however busy the machine
        distributed.LocalCluster(host="127.0.0.1", processes=True, **options) as cluster,
        distributed.Client(cluster, timeout=300) as found,
    ):
        yield found


def rows(size: int = 3000, seed: int = 0) -> pd.DataFrame:
    """People whose features have few distinct values, so that bins do not depend on the partitions."""
    census = lp.datasets.make_census(size, random_state=seed)
    table = census.data.assign(y=census.target, sex=census.sensitive_features.astype(object))
    numbers = ["age", "education_years", "hours_per_week"]
    table[numbers] = table[numbers].round()
    weights = np.random.default_rng(seed).integers(1, 4, size) / 2.0
    return table.assign(occupation=table["occupation"].astype("category"), w=weights)


def features(table: Any) -> Any:
    return table.drop(columns=["y", "sex", "w"])


def in_one_process(table: pd.DataFrame, *, weighted: bool = False, **options: Any) -> Any:
    weights = table["w"].to_numpy() if weighted else np.ones(len(table))
    objective = MCDPObjective(
        table["y"], sensitive_features=table["sex"], sample_weight=weights if weighted else None, **options
    )
    score = float(np.average(table["y"], weights=weights))
    parameters = {**PARAMETERS, "objective": "binary:logistic", "base_score": score, "tree_method": "hist"}
    data = xgboost.QuantileDMatrix(features(table), enable_categorical=True)
    return xgboost.train(parameters, data, ROUNDS, obj=objective)


def on_cluster(client: Any, table: Any, *, weighted: bool = False, **options: Any) -> Any:
    return train(
        client,
        features(table),
        table["y"],
        sensitive_features=table["sex"],
        sample_weight=table["w"] if weighted else None,
        num_boost_round=ROUNDS,
        booster_params=PARAMETERS,
        **options,
    )


def scores(booster: Any, table: pd.DataFrame) -> Any:
    return booster.predict(xgboost.DMatrix(features(table), enable_categorical=True))


@pytest.mark.parametrize(
    "options",
    [
        {"strength": 0.5},
        {"strength": 0.5, "epsilon": 0.05, "criterion": "equalized_odds", "weighted": True},
    ],
)
def test_two_workers_grow_the_trees_of_one_process(client: Any, options: dict[str, Any]) -> None:
    from dask import dataframe

    table = rows()
    # The partitions differ: all of one group's people are in the first ones.
    spread = dataframe.from_pandas(table.sort_values("sex", ignore_index=True), npartitions=4)
    found, expected = on_cluster(client, spread, **options), in_one_process(table, **options)
    splits = ["Tree", "Node", "Feature", "Split"]
    pd.testing.assert_frame_equal(found.trees_to_dataframe()[splits], expected.trees_to_dataframe()[splits])
    others = rows(seed=1)
    np.testing.assert_allclose(scores(found, others), scores(expected, others), rtol=0.0, atol=1e-6)
    plain = in_one_process(table, strength=0.0)
    assert np.abs(scores(plain, others) - scores(expected, others)).max() > 0.05


def test_arrays(client: Any) -> None:
    from dask import array

    table = rows()[["age", "education_years", "y", "sex", "w"]].reset_index(drop=True)
    values = features(table).to_numpy(dtype=np.float64)
    found = train(
        client,
        array.from_array(values, chunks=(1000, -1)),
        array.from_array(table["y"].to_numpy(), chunks=1000),
        sensitive_features=array.from_array((table["sex"] == "Male").to_numpy(), chunks=1000),
        strength=0.5,
        num_boost_round=ROUNDS,
        booster_params=PARAMETERS,
    )
    expected = in_one_process(table, strength=0.5)
    assert found.num_boosted_rounds() == ROUNDS
    np.testing.assert_allclose(found.inplace_predict(values), scores(expected, table), rtol=0.0, atol=1e-6)


def test_what_cannot_be_trained_is_named(client: Any) -> None:
    from dask import dataframe

    table = rows(200)
    with pytest.raises(ValueError, match="sensitive_features must have at least two groups, got 'Male' only"):
        on_cluster(client, dataframe.from_pandas(table[table["sex"] == "Male"], npartitions=2))
    missing = table.assign(sex=table["sex"].where(table["sex"] == "Male"))
    with pytest.raises(ValueError, match="sensitive_features has no value"):
        on_cluster(client, dataframe.from_pandas(missing, npartitions=2))
    with pytest.raises(ValueError, match="booster_params must not have 'objective'"):
        train(client, None, None, sensitive_features=None, booster_params={"objective": "rank:ndcg"})
