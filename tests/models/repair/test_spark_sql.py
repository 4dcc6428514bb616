"""Repaired scores as expressions of a real Spark, against `transform`, fitted on what it counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from localparity.models import GroupBlindRepair, ScoreRepair

pytest.importorskip("pyspark.sql")


def people(rows: int, seed: int) -> pd.DataFrame:
    census = lp.datasets.make_census(rows, random_state=seed)
    chances = {"care": 0.78, "office": 0.55, "technical": 0.4, "trades": 0.1}
    women = census.data["occupation"].map(chances).to_numpy(dtype=np.float64)
    names = np.where(census.sensitive_features == "Male", "it's a\\b", 'f`"')
    return pd.DataFrame({"a `score`.x": census.score, "g.": names, "w": women, "m": 1.0 - women})


def evaluated(spark: Any, table: pd.DataFrame, expression: str, folder: Any) -> Any:
    path = str(folder / "people.parquet")
    table.assign(row=np.arange(len(table))).to_parquet(path)
    found = spark.read.parquet(path).repartition(3).selectExpr("row", f"{expression} AS found")
    assert "Python" not in found._jdf.queryExecution().toString()
    columns = found.toArrow()
    return columns["found"].to_numpy()[np.argsort(columns["row"].to_numpy())]


def check_group_aware(spark: Any, table: pd.DataFrame, folder: Any) -> None:
    fitted = people(1000, 0)
    repair = ScoreRepair(max_mcdp=0.05).fit(fitted["a `score`.x"], sensitive_features=fitted["g."])
    expected = repair.transform(table["a `score`.x"], sensitive_features=table["g."])
    found = evaluated(spark, table, repair.to_sql("spark", score="a `score`.x", group="g."), folder)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)


def check_group_blind(spark: Any, table: pd.DataFrame, folder: Any) -> None:
    fitted = people(2000, 0)
    repair = GroupBlindRepair(max_mcdp=0.15).fit(
        fitted["a `score`.x"], sensitive_features=fitted["g."], group_probabilities=fitted[["w", "m"]]
    )
    expected = repair.transform(table["a `score`.x"], group_probabilities=table[["w", "m"]])
    expression = repair.to_sql("spark", score="a `score`.x", group_probabilities=["w", "m"])
    found = evaluated(spark, table, expression, folder)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)


def test_a_score_goes_through_the_map_of_its_group(spark: Any, tmp_path: Any) -> None:
    check_group_aware(spark, people(3000, 1), tmp_path)


@pytest.mark.slow
def test_a_group_blind_score(spark: Any, tmp_path: Any) -> None:
    check_group_blind(spark, people(1000, 1), tmp_path)


def test_what_transform_refuses_is_null(spark: Any, tmp_path: Any) -> None:
    fitted = people(500, 0)
    repair = ScoreRepair(max_mcdp=0.3).fit(fitted["w"], sensitive_features=(fitted["w"] > 0.5).astype(str))
    table = pd.DataFrame({"score": [0.5, None, 1.1, 0.5, 0.5], "group": ["True", "True", "True", None, "x"]})
    found = evaluated(spark, table, repair.to_sql("spark"), tmp_path)
    np.testing.assert_array_equal(np.isnan(found.astype(float)), [False, True, True, True, True])


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_group_aware, check_group_blind])
def test_a_million_rows(spark: Any, tmp_path: Any, check: Any) -> None:
    check(spark, people(10**6, 3), tmp_path)
