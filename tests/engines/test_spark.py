"""Counts out of a real Spark on this machine, with several partitions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from localparity.engines._spark import SparkScores, read_spark
from localparity.engines._table import ScoreColumns
from localparity.engines.protocol import CellSelection
from scale_rows import (
    Rows,
    assert_same_counts,
    make_rows,
)
from typed_commands import only_audit

pytest.importorskip("pyspark.sql")

NAMES: dict[str, Any] = {"score": "p", "group": "g", "label": "y", "weight": "w"}


def test_a_column_without_an_order_is_no_array(spark: Any) -> None:
    sex = spark.createDataFrame([("f",), ("m",)], ["sex"])
    with pytest.raises(ValueError, match=r"sensitive_features .*got a DataFrame"):
        lp.mcdp(None, [0.1, 0.2], sensitive_features=sex)


@pytest.fixture(scope="module")
def rows() -> Rows:
    return make_rows(4000)


@pytest.fixture(scope="module")
def folder(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scores") / "lake"
    folder.mkdir()
    frame = pd.DataFrame(
        {
            "p": rows.scores,
            "g": rows.groups,
            "y": rows.labels,
            "w": rows.weights,
            "f": rows.scores.astype("f4"),
        }
    )
    for part in range(5):
        frame.iloc[part::5].to_parquet(folder / f"{part}.parquet")
    return folder


def test_counts_are_those_of_numpy_bit_for_bit(spark: Any, rows: Rows, folder: Path) -> None:
    frame = spark.read.parquet(str(folder)).repartition(7)
    assert_same_counts(lp.engines.from_spark(frame, **NAMES), rows.counts())
    plain = lp.engines.from_spark(frame, score="p", group="g")
    assert_same_counts(plain, rows.counts(labelled=False, weighted=False))
    assert_same_counts(plain, lp.engines.from_duckdb(str(folder / "*.parquet"), score="p", group="g"))
    single = lp.Predictions.from_arrays(None, rows.scores.astype(np.float32), sensitive_features=rows.groups)
    expected = lp.ScoreCounts.from_predictions(single)
    assert_same_counts(lp.engines.from_spark(frame, score="f", group="g"), expected)


def test_few_scores_many_rows_and_intersections(spark: Any, rows: Rows) -> None:
    scores = (300 + 550 * rows.scores.round(2)).tolist()
    values = list(zip(scores, rows.groups.tolist(), (rows.labels == 1).tolist(), strict=True))
    frame = spark.createDataFrame(values, ["a.b", "g`1", "h"])
    found = lp.engines.from_spark(
        frame, score="a.b", group=["g`1", "h"], score_range=(300, 850), max_scores=900, level=4
    )
    predictions = lp.Predictions.from_arrays(
        None,
        300 + 550 * rows.scores.round(2),
        sensitive_features={"g": rows.groups, "h": rows.labels == 1},
        score_range=(300, 850),
    )
    assert_same_counts(found, lp.ScoreCounts.from_predictions(predictions))


def test_no_python_on_the_workers_and_no_stage_of_one_partition(spark: Any, folder: Path) -> None:
    columns = ScoreColumns("p", ("g",), "y", "w")
    source = SparkScores(spark.read.parquet(str(folder)).repartition(7), columns)
    for within in (None, CellSelection(6, np.array([3, 4]))):
        for place in (source._cell(20), "s"):
            counted = source.counted(place, within)
            plan = counted._jdf.queryExecution().toString()
            assert "Python" not in plan
            assert "SinglePartition" not in plan
            assert "Window" not in plan
            assert "hashpartitioning" in plan


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([(0.1, "f"), (1.5, "m")], {}, r"column 'p' .*score_range \(0.0, 1.0\), got 1.5 at some row"),
        ([(0.1, "f"), (float("nan"), "m")], {}, "column 'p' .* got nan at some row"),
        ([(0.1, "f"), (float("inf"), "m")], {}, "column 'p' .* got inf at some row"),
        ([(0.1, "f"), (None, "m")], {}, "column 'p' must be numbers, got .* at some row"),
        ([("0.1", "f"), ("high", "m")], {}, "column 'p' must be numbers, got .* at some row"),
        ([(0.1, "f"), (0.5, None)], {}, "column 'g' has no value at some row"),
        ([(0.1, 1.0), (0.5, float("nan"))], {}, "column 'g' has no value at some row"),
        ([(0.1, "f"), (0.5, "f")], {}, "column 'g' .* two groups, got 'f' only"),
        ([(0.1, 2), (0.5, 1)], {"label": "g"}, "column 'g' .* got 2 at some row"),
        ([(0.1, -1), (0.5, 1)], {"weight": "g"}, "column 'g' .* got -1 at some row"),
        ([(0.1, 0), (0.5, 1)], {"weight": "g"}, "column 'g' .* group 0, got 0"),
        ([(0.1, "f"), (0.5, "m")], {"group": "sex"}, "there is no column in the data frame named 'sex'"),
    ],
)
def test_what_does_not_fit_is_named(
    spark: Any, values: list[Any], options: dict[str, Any], message: str
) -> None:
    frame = spark.createDataFrame(values, ["p", "g"])
    with pytest.raises(ValueError, match=message):
        lp.engines.from_spark(frame, **{"score": "p", "group": "g", **options})


def test_no_rows_and_a_group_that_appears_late(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(0.1, "a"), (0.2, "b"), (0.3, "c")], ["p", "g"])
    with pytest.raises(ValueError, match="the data frame has no rows"):
        lp.engines.from_spark(frame.where("p > 1"), score="p", group="g")
    early, late = (lp.engines.from_spark(frame.where(f"g != '{g}'"), score="p", group="g") for g in "cb")
    assert late.merge(early).groups == ("a", "b", "c")


def test_words_of_truth_are_labels(spark: Any) -> None:
    frame = spark.createDataFrame([("0.1", "a", "TRUE"), ("-0.0", "b", "false")], ["p", "g", "y"])
    found = lp.engines.from_spark(frame, score="p", group="g", label="y")
    assert {key for key, atoms in found.atoms.items() if atoms.size} == {("a", 1), ("b", 0)}
    assert not np.signbit(found.atoms["b", 0].scores).any()


def test_files_of_every_kind(spark: Any, rows: Rows, tmp_path: Path) -> None:
    frame = pd.DataFrame({"p": rows.scores, "g": rows.groups})
    expected = rows.counts(labelled=False, weighted=False)
    frame.to_csv(tmp_path / "a.csv", sep=";", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True, double_precision=15)
    for name in ("a.csv", "a.parquet"):
        found = lp.engines.from_spark(read_spark(str(tmp_path / name)), score="p", group="g")
        assert_same_counts(found, expected)
    assert read_spark(str(tmp_path / "a.jsonl")).count() == rows.scores.size


def test_files_that_cannot_be_read_are_named(spark: Any, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere.csv cannot be read: .*PATH_NOT_FOUND"):
        read_spark(str(tmp_path / "nowhere.csv"))
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(ValueError, match=r"empty.csv is empty"):
        read_spark(str(tmp_path / "empty.csv"))
    broken = tmp_path / "broken"
    broken.mkdir()
    whole = (folder / "0.parquet").read_bytes()
    (broken / "0.parquet").write_bytes(whole)
    (broken / "1.parquet").write_bytes(whole[: len(whole) // 2])
    frame = spark.read.schema(spark.read.parquet(str(folder)).schema).parquet(str(broken))
    with pytest.raises(ValueError, match=r"the data frame cannot be read: .*1\.parquet"):
        lp.engines.from_spark(frame, score="p", group="g")


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "localparity", *map(str, arguments)]
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        **environment,
    }
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.slow
def test_the_command_says_the_same_by_spark(folder: Path) -> None:
    options = ["--score", "p", "--group", "g", "--resamples", 20, "--json"]
    by_spark = run("audit", folder, *options, "--engine", "spark")
    assert by_spark.returncode == 0, by_spark.stderr
    by_duckdb = run("audit", folder / "*.parquet", *options)
    assert only_audit(by_spark.stdout) == only_audit(by_duckdb.stdout)


def test_without_java_the_command_says_so(folder: Path) -> None:
    options = ["--score", "p", "--group", "g", "--engine", "spark"]
    found = run("audit", folder, *options, JAVA_HOME="/nonexistent")
    assert found.returncode == 2
    assert "error: Spark does not start; is Java installed?" in found.stderr
