"""Counts out of real databases through Ibis: PostgreSQL, DuckDB, SQLite and Polars; SQL for those that are far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from localparity._io._duckdb import quote_name
from localparity.counts._coarsen import cell_numbers
from localparity.engines import _ibis
from localparity.engines._ibis import IbisScores
from localparity.engines._table import ScoreColumns
from localparity.engines.protocol import CountOptions
from scale_rows import (
    EPSILONS,
    Rows,
    assert_exact,
    assert_same_counts,
    make_rows,
)

ibis = pytest.importorskip("ibis")
arrow = pytest.importorskip("pyarrow")
pytest.importorskip("polars")
psycopg = pytest.importorskip("psycopg")

# Ibis 12 calls what DuckDB 2 calls by another name.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

BACKENDS = ("postgres", "duckdb", "sqlite", "polars")
FAR = ("bigquery", "snowflake", "databricks")
NAMES: dict[str, Any] = {"score": "p", "group": "g", "label": "y", "weight": "w"}
TYPES = {"float64": "double precision", "float32": "real", "int64": "bigint", "bool": "boolean"}

MakeTable = Callable[[pd.DataFrame], Any]


@pytest.fixture(scope="module")
def connections(postgres: str) -> Iterator[dict[str, Any]]:
    opened = {
        "postgres": ibis.connect(postgres),
        "duckdb": ibis.duckdb.connect(),
        "sqlite": ibis.sqlite.connect(),
        "polars": ibis.polars.connect(),
    }
    yield opened
    opened["postgres"].disconnect()


@pytest.fixture(params=BACKENDS)
def make_table(request: pytest.FixtureRequest, connections: dict[str, Any]) -> Iterator[MakeTable]:
    """Makes tables of frames in one of the databases."""
    connection, names = connections[request.param], []

    def make(frame: pd.DataFrame) -> Any:
        names.append(f"t{len(names)}")
        if request.param != "postgres":
            return connection.create_table(names[-1], arrow.Table.from_pandas(frame))
        columns = ", ".join(
            f"{quote_name(name)} {TYPES.get(str(kind), 'text')}" for name, kind in frame.dtypes.items()
        )
        with connection.con.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {names[-1]} ({columns})")
            with cursor.copy(f"COPY {names[-1]} FROM STDIN") as copy:
                for row in frame.astype(object).itertuples(index=False):
                    copy.write_row([None if value is np.nan else value for value in row])
        connection.con.commit()
        return connection.table(names[-1])

    yield make
    for name in names:
        connection.drop_table(name, force=True)


@pytest.fixture(scope="module")
def rows() -> Rows:
    return make_rows(2000)


@pytest.fixture(scope="module")
def frame(rows: Rows) -> pd.DataFrame:
    columns = {"p": rows.scores, "g": rows.groups, "y": rows.labels, "w": rows.weights}
    return pd.DataFrame(columns | {"f": rows.scores.astype("f4"), "b": rows.labels == 1})


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each query returned."""
    sizes = []
    fetch = IbisScores._fetch

    def noted(self: IbisScores, counted: Any) -> Any:
        found = fetch(self, counted)
        sizes.append(found.num_rows)
        return found

    monkeypatch.setattr(IbisScores, "_fetch", noted)
    return sizes


