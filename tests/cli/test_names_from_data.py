"""Names of groups, columns and files are shown as text, whatever they hold: they command no terminal."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import localparity as lp
from localparity._text import visible, visible_lines
from typed_commands import run

pytest.importorskip("lightgbm")

CLEAR = "a\x1b[2J"
"""Clears a terminal that is sent it."""
TURNED, COLOURED, BROKEN = "b\u202ec", "[red]d[/red]", "e\nf"
GROUPS = [CLEAR, TURNED, COLOURED, BROKEN]
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
COLUMN = "who\x1b]0;x\x07"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    census = lp.datasets.make_census(800, random_state=0)
    groups = np.random.default_rng(0).choice(GROUPS, 800)
    frame = census.data.assign(**{COLUMN: groups, "income": census.target, "p": census.score})
    path = tmp_path_factory.mktemp("names") / "people\x1b[1m.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["audit", "--score", "p", "--resamples", 20],
        ["audit", "--score", "p", "--resamples", 20, "--json"],
        ["audit", "--score", "nothing"],
        ["monitor", "--score", "p"],
        ["monitor", "--score", "p", "--json"],
        ["train", "--target", "income", "--steps", 3],
        ["train", "--target", "income", "--steps", 3, "--json"],
        ["repair", "--target", "income", "--max-mcdp", 0.5],
        ["compare", "--target", "income", "--network-steps", 3, "--resamples", 20],
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_every_command_shows_names_as_text(people: Path, tmp_path: Path, words: list[object]) -> None:
    command, *options = words
    given: list[object] = [people, "--group", COLUMN, *options]
    if command == "monitor":
        given = ["append", tmp_path / "kept", *given]
    if command in ("train", "repair"):
        given += ["--out", tmp_path / "model"]
    found = run(command, *given, PYTHONWARNINGS="default", COLUMNS="300")
    said = found.stdout + found.stderr
    assert found.returncode in (0, 1) or "nothing" in words, said
    assert not ACTING.search(said), ACTING.findall(said)
    if "--json" in words:
        json.loads(found.stdout)


def test_groups_are_named_as_they_are(people: Path) -> None:
    words = [people, "--group", COLUMN, "--score", "p", "--resamples", 0]
    found = run("audit", *words, PYTHONWARNINGS="default", COLUMNS="300")
    for name in (r"a\u001b[2J", r"b\u202ec", "[red]d[/red]", r"e\u000af"):
        assert name in found.stdout
    read = str(json.loads(run("audit", *words, "--json", PYTHONWARNINGS="default").stdout))
    assert all(repr(name) in read for name in GROUPS)


def test_no_text_of_the_scores_is_a_formula(tmp_path: Path) -> None:
    census = lp.datasets.make_census(300, random_state=0)
    names = np.where(census.target == 1, "=1+1", "-2.5")
    frame = census.data.assign(sex=census.sensitive_features, income=census.target, **{"@note": names})
    frame.to_csv(tmp_path / "people.csv", index=False)
    known = ["--target", "income", "--group", "sex", "--text", "@note", "--feature", "@note", "--steps", 3]
    trained = run("train", tmp_path / "people.csv", *known, "--out", tmp_path / "model")
    assert trained.returncode == 0, trained.stderr
    done = run(
        "predict",
        tmp_path / "model",
        tmp_path / "people.csv",
        "--keep",
        "@note",
        "--out",
        tmp_path / "scores.csv",
    )
    assert done.returncode == 0, done.stderr
    with (tmp_path / "scores.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    column = rows[0].index("'@note")
    assert {row[column] for row in rows[1:]} == {"'=1+1", "-2.5"}


def test_what_is_visible() -> None:
    assert visible("Köln \U0001f600, 東京, עברית") == "Köln \U0001f600, 東京, עברית"
    assert visible("a\r\nb\x85\u2028\ufeff\ud800") == r"a\u000d\u000ab\u0085\u2028\ufeff\ud800"
    assert visible_lines("a\nb\r") == "a\nb\\u000d"


ALIKE = {
    "cyrillic": ("male", "m\u0430le"),
    "greek": ("HOB", "\u0397\u039f\u0392"),
    "zero width": ("male", "ma\u200ble"),
    "soft hyphen": ("male", "ma\u00adle"),
    "joiner": ("male", "male\u2060"),
    "tags": ("male", "male\U000e0061"),
}


@pytest.mark.parametrize("kind", ALIKE)
def test_groups_that_look_alike_are_told_apart(kind: str, tmp_path: Path) -> None:
    path, (first, second) = tmp_path / "scores.csv", ALIKE[kind]
    names = [(first, second)[i % 2] for i in range(60)]
    path.write_text(
        "p,g\n" + "".join(f"0.{i:02d},{name}\n" for i, name in enumerate(names)), encoding="utf-8"
    )
    done = run("audit", path, "--score", "p", "--group", "g", "--resamples", 0, PYTHONWARNINGS="default")
    assert done.returncode == 0
    assert "look alike and have other characters; are they one?" in done.stderr
    assert ascii(second) in done.stderr
