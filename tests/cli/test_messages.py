"""The library's messages in a command's words."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import duckdb
import pytest

from typed_commands import run, run_here


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--resamples", "-1"], "--resamples must be >= 0, got -1"),
        (["--method", "bootstrap", "--resamples", "5"], "--resamples must be >= 19 with --confidence 0.95"),
        (["--confidence", "2"], "--confidence must be > 0 and < 1, got 2"),
        (["--threshold", "7"], "--threshold must be inside --score-range (0.0, 1.0), got 7"),
        (["--min-group-size", "0"], "--min-group-size must be >= 1, got 0"),
        (["--min-group-size", "9"], "--min-group-size 9 leaves 0 of 2 groups"),
        (["--decide-by", "upper"], "--decide-by upper needs --max-mcdp"),
        (["--jobs", "0"], "--jobs must be"),
        (["--criterion", "equal_opportunity"], "--criterion equal_opportunity needs --label"),
        (["--cluster", "sex", "--engine", "spark"], "--cluster needs --engine duckdb"),
        (
            ["--weight", "w", "--method", "finite_sample"],
            "--method finite_sample does not hold with weights; use --method boot",
        ),
        (["--epsilon", "0.4", "--max-mcdp", "0.5"], "the right --score-range"),
    ],
)
def test_every_argument_of_an_audit_is_called_by_its_option(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("p,sex,w\n0.1,f,1\n0.4,f,2\n0.6,m,1\n0.9,m,2\n")
    size = [] if "--min-group-size" in words else ["--min-group-size", "1"]
    options = ["--score", "p", "--group", "sex", *size]
    assert run_here(monkeypatch, "audit", path, *options, *words) == 2
    assert message in capsys.readouterr().err


def test_warnings_name_options_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("p,sex\n" + 5 * "0.1,f\n0.11,f\n0.12,m\n0.13,m\n")
    options = ["--score", "p", "--group", "sex", "--resamples", "0"]
    assert run_here(monkeypatch, "audit", path, *options) == 0
    said = capsys.readouterr().err
    assert said.startswith("warning: the scores lie between 0.1 and 0.13")
    assert "is --score-range right?" in said


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), "error: there is not enough memory\n"),
        (duckdb.OutOfMemoryException("failed to allocate 32.0 MiB"), "error: there is not enough memory\n"),
        (RuntimeError("can't start new thread"), "error: no thread can be started"),
    ],
)
def test_a_machine_at_its_limits_is_no_fault_of_ours(
    error: Exception, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("localparity.paper._tables.write_tables", Mock(side_effect=error))
    told = run("reproduce", "tables", "--out", tmp_path)
    assert told.returncode == 2
    assert told.stderr.startswith(expected)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", "--group-sizes", "30,30", "--mcdp", "2"], "--mcdp must be between 0 and 1, got 2"),
        (["plan", "--group-sizes", "30,30", "--monitor", "x"], "'--monitor': "),
        (["audit", "{file}", "--cutoff", "7"], "--cutoff must be inside --score-range (0.0, 1.0), got 7"),
    ],
)
def test_wrong_usage_is_said_in_plain_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words, message
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("p,sex\n0.1,f\n0.4,f\n0.6,m\n0.9,m\n")
    more = ["--score", "p", "--group", "sex", "--min-group-size", "1"] if words[0] == "audit" else []
    assert run_here(monkeypatch, *(word.format(file=path) for word in words), *more) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Input should" not in said
    assert "takes about" not in said
