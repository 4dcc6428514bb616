"""The library's messages in a command's words."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import duckdb
import pytest

from localparity.cli._commands import in_options
from typed_commands import run, run_here

OPTIONS = {
    "allow_duplicate": "--allow-duplicate",
    "compare": "--compare",
    "confidence": "--confidence",
    "engine": "--engine",
    "epsilon": "--epsilon",
    "epsilons": "--epsilon",
    "force": "--force",
    "group": "--group",
    "label": "--label",
    "min_group_size": "--min-group-size",
    "n_resamples": "--resamples",
    "score_range": "--score-range",
    "y_true": "--label",
}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("n_resamples must be >= 19 with confidence=0.95, got 5", "--resamples must be >= 19 with --confidence 0.95, got 5"),
        (
            "there are many; use compare='to_overall', or a larger min_group_size",
            "there are many; use --compare to_overall, or a larger --min-group-size",
        ),
        ("column 'p' has 7 at data row 2, outside score_range (0.0, 1.0)", "column 'p' has 7 at data row 2, outside --score-range (0.0, 1.0)"),
        ("x already exists; pass force=True to overwrite", "x already exists; pass --force to overwrite"),
        ("pass allow_duplicate=True to count it again", "pass --allow-duplicate to count it again"),
        ("criterion='equal_opportunity' needs y_true, got None", "criterion='equal_opportunity' needs --label, got None"),
        ("cluster needs engine='duckdb', got 'spark'", "cluster needs --engine duckdb, got 'spark'"),
        ("epsilons must have at least one number", "--epsilon must have at least one number"),
        ("is score_range right?", "is --score-range right?"),
    ],
)  # fmt: skip
def test_arguments_are_called_by_their_options(message: str, expected: str) -> None:
    assert in_options(message, OPTIONS) == expected


@pytest.mark.parametrize(
    "message",
    [
        "group 'label' has no rows with label 1",
        "there is no column in score_range.csv named 'min_group_size'; did you mean 'n_resamples'?",
        "folder/score_range cannot be read",
        "the epsilon of a window, its label and its group",
        "n_resamples_too must be known",
    ],
)
def test_what_people_named_stays(message: str) -> None:
    assert in_options(message, OPTIONS) == message
    assert in_options(message, {}) == message


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
