"""`localparity repair`, as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from localparity.results import ModelCard
from typed_commands import run

pytest.importorskip("lightgbm")

CENSUS = lp.datasets.make_census(2000, random_state=0)
FRAME = CENSUS.data.assign(
    sex=CENSUS.sensitive_features, income=np.where(CENSUS.target == 1, ">50K", "<=50K")
)
NAMED = ["--target", "income", "--group", "sex"]
AWARE = [*NAMED, "--group-aware"]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("repair") / "people.csv"
    FRAME.to_csv(path, index=False)
    return path


def test_a_repair_is_promised_audited_and_saved(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    words = [*AWARE, "--max-mcdp", 0.4, "--intended-use", "Loans of a savings bank.", "--out", out]
    found = run("repair", people, *words)
    assert (found.returncode, found.stderr) == (0, "")
    for text in (
        "1,500 rows to fit on, 500 held out",
        "Promised: MCDP(0) is at most",
        "within the bound of 40",
    ):
        assert text in found.stdout
    card = ModelCard.read(out)
    assert card.intended_use == "Loans of a savings bank."
    assert card.held_out is not None
    assert card.fitted_on is not None
    assert (card.held_out.rows, card.fitted_on.rows) == (500, 1500)
    assert card.promise == lp.load(out).promise_
    scores = tmp_path / "scores.csv"
    assert run("predict", out, people, "--out", scores, "--group", "sex").returncode == 0
    assert len(pd.read_csv(scores)) == 2000


def test_the_people_held_out_decide_the_exit_code(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    found = run("repair", people, *AWARE, "--max-mcdp", 0.02, "--json", "--out", out)
    assert found.returncode == 1, found.stderr
    described = json.loads(found.stdout)
    assert (described["within_bound"], described["model"]) == (False, str(out))
    assert described["held_out"]["interval"]["estimate"] > 0.02
    assert described["file_sha256"] == ModelCard.read(out).file_sha256
    assert lp.load(out).max_mcdp == 0.02


def test_few_rows_are_said_to_be_few(people: Path, tmp_path: Path) -> None:
    found = run("repair", people, *AWARE, "--max-mcdp", 0.02, "--out", tmp_path / "model")
    assert "only more rows can tell" in found.stdout
    assert "undecided at the bound of 2.00% (the estimate fails)" in found.stdout


def test_weights_criteria_and_windows(people: Path, tmp_path: Path) -> None:
    FRAME.assign(w=1.0 + np.arange(2000) % 3).to_csv(tmp_path / "weighted.csv", index=False)
    options = ["--weight", "w", "--criterion", "equal_opportunity", "--epsilon", 0.01, "--max-mcdp", 0.3]
    found = run("repair", tmp_path / "weighted.csv", *AWARE, *options, "--out", tmp_path / "model", "--json")
    assert found.returncode in (0, 1), found.stderr
    described = json.loads(found.stdout)
    assert (described["criterion"], described["epsilon"]) == ("equal_opportunity", 0.01)
    assert "w" not in lp.load(tmp_path / "model").feature_names_in_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "incom", "--group", "sex"], "named 'incom'; did you mean 'income'?"),
        ([*AWARE, "--max-mcdp", 3], "--max-mcdp must be between 0 and 1, got 3"),
        ([*AWARE, "--confidence", 2], "--confidence must be"),
        ([*AWARE, "--confidence", 0.95, "--max-mcdp", 0.01], "--max-mcdp 0.01 is out of reach"),
        ([*AWARE, "--epsilon", -0.7], "--epsilon must be"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    people: Path, options: list[object], message: str, tmp_path: Path
) -> None:
    found = run("repair", people, *options, "--out", tmp_path / "never")
    assert found.returncode == 2
    assert found.stderr.startswith("error: ")
    assert found.stderr.count("\n") == 1
    assert message in found.stderr
    assert not (tmp_path / "never").exists()


def test_a_group_blind_repair_needs_no_group_at_prediction(people: Path, tmp_path: Path) -> None:
    out, scores = tmp_path / "model", tmp_path / "scores.csv"
    found = run("repair", people, *NAMED, "--max-mcdp", 0.2, "--out", out)
    assert found.returncode in (0, 1), found.stderr
    assert "does not need the groups" in found.stdout
    assert not ModelCard.read(out).needs_group
    assert run("predict", out, people, "--out", scores).returncode == 0
    assert run("audit", people, "--model", out, "--group", "sex", "--resamples", 0).returncode == 0


def test_a_refusal_names_the_features_that_carry_the_gap(people: Path, tmp_path: Path) -> None:
    words = [*NAMED, "--max-mcdp", 0.01, "--confidence", 0.95, "--out", tmp_path / "model"]
    found = run("repair", people, *words)
    assert found.returncode == 2
    assert "--max-mcdp 0.01 is out of reach" in found.stderr
    assert "points in 'income' is carried by occupation" in found.stderr
    assert not (tmp_path / "model").exists()
