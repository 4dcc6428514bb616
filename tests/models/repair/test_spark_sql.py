"""Repaired scores as expressions of a real Spark, against `transform`, fitted on what it counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from localparity.models import ScoreRepair

pytest.importorskip("pyspark.sql")


def people(rows: int, seed: int) -> pd.DataFrame:
    census = lp.datasets.make_census(rows, random_state=seed)
    names = np.where(census.sensitive_features == "Male", "it's a\\b", 'f`"')
    return pd.DataFrame({"a `score`.x": census.score, "g.": names})


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


def test_a_score_goes_through_the_map_of_its_group(spark: Any, tmp_path: Any) -> None:
    check_group_aware(spark, people(3000, 1), tmp_path)


def test_what_transform_refuses_is_null(spark: Any, tmp_path: Any) -> None:
    fitted = people(500, 0)
    scores = fitted["a `score`.x"]
    repair = ScoreRepair(max_mcdp=0.3).fit(scores, sensitive_features=(scores > 0.5).astype(str))
    table = pd.DataFrame({"score": [0.5, None, 1.1, 0.5, 0.5], "group": ["True", "True", "True", None, "x"]})
    found = evaluated(spark, table, repair.to_sql("spark"), tmp_path)
    np.testing.assert_array_equal(np.isnan(found.astype(float)), [False, True, True, True, True])


@pytest.mark.slow
def test_a_million_rows(spark: Any, tmp_path: Any) -> None:
    check_group_aware(spark, people(10**6, 3), tmp_path)
