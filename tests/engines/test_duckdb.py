"""Counts out of DuckDB equal those of numpy, and a fault in the data is named."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import localparity as lp
from localparity.engines._duckdb import DuckDBScores
from scale_rows import (
    CRITERIA,
    EPSILONS,
    FAR_RANGES,
    FINE_EPSILONS,
    NARROW_RANGES,
    Rows,
    assert_exact,
    assert_same_counts,
    far_scores,
    make_rows,
    narrow_counts,
    narrow_scores,
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


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize("weighted", [False, True])
def test_on_a_grid_it_is_exact_where_it_was_asked(
    rows: Rows,
    parquet: Path,
    criterion: Any,
    compare: Any,
    weighted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(DuckDBScores, "max_refined", 100)
    found = lp.engines.from_duckdb(
        str(parquet / "*.parquet"),
        **NAMES | ({} if weighted else {"weight": None}),
        epsilons=EPSILONS,
        criterion=criterion,
        compare=compare,
        max_scores=300,
        level=6,
    )
    assert found.cells is not None
    assert 0.0 < found.rank_error < 0.2
    exact = rows.counts(weighted=weighted)
    for epsilon in EPSILONS:
        assert_exact(found, exact, epsilon=epsilon, criterion=criterion, compare=compare)
    asked: dict[str, Any] = {"epsilon": 0.033, "criterion": criterion, "compare": compare}
    bounds = lp.mcdp_bounds(found, **asked)
    assert bounds.low <= lp.mcdp(exact, **asked) <= bounds.high


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


def test_zero_has_one_sign(tmp_path: Path) -> None:
    pd.DataFrame({"p": [-0.0, 0.0, 0.5], "g": ["a", "b", "b"]}).to_parquet(tmp_path / "a.parquet")
    for level in (1, 20):
        found = lp.engines.from_duckdb(tmp_path / "a.parquet", score="p", group="g", level=level)
        assert not np.signbit(found.atoms["a", None].scores).any()


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


@pytest.mark.parametrize("score_range", NARROW_RANGES)
def test_ends_of_the_range_that_few_bits_cannot_hold(
    score_range: tuple[float, float], tmp_path: Path
) -> None:
    scores, groups = narrow_scores(score_range), np.tile([0, 1], 1000)
    path = tmp_path / "scores.parquet"
    pd.DataFrame({"p": scores, "g": groups}).to_parquet(path)
    options: dict[str, Any] = {"score": "p", "group": "g", "score_range": score_range}
    exact = narrow_counts(scores, groups, score_range)
    assert_same_counts(lp.engines.from_duckdb(path, **options), exact)
    found = lp.engines.from_duckdb(path, **options, max_scores=100, level=5)
    for epsilon in EPSILONS:
        assert_exact(found, exact, epsilon=epsilon)
    outside = np.nextafter(scores.max(), np.float32(2))
    pd.DataFrame({"p": np.append(scores, outside), "g": np.append(groups, 0)}).to_parquet(path)
    with pytest.raises(ValueError, match=r"column 'p' .*score_range.* at data row 2001"):
        lp.engines.from_duckdb(path, **options)


def test_sources_of_other_kinds_are_refused() -> None:
    people = pd.DataFrame({"p": [0.1, 0.9], "g": ["a", "b"]})
    with duckdb.connect() as other, duckdb.connect() as connection:
        for source in (people, other.execute("SELECT 1")):
            with pytest.raises(ValueError, match=f"source must be .* got {type(source).__name__}"):
                lp.engines.from_duckdb(source, score="p", group="g")
        counts = lp.engines.from_duckdb(connection.sql("SELECT * FROM people"), score="p", group="g")
    assert lp.mcdp(counts) == 1.0


def test_groups_that_are_lists_are_refused(tmp_path: Path) -> None:
    pd.DataFrame({"p": [0.1, 0.9], "g": [["a"], ["b"]]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"column 'g' .* dates, got "):
        lp.engines.from_duckdb(tmp_path / "a.parquet", score="p", group="g")


@pytest.mark.parametrize(
    ("score_range", "dtype"),
    [*((each, np.float64) for each in FAR_RANGES), *((each, np.float32) for each in FAR_RANGES[2:])],
)
def test_scores_of_any_size_are_counted_as_in_memory(
    score_range: tuple[float, float], dtype: type, tmp_path: Path
) -> None:
    scores, groups = far_scores(score_range, dtype), np.tile([0, 1], 1000)
    pd.DataFrame({"p": scores, "g": groups}).to_parquet(tmp_path / "scores.parquet")
    options: dict[str, Any] = {"score": "p", "group": "g", "score_range": score_range}
    exact = narrow_counts(scores, groups, score_range)
    assert_same_counts(lp.engines.from_duckdb(tmp_path / "scores.parquet", **options), exact)
    options |= {"max_scores": 100, "level": 5, "epsilons": FINE_EPSILONS}
    found = lp.engines.from_duckdb(tmp_path / "scores.parquet", **options)
    for epsilon in FINE_EPSILONS:
        assert_exact(found, exact, epsilon=epsilon)


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


def test_rows_that_change_between_readings_are_refused(tmp_path: Path) -> None:
    query = "SELECT random() AS p, CAST(random() * 2 AS INTEGER) % 2 AS g FROM range(300000)"
    assert lp.engines.from_duckdb(query, score="p", group="g").size == 300_000  # read once
    with pytest.raises(ValueError, match="the query must have the same rows"):
        lp.engines.from_duckdb(query, score="p", group="g", max_scores=100, level=3, epsilons=[0.0, 0.2])


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