def test_counts_are_those_of_numpy_bit_for_bit(
    make_table: MakeTable,
    frame: pd.DataFrame,
    rows: Rows,
    fetched: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = make_table(frame)
    plain = lp.engines.from_ibis(table, score="p", group="g")
    assert_same_counts(plain, rows.counts(labelled=False, weighted=False))
    monkeypatch.setattr(_ibis, "MOST_ROWS", 1000)
    fetched.clear()
    assert_same_counts(lp.engines.from_ibis(table, **NAMES), rows.counts())
    assert len(fetched) > 4
    assert max(fetched) == 1000


def test_true_and_false_are_labels(make_table: MakeTable, frame: pd.DataFrame, rows: Rows) -> None:
    found = lp.engines.from_ibis(make_table(frame), score="p", group="g", label="b")
    assert_same_counts(found, rows.counts(weighted=False))


def test_on_a_grid_it_is_exact_where_it_was_asked(
    make_table: MakeTable,
    frame: pd.DataFrame,
    rows: Rows,
    fetched: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(IbisScores, "max_refined", 200)
    monkeypatch.setattr(_ibis, "MOST_ROWS", 400)
    monkeypatch.setattr(_ibis, "_MOST_LISTED", 20)
    options: dict[str, Any] = {"criterion": "equalized_odds", "max_scores": 300, "level": 6}
    table = make_table(frame)
    names = {use: NAMES[use] for use in ("score", "group", "label")}
    found = lp.engines.from_ibis(table, **names, **options, epsilons=EPSILONS)
    assert found.cells is not None
    assert max(fetched) <= 400
    for epsilon in EPSILONS:
        assert_exact(found, rows.counts(weighted=False), epsilon=epsilon, criterion="equalized_odds")


@pytest.mark.parametrize("score_range", [(0.0, 0.3), (300.0, 850.0)])
def test_cells_are_those_of_numpy(make_table: MakeTable, score_range: tuple[float, float]) -> None:
    low, high = score_range
    scores = low + np.random.default_rng(0).random(500) * (high - low)
    scores[:300] = low + (high - low) * np.arange(300) / 300  # of which many are at edges
    table = make_table(pd.DataFrame({"p": scores, "g": 0}))
    source = IbisScores(table, ScoreColumns("p", ("g",), score_range=score_range), CountOptions())
    found = source._fetch(source._rows.select(p=source._rows.s, at=source._cell(source._rows.s, 20)))
    assert found["at"].to_pylist() == cell_numbers(found["p"].to_numpy(), 20, score_range).tolist()


def test_minus_zero_intersections_and_names_that_need_quotes(make_table: MakeTable) -> None:
    columns = {'a"b': [-0.0, 0.0, 0.5, 1.0], "select": ["f", "f", "m", "m'"], "h": [1, 1, 2, 3]}
    found = lp.engines.from_ibis(make_table(pd.DataFrame(columns)), score='a"b', group=["select", "h"])
    assert found.groups == (("f", 1), ("m", 2), ("m'", 3))
    (zero,) = found.atoms[("f", 1), None].scores
    assert zero == 0.0
    assert not np.signbit(zero)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([(0.1, "f"), (1.5, "m")], {}, r"column 'p' .*score_range \(0.0, 1.0\), got 1.5 at some row"),
        ([(0.1, "f"), (1e308, "m")], {}, r"column 'p' .*score_range \(0.0, 1.0\), got 1e\+308 at some row"),
        ([(0.1, "f"), (float("inf"), "m")], {}, "column 'p' .* got inf at some row"),
        ([("0.1", "f"), ("high", "m")], {}, "column 'p' must be numbers, got the type string; cast it"),
        ([(0.1, "f"), (0.5, None)], {}, "column 'g' has no value in 1 of 2 rows"),
        ([(0.1, "f"), (0.5, "f")], {}, "column 'g' .* two groups, got 'f' only"),
        ([(0.1, 2), (0.5, 1)], {"label": "g"}, "column 'g' .* got 2 at some row"),
        ([(0.1, -1), (0.5, 1)], {"weight": "g"}, "column 'g' .* got -1 at some row"),
        ([(0.1, 0), (0.5, 1)], {"weight": "g"}, "column 'g' .* group 0, got 0"),
        ([(0.1, "f"), (0.5, "m")], {"group": "sex"}, "there is no column in the table named 'sex'"),
    ],
)
def test_what_does_not_fit_is_named(
    make_table: MakeTable, values: list[Any], options: dict[str, Any], message: str
) -> None:
    table = make_table(pd.DataFrame(values, columns=["p", "g"]))
    with pytest.raises(ValueError, match=message):
        lp.engines.from_ibis(table, **{"score": "p", "group": "g", **options})


def test_no_rows_and_an_identifier(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch, fetched: list[int]
) -> None:
    table = make_table(pd.DataFrame({"p": np.linspace(0.0, 1.0, 50), "g": np.arange(50)}))
    with pytest.raises(ValueError, match="the table has no rows"):
        lp.engines.from_ibis(table.filter(table.p > 1.0), score="p", group="g")
    monkeypatch.setattr(_ibis, "MOST_GROUPS", 10)
    monkeypatch.setattr("localparity._validation._groups.check_group_count.__defaults__", (10,))
    with pytest.raises(ValueError, match=r"column 'g' has more than 10 groups; is it an identifier\?"):
        lp.engines.from_ibis(table, score="p", group="g")
    assert max(fetched) <= 21


