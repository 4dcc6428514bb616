"""A command is imported when it is called, with what it needs: counted, as how long that takes depends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer

from localparity.cli._app import app
from typed_commands import BARE, run, run_apart

MODELS = {"numba", "scipy", "sklearn", "joblib", "torch", "xgboost", "lightgbm"}
FRAMES = {"pandas", "polars", "pyarrow", "pyspark", "ibis"}
FIGURES = {"matplotlib", "jinja2"}


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path / "scores.csv"
    rows = zip(rng.random(1000), rng.integers(0, 2, 1000), strict=True)
    path.write_text("p,g\n" + "".join(f"{score},{'ab'[group]}\n" for score, group in rows))
    return path


def imported_by(*words: object) -> set[str]:
    """The packages that a process of its own imports."""
    found = run_apart(*words, PYTHONPROFILEIMPORTTIME="1")
    assert found.returncode == 0, found.stderr
    lines = [line for line in found.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("localparity pl", ["plan"]), ("localparity audit --max", ["--max-mcdp"])],
)
def test_the_shell_completes_commands_and_options(typed: str, completed: list[str]) -> None:
    program, place = Path(sys.executable).with_name("localparity"), str(typed.count(" "))
    asked = {"_LOCALPARITY_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": place}
    found = subprocess.run([program], env={**BARE, **asked}, capture_output=True, text=True, check=False)
    assert found.stdout.split() == completed, found.stderr


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--version"]])
def test_what_is_asked_of_all_commands_imports_none(words: list[str]) -> None:
    found = imported_by(*words)
    assert "typer" in found
    assert found & {"numpy", "narwhals", "duckdb", *MODELS, *FRAMES, *FIGURES} == set()


def test_an_audit_of_a_small_file_compiles_nothing(scores: Path) -> None:
    found = imported_by("audit", scores, "--score", "p", "--group", "g", "--resamples", 0)
    assert "duckdb" in found
    assert found & {*MODELS, *FRAMES, *FIGURES} == set()


def test_help_on_all_commands_says_what_each_says_of_itself() -> None:
    listed = " ".join(run("--help", COLUMNS="300").stdout.split())
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert len(commands) == 12
    for name, command in commands.items():
        summary = " ".join(command.help.split("\n\n")[0].split())
        assert f"│ {name} {summary}" in listed, name


def test_a_command_that_is_not_there_is_one_that_is_close() -> None:
    found = run("adit")
    assert (found.returncode, found.stdout) == (2, "")
    assert "'adit'" in found.stderr
    assert "'audit'" in found.stderr
