"""What is typed or read wrongly ends with one line and exit code 2, never with a fault of ours."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from typed_commands import run

CSV = "p,sex\n" + 5 * "0.1,f\n0.4,f\n0.6,m\n0.9,m\n"
COLUMNS = ("--score", "p", "--group", "sex", "--resamples", "0")


def refused(message: str, *words: object, **environment: str) -> None:
    done = run(*words, **environment)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text(CSV)
    return path


def test_a_header_with_a_very_long_name(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("p,sex," + "n" * 200_000 + "\n0.1,f,1\n0.2,m,1\n")
    refused("line 1: field larger than", "audit", path, *COLUMNS)


def test_a_value_of_any_length(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(CSV.replace("\n", ",x\n") + "0.3,m," + "x" * 200_000 + "\n")
    assert run("audit", path, *COLUMNS).returncode == 0


def test_groups_that_are_bytes(tmp_path: Path, scores: Path) -> None:
    path = tmp_path / "bytes.parquet"
    duckdb.sql(f"COPY (SELECT p, sex::BLOB AS sex FROM read_csv('{scores}')) TO '{path}'")
    refused("column 'sex' must be texts, numbers or dates", "audit", path, *COLUMNS)


@pytest.mark.parametrize("number", [10**9, 2**31, 2**63 - 1, 2**63, 10**30])
def test_a_number_that_no_loop_reaches(scores: Path, tmp_path: Path, number: int) -> None:
    asked = [*COLUMNS[:-1], number]
    refused(f"--resamples must be <= 1000000, got {number}", "audit", scores, *asked)
    refused(
        f"--resamples must be <= 1000000, got {number}", "plan", "--group-sizes=9,9", "--resamples", number
    )
    sweep = "reproduce", "adult", "--store", tmp_path / "store", "--device", "cpu"
    refused(f"--seeds must be <= 1000, got {number}", *sweep, "--seeds", number)
    refused(f"--jobs must be <= 1000, got {number}", *sweep, "--jobs", number)
    refused(f"--rows must be <= 10000000, got {number}", "demo", "--rows", number)
    people = tmp_path / "people.csv"
    people.write_text("age,sex,y\n" + "".join(f"{age},{'fm'[age % 2]},{age // 3 % 2}\n" for age in range(40)))
    train = "train", people, "--target", "y", "--group", "sex", "--out", tmp_path / "model"
    refused(f"--steps must be <= 100000000, got {number}", *train, "--steps", number)
    compare = "compare", people, "--target", "y", "--group", "sex"
    refused(f"--network-steps must be <= 100000000, got {number}", *compare, "--network-steps", number)


def test_names_that_are_not_utf_8(scores: Path) -> None:
    refused("'sco\\udcffres.csv' must be UTF-8", "audit", "sco\udcffres.csv", *COLUMNS)
    refused("'p\\udcff' must be UTF-8", "audit", scores, "--score", "p\udcff", "--group", "sex")
    page = "page\udcff.html"
    refused("'page\\udcff.html' must be UTF-8", "audit", scores, *COLUMNS, "--report", page)


@pytest.mark.parametrize("url", ["s3://bucket/page.html", "file:///tmp/page.html", "https://host/page.html"])
def test_a_file_to_write_is_on_this_machine(scores: Path, url: str) -> None:
    refused("must be a path on this machine", "audit", scores, *COLUMNS, "--report", url)


def test_the_home_folder_that_a_shell_left_alone(tmp_path: Path, scores: Path) -> None:
    done = run("audit", scores, *COLUMNS, "--report=~/page.html", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").exists()
    refused(
        "'~nobody-of-this-name/page.html'",
        "audit",
        scores,
        *COLUMNS,
        "--report=~nobody-of-this-name/page.html",
    )
