"""`localparity audit` of a table in a database: PostgreSQL, DuckDB and SQLite."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

from localparity.engines._ibis import read_database
from typed_commands import only_audit, run

pytest.importorskip("ibis")
psycopg = pytest.importorskip("psycopg")

COLUMNS = ["--score", "p", "--group", "g"]
AS_JSON = [*COLUMNS, "--resamples", 19, "--json"]


@pytest.fixture(scope="module")
def scores() -> list[tuple[float, str]]:
    rng = np.random.default_rng(0)
    groups = rng.choice(["f", "m"], 400)
    return list(zip(rng.beta(2, 3 + (groups == "f")).round(2).tolist(), groups.tolist(), strict=True))


@pytest.fixture(scope="module")
def server(postgres: str, scores: list[tuple[float, str]]) -> Iterator[str]:
    """The address of a database with a table, in a schema, of a user that has a password and few rights."""
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE SCHEMA bank")
        connection.execute("CREATE TABLE bank.scores (p float8, g text, note text)")
        connection.cursor().executemany("INSERT INTO bank.scores VALUES (%s, %s, 'high')", scores)
        connection.execute("CREATE VIEW bank.hidden AS SELECT * FROM bank.scores")
        connection.execute("CREATE VIEW bank.gaps AS SELECT nullif(p, 0.3) AS p, g FROM bank.scores")
        connection.execute("CREATE ROLE auditor LOGIN PASSWORD 'hush'")
        connection.execute("GRANT USAGE ON SCHEMA bank TO auditor")
        connection.execute("GRANT SELECT ON bank.scores, bank.gaps TO auditor")
    yield postgres.replace("tests@", "auditor:hush@")
    with psycopg.connect(postgres) as connection:
        connection.execute("DROP SCHEMA bank CASCADE")
        connection.execute("DROP ROLE auditor")


def test_a_table_is_what_a_file_of_it_is(
    server: str, scores: list[tuple[float, str]], tmp_path: Path
) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("p,g\n" + "".join(f"{score!r},{group}\n" for score, group in scores))
    expected = only_audit(run("audit", file, *AS_JSON).stdout)
    done = run("audit", server, "--table", "bank.scores", *AS_JSON, "--allow-remote")
    assert done.returncode == 0, done.stderr
    assert only_audit(done.stdout) == expected
    assert "hush" not in done.stdout + done.stderr
    shown = server.replace("hush", "***")
    assert done.stderr == f"counting in {shown}\n"
    (audit,) = json.loads(done.stdout)["audits"]
    assert audit["name"] == f"bank.scores ({shown})"
    assert f"localparity audit '{shown}' --table bank.scores" in audit["provenance"]["call"]
    for kind, connect in {"sqlite": sqlite3.connect, "duckdb": duckdb.connect}.items():
        path = tmp_path / f"scores.{kind}"
        connection = connect(path)
        connection.execute("CREATE TABLE scores (p DOUBLE, g TEXT)")
        connection.executemany("INSERT INTO scores VALUES (?, ?)", scores)
        connection.commit()
        connection.close()
        done = run("audit", f"{kind}://{path}", "--table", "scores", *AS_JSON)
        assert done.returncode == 0, done.stderr
        assert only_audit(done.stdout) == expected


def test_pages_bundles_and_bounds_have_no_password(server: str, tmp_path: Path) -> None:
    page, bundle = tmp_path / "page.html", tmp_path / "audit.zip"
    written = ["--report", page, "--out", bundle, "--max-mcdp", 0.01, "--resamples", 19]
    done = run("audit", server, "--table", "bank.scores", *COLUMNS, "--allow-remote", *written)
    assert done.returncode == 1
    assert "fail:" in done.stderr
    for text in (done.stdout, done.stderr, page.read_text()):
        assert "hush" not in text
    with zipfile.ZipFile(bundle) as files:
        assert all(b"hush" not in files.read(name) for name in files.namelist())


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        ({}, ["--table", "bank.hidden", *COLUMNS], "the table cannot be read: permission denied for view hidden"),
        ({}, ["--table", "bank.gaps", *COLUMNS], "column 'p' must be numbers, got no value"),
        ({}, ["--table", "bank.scores", "--score", "note", "--group", "g"], "column 'note' must be numbers, got the type"),
        ({}, ["--table", "bank.scores", "--score", "q", "--group", "g"], "there is no column in the table named 'q'"),
        ({}, ["--table", "bank.nowhere", *COLUMNS], "there is no table named 'bank.nowhere' in postgresql://auditor:***@"),
        ({"/postgres": "/nowhere"}, ["--table", "t", *COLUMNS], 'database "nowhere" does not exist'),
        ({"auditor": "nobody"}, ["--table", "t", *COLUMNS], 'role "nobody" does not exist'),
        ({"127.0.0.1:": "127.0.0.2:"}, ["--table", "t", *COLUMNS], "cannot be read: connection failed: "),
        ({"hush": "hu/sh"}, ["--table", "t", *COLUMNS], "with %2F for / and %40 for @ in a password"),
        ({"postgresql:": "nothing:"}, ["--table", "t", *COLUMNS], "got 'nothing://***@"),
        ({"postgresql:": "snowflake:"}, ["--table", "t", *COLUMNS], "pip install 'ibis-framework[snowflake]'"),
        ({}, COLUMNS, "--table: must name the table of a database's address"),
        ({}, ["--table", "t", *COLUMNS, "--sheet", "s"], "--sheet: cannot be used with --table"),
        ({}, ["--table", "t", *COLUMNS, "--engine", "spark"], "--engine spark: cannot be used with --table"),
        ({}, ["--table", "bank.scores", *COLUMNS, "--score-range", "data"], "--score-range data needs --engine duckdb"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_one_line(
    server: str, change: dict[str, str], words: list[str], message: str
) -> None:
    address = server
    for old, new in change.items():
        address = address.replace(old, new)
    done = run("audit", address, *words, "--allow-remote")
    assert done.returncode == 2
    told = done.stderr.removeprefix(f"counting in {address.replace('hush', '***')}\n")
    assert told.startswith("error: ")
    assert len(told.splitlines()) == 1
    assert message in told
    assert "hush" not in told
    assert "hu/sh" not in told


HOSTILE = {
    "duckdb": [
        "CREATE VIEW hostile AS SELECT 0.5 AS p, content AS g FROM read_text('{secret}')",
        "CREATE VIEW hostile AS SELECT random() AS p, 'a' AS g FROM range(10000000000000)",
        "CREATE TABLE hostile (q DOUBLE, g TEXT, p DOUBLE GENERATED ALWAYS AS (q + 1))",
        "CREATE SCHEMA other; CREATE VIEW other.hostile AS SELECT * FROM read_text('{secret}')",
    ],
    "sqlite": [
        "CREATE VIEW hostile AS WITH RECURSIVE r(p) AS (SELECT 0.5 UNION ALL SELECT p FROM r) SELECT p, 'a' AS g FROM r",
        "CREATE TABLE hostile (q REAL, g TEXT, p REAL GENERATED ALWAYS AS (length(hex(zeroblob(100000000)))))",
        "CREATE VIRTUAL TABLE hostile USING fts5(p, g)",
    ],
}


@pytest.mark.parametrize(("kind", "made"), [(kind, made) for kind in HOSTILE for made in HOSTILE[kind]])
def test_nothing_that_a_file_computes_is_read(kind: str, made: str, tmp_path: Path) -> None:
    secret, path = tmp_path / "secret.txt", tmp_path / "hostile.db"
    secret.write_text("hush")
    connection = {"sqlite": sqlite3.connect, "duckdb": duckdb.connect}[kind](path)
    for statement in made.replace("{secret}", str(secret)).split(";"):
        connection.execute(statement)
    connection.commit()
    connection.close()
    for name in ("hostile", "HOSTILE", "main.hostile", "other.hostile"):
        done = run("audit", f"{kind}://{path}", "--table", name, *COLUMNS)
        assert done.returncode == 2
        assert "hush" not in done.stdout + done.stderr
        assert "only tables of stored values are read" in done.stderr or "there is no table" in done.stderr
        assert "hostile" in done.stderr.lower()


def test_a_file_s_tables_reach_no_other_file(tmp_path: Path) -> None:
    """Whatever else a file makes DuckDB do, it has no access to files."""
    path = tmp_path / "plain.db"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t (p DOUBLE, g TEXT)")
    table = read_database(f"duckdb://{path}", "t")
    for query in (
        f"SELECT * FROM read_text('{__file__}')",
        f"COPY t TO '{tmp_path / 'x.csv'}'",
        "INSTALL httpfs",
    ):
        with pytest.raises(duckdb.Error):
            table.get_backend().raw_sql(query)
    table.get_backend().disconnect()


def test_a_server_is_reached_only_where_that_is_allowed(server: str, tmp_path: Path) -> None:
    done = run("audit", server, "--table", "bank.scores", *COLUMNS)
    assert done.returncode == 2
    shown = server.replace("hush", "***")
    assert done.stderr == f"error: {shown} is a database server; pass --allow-remote to connect to it\n"
    for kind in ("sqlite", "duckdb"):
        path = tmp_path / "nowhere.db"
        done = run("audit", f"{kind}://{path}", "--table", "t", *COLUMNS)
        assert done.returncode == 2
        assert f"there is no database '{path}'" in done.stderr
        assert not path.exists()
        path.write_bytes(b"no database" * 1000)
        done = run("audit", f"{kind}://{path}", "--table", "t", *COLUMNS)
        assert done.returncode == 2
        assert "nowhere.db cannot be read: " in done.stderr
        path.unlink()
    done = run("audit", "scores.csv", "--table", "t", *COLUMNS)
    assert done.returncode == 2
    assert "an address must be such as postgresql://" in done.stderr
