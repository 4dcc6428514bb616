"""`localparity compare`, as people type it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import localparity as lp
import typed_commands
from localparity.report._terminal import comparison_lines
from localparity.results import ModelCard, ModelComparison, Outcome

CENSUS = lp.datasets.make_census(800, random_state=0)
FRAME = CENSUS.data.assign(sex=CENSUS.sensitive_features, income=CENSUS.target)
NAMED = ["--target", "income", "--group", "sex"]
QUICK = ["--network-steps", 3, "--resamples", 20]


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
    assert found.returncode == ("\nfail: " in found.stderr), found.stderr
    assert "Trained on 400 people, chosen on 200." in found.stdout
    for name in ("ERM", "DiffMCDP, repaired", "penalised boosted trees, repaired", "AP    AUC", "gives up"):
        assert name in found.stdout
    assert (folder / "new" / "frontier.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in (folder / "new").iterdir()] == ["frontier.png"]


def test_the_screen_has_what_to_use_first_and_a_row_a_model() -> None:
    interval = lp.results.Interval(0.012, 0.02, 0.031, 0.9)
    measured = lp.results.Measured(2, 0.8, 0.02, interval, 0.01, 0.9)
    sure = Outcome(
        "boosted trees", False, "strength 0.5", measured, True, measured, ((0.02, 0.8),), None, "So."
    )
    far = replace(measured, mcdp=0.2, interval=lp.results.Interval(0.1, 0.2, 0.3, 0.9))
    free = Outcome("ERM", False, "", far, False, far, ((0.2, 0.8),))
    found = ModelComparison((free, sure), 0.05, 0.0, "demographic_parity", (4, 2, 2), {"DiffMCDP": "no way"})
    lines = [str(line).rstrip() for line in comparison_lines(found, "people.csv  income by sex")]
    assert max(map(len, lines)) <= 80
    assert lines == [
        "people.csv  income by sex  8 people",
        "",
        "  USE         Use boosted trees (strength 0.5), with AP 80.00% and MCDP 2.00%",
        "              (1.20% to 3.10%) on test data. It is within the bound of 5.00% for",
        "              new people with probability 0.9.",
        "",
        "  MCDP(0) of 2 people held out  points        90%     AP    AUC  bound",
        "  boosted trees                    2.0     1 to 4  0.800  0.900  within",
        "  ERM                             20.0   10 to 30  0.800  0.900  above",
        "  expected under parity            1.0",
        "",
        "  left out    DiffMCDP: no way",
        "              Trained on 4 people, chosen on 2. Rows are assumed to be",
        "              independent.",
    ]


def test_a_model_above_the_bound_on_test_data_is_said_and_fails(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    found = run(folder / "people.csv", *NAMED, *QUICK, "--max-mcdp", 0.001, "--json", "--out", out)
    assert found.returncode == 1, found.stderr
    assert "above the bound of 0.10%" in found.stderr
    assert ModelCard.read(out).held_out is not None
    comparison = json.loads(found.stdout)
    estimates = {outcome["method"]: outcome["test"]["mcdp"] for outcome in comparison["outcomes"]}
    assert (min(estimates.values()) <= 0.001) == bool(comparison["within_on_test"])


def trained(folder: Path, name: str = "own") -> Path:
    """A model that was fitted on other people, or on those of the file."""
    model, file = folder / name, folder / ("people.csv" if name == "own" else "others.csv")
    if not model.exists():
        others = lp.datasets.make_census(800, random_state=1)
        others.data.assign(sex=others.sensitive_features, income=others.target).to_csv(
            folder / "others.csv", index=False
        )
        done = typed_commands.run("repair", file, *NAMED, "--max-mcdp", 0.4, "--out", model)
        assert done.returncode in (0, 1), done.stderr
    return model


@pytest.mark.parametrize("kind", ["score", "model"])
def test_alternatives_to_a_model_that_exists(folder: Path, kind: str, tmp_path: Path) -> None:
    file, out, report = tmp_path / "scored.csv", tmp_path / "best", tmp_path / "page.html"
    FRAME.assign(p=CENSUS.score).to_csv(file, index=False)
    baseline = ["--score", "p"] if kind == "score" else ["--drop", "p", "--model", trained(folder, "other")]
    options = ["--resamples", 200, "--margin", 0.02, "--report", report, "--out", out, "--json"]
    found = run(file, *NAMED, *baseline, *options)
    comparison = json.loads(found.stdout)
    dominating = comparison["dominating"]
    assert found.returncode == bool(dominating), found.stderr
    assert out.exists() == bool(dominating)
    assert ("no model is written to" in found.stderr) == (not dominating)
    verdict = f"{'fail' if dominating else 'pass'}: {comparison['recommendation'].partition('. ')[0]}"
    assert verdict in found.stderr
    assert comparison["baseline"]["margin"] == 0.02
    assert comparison["baseline"]["alternatives"] == 5
    page = report.read_text()
    assert f"baseline: {baseline[-1]}" in page
    assert comparison["recommendation"].partition(". ")[0] in page


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
        verdict for name, verdict in comparison["verdicts"].items() if f"model: {name}, in " in found.stderr
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
        (["nowhere.csv", *NAMED], "does not exist"),
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
        (["people.csv", *NAMED, "--score", "p"], "there is no column"),
        (["people.csv", *NAMED, "--score", "income"], "is a column with another role"),
        (["people.csv", *NAMED, "--score", "age"], "score must be inside"),
        (["people.csv", *NAMED, "--score", "p", "--model", "m"], "give --score or --model, one of them"),
        (["people.csv", *NAMED, "--report", "."], "is a folder, not a file"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(folder: Path, arguments: list[str], message: str) -> None:
    found = run(folder / arguments[0], *arguments[1:])
    assert found.returncode == 2
    assert found.stderr.startswith("error: ")
    assert len(found.stderr.splitlines()) == 1
    assert message in found.stderr


def test_the_file_that_a_model_was_fitted_on_is_refused(folder: Path) -> None:
    found = run(folder / "people.csv", *NAMED, "--model", trained(folder))
    assert (found.returncode, "was fitted on; give people it was not" in found.stderr) == (2, True), (
        found.stderr
    )
