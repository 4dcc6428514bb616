"""README's Python and commands run and give what README shows, and its numbers are those of results/."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import pytest
import typer

import localparity as lp
from localparity.cli._app import app
from pages import run_page

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
LOOP = re.findall(r"^\| \*\*\w+\*\* \|.*?`localparity ([^`]*)`", TEXT, flags=re.MULTILINE)


def write_people(path: Path, seed: int, rows: int = 20_000) -> None:
    census = lp.datasets.make_census(rows, random_state=seed)
    people = census.data.assign(p=census.score, sex=census.sensitive_features, income=census.target)
    people.to_csv(path, index=False)


def test_the_python_examples_give_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", TEXT, flags=re.DOTALL)
    assert len(examples) == TEXT.count("```python") == 1
    names: dict[str, object] = {}
    for code, shown in examples:
        assert len([line for line in code.splitlines() if line]) <= 10
        exec(compile(code, "README.md", "exec"), names)
        assert capsys.readouterr().out == shown


def test_the_audit_gives_what_is_shown(tmp_path: Path) -> None:
    write_people(tmp_path / "scores.csv", 0)
    assert run_page(README, tmp_path) == 2


@pytest.mark.parametrize("command", LOOP)
def test_the_commands_are_there(command: str) -> None:
    name, *arguments = shlex.split(command)
    found = typer.main.get_command(app).commands[name]
    found.make_context(name, arguments)


@pytest.mark.slow
def test_the_loop_runs_as_typed(tmp_path: Path) -> None:
    """Each step takes what the one before it has written."""
    write_people(tmp_path / "scores.csv", 0, 2000)
    for seed, name in enumerate(("people", "new", "today"), 1):
        census = lp.datasets.make_census(2000, random_state=seed)
        people = census.data.assign(sex=census.sensitive_features, income=census.target)
        people.to_csv(tmp_path / f"{name}.csv", index=False)
    assert len(LOOP) == 6
    for command in LOOP:
        arguments = [sys.executable, "-m", "localparity", *shlex.split(command)]
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr  # 1 where a bound is not met


def test_the_two_commands_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test", "docs"):
        assert f"make {target}" in TEXT
        assert f"\n{target}:" in makefile


def test_the_files_that_it_points_at_are_there() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (ROOT / target).exists(), target


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return import_module("make_picture")


def test_what_it_says_of_results_is_what_they_say() -> None:
    with (ROOT / "results" / "equal.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    best = {}
    for data in ("Adult", "Bank", "UTKFace"):
        methods = {row["method"]: row for row in rows if row["data"] == data}
        ours = methods.pop("DiffMCDP")
        best[data] = ours, min(methods.values(), key=lambda row: float(row["MCDP(0)"]))
    ours, other = best["Adult"]
    gaps = f"{float(ours['MCDP(0)']):.1f} against {float(other['MCDP(0)']):.1f} points"
    assert f"{gaps}, p = {float(other['p-value']):.2f}" in " ".join(TEXT.split())
    assert {best[data][1]["method"] for data in ("Bank", "UTKFace")} == {"DiffABCC"}
    p_values = [f"{float(best[data][1]['p-value']):.2f}" for data in ("Bank", "UTKFace")]
    assert f"DiffABCC (p = {' and '.join(p_values)})" in TEXT


def test_it_is_short() -> None:
    assert len(TEXT.split()) <= 850


def test_the_picture_can_be_made(parts: ModuleType, data_folder: Path, tmp_path: Path) -> None:
    parts.draw(tmp_path / "gap_curve.png")
    pixels = [plt.imread(path).shape for path in (tmp_path / "gap_curve.png", parts.PICTURE)]
    assert pixels[0] == pixels[1]
