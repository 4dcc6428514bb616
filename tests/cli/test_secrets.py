"""A secret in an address reaches no output: what every command prints and writes is searched for it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
from localparity._text import shown_address, without_secrets
from typed_commands import run

SECRET = "hush7hush"
ADDRESSES = [
    f"postgresql://me:{SECRET}@127.0.0.1:1/db",
    f"PostgreSQL://me:{SECRET}@127.0.0.1:1/db",
    f"postgres://me:a%20{SECRET}@127.0.0.1:1/db#credit",
    f"postgresql://127.0.0.1:1/db?user=me&password={SECRET}",
    f"POSTGRESQL://me@127.0.0.1:1/db?sslPassword={SECRET}",
    f"postgresql://me:a@b/{SECRET}@127.0.0.1:1/db",
    f"postgresql://me:a {SECRET}@127.0.0.1:1/db",
    f"mysql://{SECRET}:x@127.0.0.1:1/db",
    f"https://{SECRET}@127.0.0.1:1/x.csv",
    f"https://{SECRET}:x-oauth-basic@127.0.0.1:1/x.parquet",
    f"HTTPS://me:{SECRET}@127.0.0.1:1/x.csv",
    f"https://127.0.0.1:1/x.csv?X-Amz-Credential={SECRET}&X-Amz-Signature=a",
    f"https://127.0.0.1:1/x.csv?se=1&SIG={SECRET}",
    f"https://127.0.0.1:1/x.csv?auth={SECRET}",
    f"https://127.0.0.1:1/x.csv?code={SECRET}",
    f"https://127.0.0.1:1/x.csv?{SECRET}",
    f"https://127.0.0.1:1/x.csv#access_token={SECRET}",
    f"s3://{SECRET}@bucket/x.csv?s3_secret_access_key={SECRET}",
    f"jdbc:postgresql://127.0.0.1:1/db?password={SECRET}",
]
ROWS = ["--score", "p", "--group", "g"]
PEOPLE = ["--target", "y", "--group", "g"]
COMMANDS: dict[str, Callable[[str, Path], list[object]]] = {
    "audit": lambda address, _: ["audit", address, *ROWS],
    "audit remote": lambda address, _: ["audit", address, *ROWS, "--allow-remote"],
    "audit table": lambda address, _: ["audit", address, *ROWS, "--table", "t", "--allow-remote"],
    "audit table here": lambda address, _: ["audit", address, *ROWS, "--table", "t"],
    "audit model": lambda address, folder: ["audit", folder / "x.csv", *ROWS[2:], "--model", address],
    "audit report": lambda address, folder: ["audit", folder / "x.csv", *ROWS, "--report", address],
    "audit out": lambda address, folder: ["audit", folder / "x.csv", *ROWS, "--out", address],
    "audit epsilon": lambda address, folder: ["audit", folder / "x.csv", *ROWS, "--epsilon", address],
    "audit group": lambda address, folder: ["audit", folder / "x.csv", "--score", "p", "--group", address],
    "audit query": lambda address, _: ["audit", f"SELECT * FROM '{address}'", *ROWS],
    "explain": lambda address, _: ["explain", address, *ROWS, "--feature", "y", "--allow-remote"],
    "train": lambda address, folder: ["train", address, *PEOPLE, "--out", folder / "m", "--allow-remote"],
    "train out": lambda address, folder: ["train", folder / "x.csv", *PEOPLE, "--out", address],
    "repair": lambda address, folder: [
        "repair", address, *PEOPLE, "--out", folder / "m", "--max-mcdp", 0.3, "--allow-remote",
    ],
    "compare": lambda address, _: ["compare", address, *PEOPLE, "--allow-remote"],
    "predict": lambda address, folder: ["predict", folder, address, "--out", folder / "o.csv", "--allow-remote"],
    "predict model": lambda address, folder: ["predict", address, folder / "x.csv", "--out", folder / "o.csv"],
    "append": lambda address, folder: ["monitor", "append", folder / "k", address, *ROWS, "--allow-remote"],
    "append to": lambda address, folder: ["monitor", "append", address, folder / "x.csv", *ROWS],
    "show": lambda address, _: ["monitor", "show", address, "--json"],
    "report": lambda address, folder: ["monitor", "report", address, "--out", folder / "p.html"],
    "serve": lambda address, folder: ["monitor", "serve", address, "--textfile", folder / "x.prom"],
    "prune": lambda address, _: ["monitor", "prune", address, "--keep", 1],
    "webhook": lambda address, folder: [
        "monitor", "append", folder / "k", folder / "x.csv", *ROWS, "--max-mcdp", 0.01, "--webhook", address,
    ],
    "fetch": lambda address, _: ["fetch", "bank", "--data-home", address],
    "demo": lambda address, _: ["demo", "--rows", 200, "--report", address],
    "plan": lambda address, _: ["plan", "--group-sizes", address],
    "reproduce": lambda address, _: ["reproduce", "tables", "--store", address, "--out", address],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{i % 50 / 50 * (1 - 0.5 * (i % 2))},{'fm'[i % 2]},{i % 3 % 2}\n" for i in range(200)]
    (tmp_path / "x.csv").write_text("p,g,y\n" + "".join(rows))
    return tmp_path


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder, those of bundles one by one."""
    for path in folder.rglob("*"):
        yield path.name, path.name.encode()
        if path.is_file():
            yield path.name, path.read_bytes()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as bundle:
                yield from ((name, bundle.read(name)) for name in bundle.namelist())


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_shows_a_secret(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ibis")
    pytest.importorskip("psycopg")
    monkeypatch.chdir(folder)
    for address in ADDRESSES:
        done = run(*COMMANDS[command](address, folder), PYTHONWARNINGS="default", HOME=str(folder))
        assert SECRET not in done.stdout + done.stderr, address
        assert done.returncode in (0, 1, 2), done.stderr
    assert not [name for name, content in contents(folder) if SECRET.encode() in content]


def test_an_audit_of_a_server_s_table_keeps_no_secret(postgres: str, tmp_path: Path) -> None:
    """Where all goes well, too: the page, the bundle, the JSON and the call."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres) as connection:
        connection.execute(
            "CREATE TABLE secrets AS SELECT i % 50 / 50.0 AS p, i % 2 AS g FROM generate_series(1, 200) i"
        )
    address = postgres.replace("tests@", f"tests:{SECRET}@") + f"?application_name={SECRET}"
    written = ["--report", tmp_path / "p.html", "--out", tmp_path / "a.zip", "--resamples", 0]
    for options in (["--json"], ["--format", "markdown"], []):
        done = run(
            "audit", address, "--table", "secrets", *ROWS, "--allow-remote", *written, "--force", *options
        )
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stdout + done.stderr
    where = f"{address}#secrets".replace("postgresql", "PostgreSQL")
    rows = tmp_path / "x.csv"
    rows.write_text("p,g\n" + "".join(f"0.{i:02d},{i % 2}\n" for i in range(100)))
    for words in (
        ["append", where, rows, *ROWS],
        ["show", where],
        ["report", where, "--out", tmp_path / "m.html"],
    ):
        done = run("monitor", *words, "--max-mcdp", 0.9)
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stdout + done.stderr
    assert not [name for name, content in contents(tmp_path) if SECRET.encode() in content]
    with psycopg.connect(postgres) as connection:
        connection.execute("DROP TABLE secrets, localparity_rows, localparity_batches")


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_error_in_python_shows_a_secret(address: str) -> None:
    for allow in (False, True):
        with pytest.raises((ValueError, OSError)) as error:
            lp.Audit.read(lp.open_table(address, allow_remote=allow), score="p", group="g")
        assert SECRET not in str(error.value)


@given(
    st.sampled_from(["https", "s3", "PostgreSQL", "gs", "az", "mysql"]),
    st.text(st.characters(codec="utf-8", exclude_characters="@"), max_size=12),
    st.text(st.characters(codec="utf-8", exclude_characters="@#&"), max_size=12),
)
def test_who_asks_and_every_value_is_hidden(scheme: str, user: str, value: str) -> None:
    """A password and a value of any characters, but for those that would end them."""
    address = f"{scheme}://me:{user}{SECRET}@host/x?k={value}{SECRET}&{SECRET}#credit"
    shown = shown_address(address)
    assert SECRET not in shown
    assert shown.startswith(f"{scheme}://")
    assert shown.endswith("#credit")
    assert shown_address(shown) == shown
    assert without_secrets(f"({shown}): {shown}, '{shown}'") == f"({shown}): {shown}, '{shown}'"


@pytest.mark.parametrize("text", ["a@b", "C:/x@y", "file:///a@b.csv", "p > 0.5: yes", "data/part-?.csv"])
def test_other_texts_are_as_they_are(text: str) -> None:
    assert shown_address(text) == text
    assert without_secrets(f"{text} cannot be read") == f"{text} cannot be read"
