"""`localparity compare`, as people type it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import localparity as lp
import typed_commands

CENSUS = lp.datasets.make_census(800, random_state=0)
FRAME = CENSUS.data.assign(sex=CENSUS.sensitive_features, income=CENSUS.target)
NAMED = ["--target", "income", "--group", "sex"]
QUICK = ["--steps", 3, "--resamples", 20]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return typed_commands.run("compare", *words, COLUMNS="140", PYTHONWARNINGS="default")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare")
    FRAME.to_csv(path / "people.csv", index=False)
    (path / "empty.csv").write_text("")
    FRAME.head(0).to_csv(path / "header.csv", index=False)
    return path


def test_a_table_a_figure_and_a_recommendation(folder: Path) -> None:
    found = run(folder / "people.csv", *NAMED, *QUICK, "--figure", folder / "new" / "frontier.png")
    assert found.returncode == 0, found.stderr
    assert "400 rows to train on, 200 to choose on, 200 to report on" in found.stdout
    for name in (
        "ERM",
        "DiffMCDP, repaired",
        "penalised boosted trees, repaired",
        "95% interval",
        "frontier",
    ):
        assert name in found.stdout
    assert "Expected under parity on the test part" in found.stdout
    assert "on validation data" in found.stdout
    assert (folder / "new" / "frontier.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in (folder / "new").iterdir()] == ["frontier.png"]


def test_json(folder: Path) -> None:
    found = run(folder / "people.csv", *NAMED, *QUICK, "--json", "--figure", folder / "frontier.svg")
    assert found.returncode == 0, found.stderr
    comparison = json.loads(found.stdout)
    assert len(comparison["outcomes"]) == 8
    assert comparison["recommendation"]
    assert "<svg" in (folder / "frontier.svg").read_text()[:500]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["people.csv", "--target", "incom", "--group", "sex"], "there is no column in"),
        (["people.csv", "--target", "income", "--group", "gender"], "there is no column in"),
        (["empty.csv", *NAMED], "is empty"),
        (["header.csv", *NAMED], "has no rows"),
        (["nowhere.csv", *NAMED], "there is no file"),
        (["people.csv", *NAMED, "--figure", "frontier.gif"], "must be a .png, .svg or .pdf file"),
        (
            ["people.csv", *NAMED, "--max-mcdp", "2"],
            "must be between 0 and 1, got 2",
        ),
        (["people.csv", *NAMED, "--booster", "forest"], "booster must be one of"),
        (["people.csv", "--target", "age", "--group", "sex"], "Only binary classification is supported"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(folder: Path, arguments: list[str], message: str) -> None:
    found = run(folder / arguments[0], *arguments[1:])
    assert found.returncode == 2
    assert found.stderr.startswith("error: ")
    assert len(found.stderr.splitlines()) == 1
    assert message in found.stderr