def test_missing_numbers_and_what_only_one_database_has(connections: dict[str, Any]) -> None:
    with connections["postgres"].con.cursor() as cursor:
        cursor.execute("CREATE TYPE sex AS ENUM ('f', 'm')")
        cursor.execute("CREATE TABLE odd (p float8, n numeric, g sex, u uuid)")
        cursor.execute("INSERT INTO odd VALUES (0.25, 0.1, 'f', gen_random_uuid()), ('NaN', 0.7, 'm', NULL)")
    connections["postgres"].con.commit()
    odd = connections["postgres"].table("odd")
    with pytest.raises(ValueError, match="column 'p' must be finite, got nan at some row"):
        lp.engines.from_ibis(odd, score="p", group="g")
    assert lp.engines.from_ibis(odd, score="n", group="g").atoms["m", None].scores == [0.7]
    with pytest.raises(ValueError, match=r"column 'u' must be texts, numbers or dates, got the type uuid"):
        lp.engines.from_ibis(odd, score="n", group="u")
    lite = connections["sqlite"].con
    lite.executescript(
        "CREATE TABLE odd (p REAL, g); INSERT INTO odd VALUES (0.5, 'f'), ('high', 'm'), (NULL, 'f')"
    )
    with pytest.raises(ValueError, match=r"column 'p' must be numbers, got .* at some row"):
        lp.engines.from_ibis(connections["sqlite"].table("odd"), score="p", group="g")
    by_duckdb = ibis.memtable({"p": [None, 0.5], "g": ["f", "m"]}, schema={"p": "float64", "g": "string"})
    with pytest.raises(ValueError, match=r"column 'p' must be numbers, got .* at some row"):
        lp.engines.from_ibis(by_duckdb, score="p", group="g")


def test_rows_that_change_while_they_are_counted(connections: dict[str, Any]) -> None:
    duckdb = connections["duckdb"]
    duckdb.raw_sql("CREATE TABLE changing AS SELECT i / 100 AS p, i % 2 AS g FROM range(100) AS t (i)")
    source = IbisScores(duckdb.table("changing"), ScoreColumns("p", ("g",)), CountOptions())
    source.count_cells(4)
    duckdb.raw_sql("DELETE FROM changing WHERE p > 0.9")
    with pytest.raises(ValueError, match="the table must have the same rows whenever it is read"):
        source.count_scores()


def test_a_database_that_refuses_is_quoted(connections: dict[str, Any], postgres: str) -> None:
    with connections["postgres"].con.cursor() as cursor:
        cursor.execute("CREATE TABLE secret AS SELECT 0.5::float8 AS p, 'f' AS g")
        cursor.execute("CREATE ROLE reader LOGIN")
    connections["postgres"].con.commit()
    reader = ibis.connect(postgres.replace("tests@", "reader@"))
    with pytest.raises(ValueError, match=r"^the table cannot be read: permission denied for table secret$"):
        lp.engines.from_ibis(reader.table("secret"), score="p", group="g")
    reader.disconnect()


def test_audits_of_a_table(connections: dict[str, Any], frame: pd.DataFrame, rows: Rows) -> None:
    table = connections["duckdb"].create_table("audited", arrow.Table.from_pandas(frame))
    options: dict[str, Any] = {"n_resamples": 99, "random_state": 0}
    found = lp.Audit.read(table, score="p", group="g", engine="ibis", **options)
    expected = lp.audit(rows.counts(labelled=False, weighted=False), **options)
    assert found == expected
    assert found.provenance is not None
    assert found.provenance.call.startswith("lp.Audit.read(<Table>, score='p', group='g'")
    with pytest.raises(ValueError, match="missing_groups needs engine='duckdb', got 'ibis'"):
        lp.Audit.read(table, score="p", group="g", engine="ibis", missing_groups="drop")


@pytest.mark.parametrize("dialect", FAR)
def test_sql_for_warehouses_that_are_far(dialect: str) -> None:
    import sqlglot

    schema = {"p": "float64", "g": "string", "y": "boolean", "w": "decimal(18, 4)", "f": "float32"}
    table = ibis.duckdb.connect().create_table("scores", schema=ibis.schema(schema))
    for score, score_range in (("p", (0.0, 1.0)), ("f", (0.1, 1.1))):
        columns = ScoreColumns(score, ("g",), "y", "w", score_range)
        source = IbisScores(table, columns, CountOptions())
        rows = source._counted_rows()
        within = rows.filter(source._cell(rows.s, 12).isin([3, 4]))
        for counted in (source._page(rows, source._cell(rows.s, 12)), source._page(within, within.s)):
            sql = ibis.to_sql(counted, dialect=dialect)
            (parsed,) = sqlglot.parse(sql, dialect=dialect)
            assert isinstance(parsed, sqlglot.expressions.Select)
            assert parsed.args["limit"].expression.name == "65536"
            (read,) = parsed.find_all(sqlglot.expressions.Table)
            assert read.name == "scores"
