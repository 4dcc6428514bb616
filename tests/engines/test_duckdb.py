"""Counts out of DuckDB equal those of numpy, and a fault in the data is named."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import localparity as lp
from scale_rows import (
    EPSILONS,
    Rows,
    assert_exact,
    assert_same_counts,
    make_rows,
)


@pytest.fixture(scope="module")
def rows() -> Rows:
    return make_rows(4000)


@pytest.fixture(scope="module")
def frame(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame({"p": rows.scores, "g": rows.groups, "y": rows.labels, "w": rows.weights})


@pytest.fixture(scope="module")
def parquet(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parquet")
    for part in range(3):
        frame.iloc[part::3].to_parquet(folder / f"{part}.parquet", row_group_size=500)
    return folder


NAMES: dict[str, Any] = {"score": "p", "group": "g", "label": "y", "weight": "w"}


def test_every_kind_of_source_gives_the_counts_of_numpy(
    rows: Rows, frame: pd.DataFrame, parquet: Path, tmp_path: Path
) -> None:
    frame.to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    connection = duckdb.connect()
    sources = [
        str(parquet / "*.parquet"),
        sorted(parquet.glob("*.parquet")),
        tmp_path / "a.csv",
        tmp_path / "a.csv.gz",
        f"SELECT * FROM '{parquet}/*.parquet';",
        connection.read_parquet(str(parquet / "*.parquet")),
    ]
    for source in sources:
        assert_same_counts(lp.engines.from_duckdb(source, **NAMES), rows.counts())


def test_float32_scores_keep_their_resolution(rows: Rows, tmp_path: Path) -> None:
    single = rows.scores.astype(np.float32)
    pd.DataFrame({"p": single, "g": rows.groups}).to_parquet(tmp_path / "a.parquet")
    predictions = lp.Predictions.from_arrays(None, single, sensitive_features=rows.groups)
    expected = lp.ScoreCounts.from_predictions(predictions)
    assert_same_counts(lp.engines.from_duckdb(tmp_path / "a.parquet", score="p", group="g"), expected)
    read = lp.Predictions.read(tmp_path / "a.parquet", score="p", group="g")
    assert_same_counts(lp.ScoreCounts.from_predictions(read), expected)


def test_other_ranges_and_intersections(rows: Rows, tmp_path: Path) -> None:
    scores, other = 300 + 550 * rows.scores, np.where(rows.labels == 1, "x", "y")
    pd.DataFrame({"p": scores, "g": rows.groups, "h": other}).to_parquet(tmp_path / "a.parquet")
    predictions = lp.Predictions.from_arrays(
        None, scores, sensitive_features={"g": rows.groups, "h": other}, score_range=(300, 850)
    )
    exact = lp.ScoreCounts.from_predictions(predictions)
    options: dict[str, Any] = {"score": "p", "group": ["g", "h"], "score_range": (300, 850)}
    assert_same_counts(lp.engines.from_duckdb(tmp_path / "a.parquet", **options), exact)
    found = lp.engines.from_duckdb(
        tmp_path / "a.parquet", **options, epsilons=EPSILONS, max_scores=500, level=5
    )
    for epsilon in EPSILONS:
        assert_exact(found, exact, epsilon=epsilon)


def test_groups_of_any_type(tmp_path: Path) -> None:
    for groups in ([1, 2], [True, False], [0.5, 1.5], ["a", "b"], [-(2**40), 7]):
        pd.DataFrame({"p": [0.1, 0.9], "g": groups}).to_parquet(tmp_path / "a.parquet")
        found = lp.engines.from_duckdb(tmp_path / "a.parquet", score="p", group="g")
        assert found.groups == tuple(sorted(groups))
        assert [type(group) for group in found.groups] == [type(groups[0])] * 2


def test_a_group_that_appears_late_is_counted(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("p,g\n0.1,a\n0.2,b\n")
    (tmp_path / "2.csv").write_text("p,g\n0.1,a\n0.2,c\n")
    found = lp.engines.from_duckdb(str(tmp_path / "*.csv"), score="p", group="g")
    assert found.groups == ("a", "b", "c")
    parts = [lp.engines.from_duckdb(tmp_path / name, score="p", group="g") for name in ("2.csv", "1.csv")]
    assert_same_counts(lp.counts.merge_bounded(parts), found)


def test_a_group_of_no_text_is_a_group(tmp_path: Path) -> None:
    table = pd.DataFrame({"p": [0.1, 0.5], "g": ["", "m"], "y": [2, 1]})
    table.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"column 'y' .* got 2 at data row 1"):
        lp.engines.from_duckdb(tmp_path / "a.parquet", score="p", group="g", label="y")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("p,g\n0.1,f\n1.5,m\n", {}, r"column 'p' .*score_range \(0.0, 1.0\), got 1.5 at data row 2"),
        ("p,g\n0.1,f\nnan,m\n", {}, "column 'p' .* got nan at data row 2"),
        ("p,g\n0.1,f\ninf,m\n", {}, "column 'p' .* got inf at data row 2"),
        ("p,g\n0.1,f\n,m\n", {}, "column 'p' of .*a.csv .* got no value at data row 2"),
        ("p,g\n0.1,f\nhigh,m\n", {}, "column 'p' of .*a.csv .* got 'high' at data row 2"),
        ("p,g\n0.1,f\n0.5,\n", {}, "column 'g' has no value at data row 2"),
        ("p,g\n0.1,f\n0.5,f\n", {}, "column 'g' .* two groups, got 'f' only"),
        ("p,g,y\n0.1,f,2\n0.5,m,1\n", {"label": "y"}, "column 'y' .* got 2 at data row 1"),
        ("p,g,y\n0.1,f,1\n0.5,m,\n", {"label": "y"}, "column 'y' of .*a.csv .* got no value at data row 2"),
        ("p,g,w\n0.1,f,-1\n0.5,m,1\n", {"weight": "w"}, "column 'w' .* got -1 at data row 1"),
        ("p,g,w\n0.1,f,inf\n0.5,m,1\n", {"weight": "w"}, "column 'w' .* got inf at data row 1"),
        ("p,g,w\n0.1,f,1e-30\n0.5,m,1\n", {"weight": "w"}, "column 'w' .* got 1e-30 at data row 1"),
        ("p,g,w\n0.1,f,0\n0.5,m,1\n", {"weight": "w"}, "column 'w' .* group 'f', got 0"),
        ("p,g\n0.1,f\n0.5,m\n", {"group": []}, "group .* got none"),
        ("p,g\n0.1,f\n0.5,m\n", {"group": "h"}, "there is no column in .*a.csv named 'h'"),
        ("p,g\n0.1,f\n0.5,m\n", {"score_range": (1, 0)}, r"score_range .* got \(1.0, 0.0\)"),
        ("p,g\n0.1,f\n0.5,m\n", {"epsilons": [-1]}, r"epsilons must be .* got -1"),
        ("p,g\n0.1,f\n0.5,m\n", {"max_scores": 0}, r"max_scores must be .* got 0"),
        ("p,g\n", {}, "a.csv has no rows"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        lp.engines.from_duckdb(tmp_path / "a.csv", **{"score": "p", "group": "g", **options})


def test_a_row_late_in_a_large_file_is_found(tmp_path: Path) -> None:
    scores = np.linspace(0, 1, 300_000)
    scores[250_000] = 7.0
    groups = np.where(np.arange(scores.size) % 2, "f", "m").astype(object)
    pd.DataFrame({"p": scores, "g": groups}).to_parquet(tmp_path / "a.parquet", row_group_size=20_000)
    with pytest.raises(ValueError, match=r"column 'p' .*score_range.* got 7\.0 at data row 250001"):
        lp.engines.from_duckdb(tmp_path / "a.parquet", score="p", group="g")
    groups[270_000] = None
    pd.DataFrame({"p": scores / 7, "g": groups}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="column 'g' has no value at data row 270001"):
        lp.engines.from_duckdb(tmp_path / "a.parquet", score="p", group="g")


def test_nan_in_a_group_of_floats_is_no_group(tmp_path: Path) -> None:
    duckdb.sql(
        f"COPY (SELECT * FROM (VALUES (0.1, 1.0::DOUBLE), (0.2, 2.0), (0.3, 'nan'::DOUBLE)) t(p, g)) "
        f"TO '{tmp_path}/a.parquet'"
    )
    with pytest.raises(ValueError, match="column 'g' has no value at data row 3"):
        lp.engines.from_duckdb(tmp_path / "a.parquet", score="p", group="g")


def test_a_truncated_or_damaged_parquet_names_the_file(parquet: Path, tmp_path: Path) -> None:
    whole = (parquet / "0.parquet").read_bytes()
    (tmp_path / "0.parquet").write_bytes(whole)
    (tmp_path / "1.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"cannot be read: .*1\.parquet"):
        lp.engines.from_duckdb(str(tmp_path / "*.parquet"), score="p", group="g")
    damaged = bytearray(whole)
    damaged[100:2000] = bytes(1900)
    (tmp_path / "1.parquet").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"1\.parquet.* cannot be read: "):
        lp.engines.from_duckdb(tmp_path / "1.parquet", score="p", group="g")


def test_a_query_that_is_wrong_is_said() -> None:
    with pytest.raises(ValueError, match=r"the query cannot be read: .*syntax error"):
        lp.engines.from_duckdb("SELECT FROM WHERE", score="p", group="g")
    with pytest.raises(ValueError, match="there is no column in the relation named 'p'"):
        lp.engines.from_duckdb(duckdb.sql("SELECT 1 AS q"), score="p", group="g")


def test_sources_of_other_kinds_are_refused() -> None:
    people = pd.DataFrame({"p": [0.1, 0.9], "g": ["a", "b"]})
    with duckdb.connect() as other, duckdb.connect() as connection:
        for source in (people, pl.LazyFrame({"p": [0.1]}), other.execute("SELECT 1")):
            with pytest.raises(ValueError, match=f"source must be .* got {type(source).__name__}"):
                lp.engines.from_duckdb(source, score="p", group="g")
        counts = lp.engines.from_duckdb(connection.sql("SELECT * FROM people"), score="p", group="g")
    assert lp.mcdp(counts) == 1.0


def test_groups_that_are_lists_are_refused(tmp_path: Path) -> None:
    pd.DataFrame({"p": [0.1, 0.9], "g": [["a"], ["b"]]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"column 'g' .* dates, got "):
        lp.engines.from_duckdb(tmp_path / "a.parquet", score="p", group="g")
