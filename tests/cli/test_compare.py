"""`localparity compare`, as people type it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import localparity as lp
import typed_commands
from localparity.cli.compare import _show
from localparity.results import ModelCard, ModelComparison, Outcome

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
    assert "400 rows to train on, 200 to choose on, 200 to test on" in found.stdout
    for name in (
        "ERM",
        "DiffMCDP, repaired",
        "penalised boosted trees, repaired",
        "95% interval",
        "gives up",
    ):
        assert name in found.stdout
    assert "Expected under parity on the test part" in found.stdout
    assert "on validation data" in found.stdout
    assert (folder / "new" / "frontier.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in (folder / "new").iterdir()] == ["frontier.png"]


def test_methods_with_a_promise_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    interval = lp.results.Interval(0.01, 0.02, 0.03, 0.9)
    measured = lp.results.Measured(2, 0.8, 0.02, interval, 0.01)
    free, sure = (
        Outcome(name, False, "", measured, True, measured, ((0.02, 0.8),)) for name in ("ERM", "DiffMCDP")
    )
    parts = (0.05, 0.0, "demographic_parity", (4, 2, 2), {})
    for outcome, is_shown in ((free, False), (replace(sure, promise="It holds."), True)):
        _show(ModelComparison((free, outcome), *parts), "people.csv")
        shown = capsys.readouterr().out
        assert ("with probability 0.9: DiffMCDP." in shown) is is_shown


def test_a_model_above_the_bound_on_test_data_is_said_and_fails(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    found = run(folder / "people.csv", *NAMED, *QUICK, "--max-mcdp", 0.001, "--json", "--out", out)
    assert found.returncode == 1, found.stderr
    assert "above the bound of 0.10%" in found.stderr
    assert ModelCard.read(out).held_out is not None
    comparison = json.loads(found.stdout)
    estimates = {outcome["method"]: outcome["test"]["mcdp"] for outcome in comparison["outcomes"]}
    assert (min(estimates.values()) <= 0.001) == bool(comparison["within_on_test"])


@pytest.mark.parametrize("without_group", [False, True])
def test_the_winner_is_kept_and_told_in_json(folder: Path, without_group: bool, tmp_path: Path) -> None:
    out, scores, figure = tmp_path / "model", tmp_path / "scores.csv", tmp_path / "frontier.svg"
    options = ["--out", out, "--intended-use", "Loans.", *(["--without-group"] if without_group else [])]
    options += ["--json", "--figure", figure]
    found = run(folder / "people.csv", *NAMED, *QUICK, "--max-mcdp", 0.15, *options)
    assert f", in {out}" in found.stderr
    assert "<svg" in figure.read_text()[:500]
    card, comparison = ModelCard.read(out), json.loads(found.stdout)
    assert len(comparison["outcomes"]) + len(comparison["left_out"]) == 9
    assert comparison["recommendation"]
    assert card.held_out is not None
    is_above = card.held_out.mcdp > 0.15
    assert found.returncode == int(is_above), found.stderr
    (kept,) = (
        verdict for name, verdict in comparison["verdicts"].items() if f"model: {name}," in found.stderr
    )
    assert f"{'undecided at' if kept == 'undecided' else kept} the bound of 15.00%" in found.stderr
    assert (card.intended_use, card.max_mcdp, card.held_out.rows) == ("Loans.", 0.15, 200)
    assert card.file_sha256 is not None
    assert card.needs_group == (not without_group and comparison["recommended"].endswith("repaired"))
    groups = ["--group", "sex"] if card.needs_group else []
    predicted = typed_commands.run("predict", out, folder / "people.csv", "--out", scores, *groups)
    assert predicted.returncode == 0, predicted.stderr


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
        (["people.csv", *NAMED, "--out", "."], "already exists; pass --force to overwrite"),
        (["people.csv", *NAMED, "--without-group"], "--without-group: needs --out"),
        (["people.csv", *NAMED, "--intended-use", "x"], "--intended-use: needs --out"),
        (["people.csv", "--target", "age", "--group", "sex"], "Only binary classification is supported"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(folder: Path, arguments: list[str], message: str) -> None:
    found = run(folder / arguments[0], *arguments[1:])
    assert found.returncode == 2
    assert found.stderr.startswith("error: ")
    assert len(found.stderr.splitlines()) == 1
    assert message in found.stderr
