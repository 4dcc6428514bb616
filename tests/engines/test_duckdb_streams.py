"""Rows that stream out of DuckDB are counted as a GROUP BY counts them, and a fault late in a file is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import localparity as lp
from localparity.engines._duckdb import DuckDBScores
from scale_rows import EPSILONS, assert_exact, assert_same_counts, make_rows

NAMES: dict[str, Any] = {"score": "p", "group": "g", "label": "y", "weight": "w"}


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = make_rows(4000)
    folder = tmp_path_factory.mktemp("parquet")
    for part in range(3):
        kept = slice(part, None, 3)
        columns = {"p": rows.scores, "g": rows.groups, "y": rows.labels, "w": rows.weights}
        write(folder / f"{part}.parquet", **{name: column[kept] for name, column in columns.items()})
    return folder


def write(path: Path, **columns: Any) -> Path:
    pd.DataFrame(columns).to_parquet(path, row_group_size=3000)
    return path


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labelled", [False, True])
def test_streams_and_group_by_count_the_same(
    parquet: Path, weighted: bool, labelled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = NAMES | ({} if weighted else {"weight": None}) | ({} if labelled else {"label": None})
    options: dict[str, Any] = {"max_scores": 300, "level": 6, "epsilons": EPSILONS}
    monkeypatch.setattr(DuckDBScores, "max_refined", 100)
    streamed = lp.engines.from_duckdb(str(parquet / "*.parquet"), **names, **options)
    monkeypatch.setattr("localparity.engines._duckdb._MOST_KEYS", 0)
    grouped = lp.engines.from_duckdb(str(parquet / "*.parquet"), **names, **options)
    assert_same_counts(streamed, grouped)
    assert streamed.cells is not None
    assert grouped.cells is not None
    assert streamed.cells.lows.tobytes() == grouped.cells.lows.tobytes()


def test_streams_are_read_again_where_the_first_rows_misled(tmp_path: Path) -> None:
    rows = make_rows(20_000)
    order = np.argsort(rows.scores, kind="stable")
    path = write(tmp_path / "a.parquet", p=rows.scores[order], g=rows.groups[order])
    found = lp.engines.from_duckdb(path, score="p", group="g", max_scores=300, level=8, epsilons=EPSILONS)
    exact = rows.counts(labelled=False, weighted=False)
    for epsilon in EPSILONS:
        assert_exact(found, exact, epsilon=epsilon)


@pytest.mark.parametrize("max_scores", [10, 2**20])
def test_groups_of_any_text(tmp_path: Path, max_scores: int) -> None:
    groups = ["it's", 'say "x"', "", "né", "日本", "a;b--", "\\", "100%", "{}", "null"]
    rows = make_rows(6000)
    named = np.array(groups, dtype=object)[np.arange(6000) % len(groups)]
    path = write(tmp_path / "a.parquet", p=rows.scores, g=named)
    found = lp.engines.from_duckdb(path, score="p", group="g", max_scores=max_scores, epsilons=[0.0])
    assert set(found.groups) == set(groups)
    predictions = lp.Predictions.from_arrays(None, rows.scores, sensitive_features=named)
    assert lp.mcdp(found) == lp.mcdp(lp.ScoreCounts.from_predictions(predictions))


@pytest.mark.parametrize(
    "kind",
    [
        "DATE",
        "TIMESTAMP",
        "DECIMAL(6, 2)",
        "TINYINT",
        "HUGEINT",
        "FLOAT",
        "ENUM('1', '2')",
        "UUID",
        "BOOLEAN",
        "TIME",
    ],
)
def test_groups_stream_as_they_are_grouped(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "DATE": ("2020-02-29", "2021-01-01"),
        "TIMESTAMP": ("2020-02-29 01:02:03.5", "2021-01-01 00:00:00"),
        "UUID": ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b811-9dad-11d1-80b4-00c04fd430c8"),
        "BOOLEAN": ("true", "false"),
        "TIME": ("01:00:00", "02:00:00"),
    }.get(kind, ("1", "2"))
    query = (
        f"SELECT i / 5000 AS p, CAST(CASE i % 3 WHEN 0 THEN '{texts[0]}' ELSE '{texts[1]}' END AS {kind}) AS g "
        "FROM range(5000) t(i)"
    )
    options: dict[str, Any] = {"score": "p", "group": "g", "max_scores": 50}
    streamed = lp.engines.from_duckdb(query, **options)
    monkeypatch.setattr("localparity.engines._duckdb._MOST_KEYS", 0)
    grouped = lp.engines.from_duckdb(query, **options)
    assert_same_counts(streamed, grouped)
    assert [type(group) for group in streamed.groups] == [type(group) for group in grouped.groups]


def test_a_group_late_in_a_large_file_is_counted(tmp_path: Path) -> None:
    rows = make_rows(60_000)
    for late in (59_999, 25_000):
        groups = np.where(np.arange(60_000) < late, np.where(np.arange(60_000) % 2, "f", "m"), "x")
        path = write(tmp_path / "a.parquet", p=rows.scores, g=groups, h=groups)
        for group in ("g", ["g", "h"]):
            found = lp.engines.from_duckdb(path, score="p", group=group, max_scores=100, level=8)
            assert len(found.groups) == 3
            assert found.size == 60_000


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("p", "'nan'", r"column 'p' .* got nan at data row 45001"),
        ("p", "1.5", r"column 'p' .* got 1\.5 at data row 45001"),
        ("p", "-0.5", r"column 'p' .* got -0\.5 at data row 45001"),
        ("p", "NULL", r"column 'p' of .* got no value at data row 45001"),
        ("g", "NULL", "column 'g' has no value at data row 45001"),
        ("y", "2", r"column 'y' .* got 2 at data row 45001"),
        ("y", "NULL", r"column 'y' of .* got no value at data row 45001"),
        ("w", "-1", r"column 'w' .* got -1 at data row 45001"),
        ("w", "'inf'", r"column 'w' .* got inf at data row 45001"),
        ("w", "'nan'", r"column 'w' .* got nan at data row 45001"),
        ("w", "NULL", r"column 'w' of .* got no value at data row 45001"),
    ],
)
@pytest.mark.parametrize("max_scores", [100, 2**20])
def test_a_bad_row_late_in_a_stream_is_named(
    tmp_path: Path, column: str, value: str, message: str, max_scores: int
) -> None:
    rows = make_rows(50_000)
    columns = {"p": rows.scores, "g": rows.groups, "y": rows.labels, "w": rows.weights}
    path = write(tmp_path / "a.parquet", **columns, i=np.arange(50_000))
    bad = f"CASE WHEN i IN (45000, 48000) THEN {value} ELSE {column} END"
    kind = "VARCHAR" if column == "g" else "DOUBLE"
    query = f"SELECT * REPLACE (CAST({bad} AS {kind}) AS {column}) FROM '{path}'"
    with pytest.raises(ValueError, match=message):
        lp.engines.from_duckdb(query, **NAMES, max_scores=max_scores)


@pytest.mark.parametrize(
    "scores", [np.full(5000, 0.25), np.tile([0.0, 1.0, 0.5], 2000), 0.5 + 1e-9 * np.arange(5000)]
)
@pytest.mark.parametrize("max_scores", [2, 20, 2**20])
def test_ties_and_scores_that_share_a_cell(tmp_path: Path, scores: NDArray[Any], max_scores: int) -> None:
    groups = np.where(np.arange(scores.size) % 5 < 2, "a", "b")
    path = write(tmp_path / "a.parquet", p=scores, g=groups)
    found = lp.engines.from_duckdb(
        path, score="p", group="g", max_scores=max_scores, level=4, epsilons=[0.0, 0.1]
    )
    predictions = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    exact = lp.ScoreCounts.from_predictions(predictions)
    for epsilon in (0.0, 0.1):
        assert lp.mcdp(found, epsilon=epsilon) == lp.mcdp(exact, epsilon=epsilon)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
def test_files_without_rows_or_with_one_group(tmp_path: Path, name: str) -> None:
    for rows in (0, 3000):
        groups = ["f"] * rows
        frame = pd.DataFrame({"p": np.linspace(0, 1, rows), "g": pd.Series(groups, dtype=object)})
        kept = tmp_path / name
        frame.to_parquet(kept) if name.endswith("parquet") else frame.to_csv(kept, index=False)
        message = "two groups, got 'f' only" if rows else f"{name} has no rows"
        for max_scores in (10, 2**20):
            with pytest.raises(ValueError, match=message):
                lp.engines.from_duckdb(kept, score="p", group="g", max_scores=max_scores)


def test_a_group_without_weight_in_a_stream_is_named(tmp_path: Path) -> None:
    rows = make_rows(30_000)
    weights = np.where(rows.groups == "c", 0.0, 1.0)
    path = write(tmp_path / "a.parquet", p=rows.scores, g=rows.groups, w=weights)
    for max_scores in (100, 2**20):
        with pytest.raises(ValueError, match=r"column 'w' .* group 'c', got 0"):
            lp.engines.from_duckdb(path, score="p", group="g", weight="w", max_scores=max_scores)


@pytest.mark.parametrize("most_held", [0, 300, 3000])
@pytest.mark.parametrize("labelled", [False, True])
def test_more_rows_decide_than_are_held(
    tmp_path: Path, most_held: int, labelled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Near parity all cells decide at first, and rows are held only from a finer grid on.
    monkeypatch.setattr("localparity.engines._duckdb_stream.MOST_HELD", most_held)
    monkeypatch.setattr(DuckDBScores, "max_refined", 100)
    rng = np.random.default_rng(0)
    scores, groups, labels = (
        rng.random(20_000),
        rng.choice(["a", "b", "c"], 20_000),
        rng.integers(0, 2, 20_000),
    )
    path = write(tmp_path / "a.parquet", p=scores, g=groups, y=labels)
    criterion: Any = "equalized_odds" if labelled else "demographic_parity"
    found = lp.engines.from_duckdb(
        path, score="p", group="g", label="y", max_scores=300, level=5, epsilons=EPSILONS, criterion=criterion
    )
    assert found.cells is not None
    for epsilon in EPSILONS:
        exact = lp.mcdp(labels, scores, sensitive_features=groups, epsilon=epsilon, criterion=criterion)
        assert lp.mcdp(found, epsilon=epsilon, criterion=criterion) == exact


@pytest.mark.parametrize("by", ["p", "g", "y"])
@pytest.mark.parametrize("criterion", ["equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("table_level", [20, 3])
def test_files_in_any_order(
    tmp_path: Path, by: str, criterion: Any, table_level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first rows, by which the cells that decide are guessed, may be of one group or label only.
    monkeypatch.setattr("localparity.engines._duckdb_stream._TABLE_LEVEL", table_level)
    rows = make_rows(20_000)
    frame = pd.DataFrame({"p": rows.scores, "g": rows.groups, "y": rows.labels}).sort_values(by)
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=3000)
    found = lp.engines.from_duckdb(
        tmp_path / "a.parquet", **NAMES | {"weight": None}, max_scores=300, level=8, criterion=criterion
    )
    exact = rows.counts(weighted=False)
    assert lp.mcdp(found, criterion=criterion) == lp.mcdp(exact, criterion=criterion)


@pytest.mark.parametrize("max_scores", [10, 2**20])
def test_a_group_and_label_of_which_no_row_weighs_anything(tmp_path: Path, max_scores: int) -> None:
    rows = make_rows(20_000)
    weights = np.where((rows.groups == "b") & (rows.labels == 0), 0.0, rows.weights)
    path = write(tmp_path / "a.parquet", p=rows.scores, g=rows.groups, y=rows.labels, w=weights)
    found = lp.engines.from_duckdb(path, **NAMES, max_scores=max_scores, level=6, epsilons=[0.0, 0.05])
    asked: dict[str, Any] = {
        "sensitive_features": rows.groups,
        "sample_weight": weights,
        "epsilon": [0.0, 0.05],
    }
    np.testing.assert_array_equal(lp.mcdp(found, epsilon=[0.0, 0.05]), lp.mcdp(None, rows.scores, **asked))


def test_rows_that_change_between_readings_are_refused() -> None:
    query = "SELECT pow(random(), 1 + i % 2) AS p, i % 2 AS g FROM range(300000) AS rows(i)"
    assert lp.engines.from_duckdb(query, score="p", group="g").size == 300_000  # read once
    with pytest.raises(ValueError, match="the query must have the same rows"):  # noqa: PT012
        # As many rows may come to lie in the cells that are read again, but not again and again.
        for _ in range(5):
            lp.engines.from_duckdb(query, score="p", group="g", max_scores=100, level=6, epsilons=[0.1])


def test_counts_on_a_grid_merge(tmp_path: Path) -> None:
    rows = make_rows(40_000)
    options: dict[str, Any] = {"score": "p", "group": "g", "max_scores": 500, "level": 10}
    parts = []
    for part in range(2):
        kept = slice(part * 20_000, (part + 1) * 20_000)
        path = write(tmp_path / f"{part}.parquet", p=rows.scores[kept], g=rows.groups[kept])
        parts.append(lp.engines.from_duckdb(path, **options))
    merged, exact = parts[0].merge(parts[1]), rows.counts(labelled=False, weighted=False)
    assert merged.size == 40_000
    for epsilon in (0.0, 0.02, 0.1):
        bounds = lp.mcdp_bounds(merged, epsilon=epsilon)
        assert bounds.low <= lp.mcdp(exact, epsilon=epsilon) <= bounds.high
    assert merged.rank_error < 0.02
