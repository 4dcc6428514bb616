"""The commands that an audit prints under "What now", run on the same file as they are printed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from typed_commands import run

pytest.importorskip("datasketches")

CENSUS = lp.datasets.make_census(900, random_state=0)
PEOPLE = CENSUS.data.assign(
    person=np.arange(900) + 1000,
    p=CENSUS.score.round(4),
    sex=CENSUS.sensitive_features,
    y=CENSUS.target,
    w=1.0 + CENSUS.target,
    score=(10 * CENSUS.score).round().astype(int) + 1,
)
SCORES = PEOPLE[["person", "p", "sex", "y"]]
DECILES = PEOPLE[["person", "score", "sex"]]
BLANK = SCORES.assign(sex=SCORES.sex.where(SCORES.index % 9 > 0).where(SCORES.index % 10 > 0, "Unknown"))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(*words: object) -> list[list[str]]:
    """The commands that an audit prints, as a shell splits them, each after `localparity`."""
    done = run("audit", *words, "--resamples", 99, "--json", PYTHONWARNINGS="default")
    assert done.returncode in (0, 1), done.stderr
    (audit,) = json.loads(done.stdout)["audits"]
    commands = [step["command"] for step in audit["answer"]["next_steps"]]
    return [shlex.split(command)[1:] for command in commands if command.startswith("localparity ")]


def names(commands: list[list[str]]) -> list[str]:
    return [words[0] for words in commands]


def write(frame: pd.DataFrame, name: str = "my scores.csv", **options: Any) -> str:
    frame.to_csv(name, index=False, **options)
    return name


CASES: dict[str, tuple[Any, list[object], set[str]]] = {
    "scores alone": (SCORES[["p", "sex"]], ["--score", "p"], {"monitor"}),
    "scores, an id and classes": (SCORES, ["--score", "p", "--label", "y"], {"monitor"}),
    "another range": (DECILES, ["--score", "score", "--score-range", "1,11"], {"monitor"}),
    "a range of the data": (DECILES, ["--score", "score", "--score-range", "data"], {"monitor"}),
    "ranks": (
        DECILES,
        ["--score", "score", "--score-range", "rank", "--higher-is", "worse"],
        {"monitor"},
    ),
    "blanks left out": (
        BLANK,
        ["--score", "p", "--label", "y", "--missing-groups", "drop", "--missing-value", "Unknown"],
        {"monitor"},
    ),
    "blanks bounded": (
        BLANK,
        ["--score", "p", "--missing-groups", "bound", "--missing-value", "unknown", "--normalise-groups"],
        {"monitor"},
    ),
    "blanks as a group": (BLANK, ["--score", "p", "--missing-groups", "group"], {"monitor"}),
    "scores without a value": (
        SCORES.assign(p=SCORES.p.where(SCORES.index % 11 > 0)),
        ["--score", "p", "--missing", "drop"],
        {"monitor"},
    ),
    "labels and a window": (
        SCORES,
        ["--score", "p", "--label", "y", "--criterion", "equalized_odds", "--epsilon", "0.02"],
        {"monitor"},
    ),
    "each group with everyone": (SCORES, ["--score", "p", "--compare", "to_overall"], {"monitor"}),
    "too few people": (SCORES[::100], ["--score", "p", "--min-group-size", 1], {"plan", "monitor"}),
    "too few people for a bound of 0": (
        SCORES[::100],
        ["--score", "p", "--min-group-size", 1, "--max-mcdp", 0],
        {"plan", "monitor"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_printed_command_works(case: str) -> None:
    frame, words, expected = CASES[case]
    commands = printed(write(frame), "--group", "sex", *words)
    assert set(names(commands)) == expected
    for command in commands:
        done = run(*command, PYTHONWARNINGS="default")
        assert done.returncode in (0, 1), done.stderr
        if done.returncode:
            assert "alarm: " in done.stderr


def test_how_a_file_was_read_is_carried() -> None:
    frame = SCORES.assign(sex=SCORES.sex.replace({"Female": "Frau é", "Male": "Mann"}))
    path = write(frame, sep=";", decimal=",", encoding="latin-1")
    words = ["--score", "p", "--group", "sex", "--encoding", "latin-1", "--decimal", ","]
    (command,) = printed(path, *words)
    assert command[:2] == ["monitor", "append"]
    done = run(*command, PYTHONWARNINGS="default")
    assert done.returncode in (0, 1), done.stderr


def test_several_files_of_one_model_are_all_watched() -> None:
    write(SCORES[:450], "a.csv")
    write(SCORES[450:], "b.csv")
    (command,) = printed("*.csv", "--score", "p", "--group", "sex")
    assert command[3:5] == ["a.csv", "b.csv"]
    assert run(*command).returncode in (0, 1)
    shown = json.loads(run("monitor", "show", "history", "--json").stdout)
    assert shown["since_start"]["rows"] == 900


def test_models_are_fitted_without_the_score_and_the_id() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("lightgbm")
    words = ["--score", "p", "--label", "y", "--weight", "w", "--max-mcdp", 0.2]
    path = write(PEOPLE.drop(columns="score"))
    explain, repair, train, watch = printed(path, "--group", "sex", *words)
    assert names([explain, repair, train, watch]) == ["explain", "repair", "train", "monitor"]
    assert set(explain[explain.index("--features") + 1].split(",")) == set(CENSUS.data.columns)
    assert run(*explain, PYTHONWARNINGS="default").returncode == 0
    for command in (repair, [*train, "--steps", 2]):
        done = run(*command, PYTHONWARNINGS="default")
        assert done.returncode in (0, 1), done.stderr
        out = command[command.index("--out") + 1]
        assert {"p", "person", "sex", "y", "w"}.isdisjoint(lp.load(out).feature_names_in_)
    assert run(*watch, PYTHONWARNINGS="default").returncode in (0, 1)


def test_a_saved_model_has_no_scores_to_watch() -> None:
    pytest.importorskip("torch")
    path = write(PEOPLE[[*CENSUS.data.columns, "sex", "y"]])
    named = ["--target", "y", "--group", "sex"]
    assert run("train", path, *named, "--steps", 2, "--out", "model").returncode == 0
    commands = printed(path, "--model", "model", *named)
    assert "monitor" not in names(commands)


def test_a_file_without_features_has_no_command_that_fits() -> None:
    path = write(SCORES)
    page = Path("page.html")
    words = ["audit", path, "--score", "p", "--group", "sex", "--label", "y", "--max-mcdp", 0.01]
    done = run(*words, "--resamples", 99, "--report", page, "--format", "markdown")
    assert done.returncode == 1
    assert "localparity repair " not in done.stdout
    assert "localparity repair my" not in page.read_text()
