"""Files that hold the same people: compared person by person, with nothing shown of anybody."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
import typed_commands
from localparity.auditing._paired_models import PairedModels

RNG = np.random.default_rng(0)
SIZE = 300
SEX = np.repeat(["f", "m"], SIZE // 2)
FIRST = RNG.random(SIZE) ** np.where(SEX == "f", 3.0, 1.0)
SECOND = RNG.random(SIZE)
PEOPLE = pd.DataFrame(
    {
        "person": [f"secret-{place:04d}" for place in RNG.permutation(SIZE)],
        "sex": SEX,
        "age": np.arange(SIZE) % 2,
        "y": RNG.integers(0, 2, SIZE),
        "w": RNG.integers(1, 4, SIZE),
        "home": np.arange(SIZE) // 3,
        "p": FIRST,
    }
)
NAMED = ["--score", "p", "--group", "sex", "--resamples", 99, "--id", "person"]
QUICK: dict[str, Any] = {"n_resamples": 99, "random_state": 0}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The people under three models, each file in an order of its own."""
    paths = []
    for name, scores in (("a", FIRST), ("b", SECOND), ("c", FIRST)):
        path = tmp_path / f"{name}.csv"
        PEOPLE.assign(p=scores).sample(frac=1.0, random_state=ord(name)).to_csv(path, index=False)
        paths.append(str(path))
    return paths


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return typed_commands.run("audit", *words, COLUMNS="160")


def read(files: Sequence[str], **options: Any) -> PairedModels:
    given = {"id": "person", "score": "p", "group": ["sex"], **QUICK, **options}
    return PairedModels.read(files, **given)


@pytest.mark.parametrize(
    ("columns", "arrays"),
    [
        ({}, {"sensitive_features": "sex"}),
        ({"weight": "w", "cluster": "home"}, {"sample_weight": "w", "cluster": "home"}),
        ({"label": "y", "criterion": "equalized_odds"}, {"y_true": "y"}),
        ({"group": ["sex", "age"]}, {"sensitive_features": ["sex", "age"]}),
        ({"cluster": "person"}, {}),
    ],
)
def test_rows_are_matched_by_id(files: list[str], columns: dict[str, Any], arrays: dict[str, Any]) -> None:
    found = read(files, **columns)
    ordered = PEOPLE.sort_values("person")
    given = {
        name: ordered[of].reset_index(drop=True)
        for name, of in {"sensitive_features": "sex", **arrays}.items()
    }
    labels = given.pop("y_true", None)
    first, second = (pd.Series(scores)[ordered.index].to_numpy() for scores in (FIRST, SECOND))
    options = {**QUICK, "criterion": columns.get("criterion", "demographic_parity")}
    expected = lp.compare_scores(labels, first, second, **given, **options)
    assert found.first == files[0]
    assert list(found.found) == files[1:]
    if "cluster" not in columns:
        assert found.found[files[1]] == expected
    assert found.found[files[1]].first == pytest.approx(expected.first)
    assert found.found[files[2]].p_value == 1.0


def test_groups_that_were_left_out_are_not_compared(files: list[str], tmp_path: Path) -> None:
    changed = []
    for file in files[:2]:
        frame = pd.read_csv(file)
        frame.loc[frame["person"].isin(["secret-0001", "secret-0002"]), "sex"] = "x"
        changed.append(str(tmp_path / f"changed_{Path(file).name}"))
        frame.to_csv(changed[-1], index=False)
    words = [*changed, *NAMED, "--min-group-size", 10, "--json"]
    found = json.loads(run(*words).stdout)["audits"][1]
    assert found["same_people"]["second"] == found["findings"][0]["mcdp"]
    assert found["left_out"][0]["group"] == "x"


def test_the_terminal_json_and_page_show_it_and_nobody(files: list[str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    found = run(*files, *NAMED, "--report", page)
    assert found.returncode == 0, found.stderr
    told = " ".join(found.stdout.split())
    assert f"{files[1]} treats the groups more alike than {files[0]}" in told
    assert "0 points lower, which chance could explain" in told
    plain = run(*files, *NAMED, "--json")
    audits = json.loads(plain.stdout)["audits"]
    assert audits[0]["same_people"] is None
    paired = audits[1]["same_people"]
    assert paired["compared_with"] == files[0]
    assert paired["difference"]["estimate"] == pytest.approx(paired["second"] - paired["first"])
    html = page.read_text(encoding="utf-8")
    assert "On the same people" in html
    assert "treats the groups more alike than" in html
    for text in (found.stdout, found.stderr, plain.stdout, html):
        assert "secret" not in text


@pytest.mark.parametrize(
    ("ends", "p_value", "expected"),
    [
        (
            (-0.3, -0.2, -0.1),
            0.01,
            "b treats the groups more alike than a: its MCDP(0.1) is 20 points lower",
        ),
        (
            (0.1, 0.2, 0.3),
            0.05,
            "b treats the groups less alike than a: its MCDP(0.1) is 20 points higher",
        ),
        ((-0.1, 0.2, 0.3), 0.05, "open: MCDP(0.1) of b is 20 points higher, with an interval from -10"),
        ((0.1, 0.2, 0.3), 0.06, "No difference between b and a was found"),
    ],
)
def test_a_direction_needs_the_test_and_the_interval(
    ends: tuple[float, float, float], p_value: float, expected: str
) -> None:
    found = lp.results.PairedComparison(0.5, 0.7, lp.results.Interval(*ends, 0.95), p_value)
    assert expected in PairedModels("a", 0.1, {"b": found}).sentence("b")


def test_without_ids_nothing_is_compared(files: list[str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    found = run(*files[:2], *NAMED[:-2], "--report", page)
    assert "same people" not in found.stdout.replace("looks at the same people", "")
    assert "On the same people" not in page.read_text(encoding="utf-8")


def changed_file(tmp_path: Path, change: str) -> str:
    frame = PEOPLE.copy()
    if change == "twice":
        frame = pd.concat([frame, frame.head(3)])
    elif change == "other people":
        frame = frame.iloc[5:]
    elif change == "other groups":
        frame.loc[:3, "sex"] = "m"
    else:
        frame.loc[:1, "person"] = None
    path = tmp_path / "changed.csv"
    frame.to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("twice", "3 rows too many"),
        ("other people", "got 5 only in the first and 0 only in the second"),
        ("other groups", "column 'sex' must be the same"),
        ("nobody", "got 2 without"),
    ],
)
def test_files_of_other_people_are_an_error_that_counts(
    files: list[str], tmp_path: Path, change: str, message: str
) -> None:
    found = run(files[0], changed_file(tmp_path, change), *NAMED)
    assert (found.returncode, found.stdout) == (2, "")
    assert message in found.stderr
    assert "secret" not in found.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--id", "person", "--engine", "spark"], "--id: cannot be used with --engine spark"),
        (["--id", "persn"], "persn"),
        (["--id", "p"], "'p' cannot be both the score and the id"),
        (["--id", "person", "--resamples", 0], "--resamples must be >= 19"),
    ],
)
def test_wrong_usage_is_one_line(files: list[str], words: list[object], message: str) -> None:
    given = ["--score", "p", "--group", "sex", *words]
    found = run(*files[:2], *given, *([] if "--resamples" in words else ["--resamples", 19]))
    assert found.returncode == 2
    assert message in found.stderr


def test_one_file_is_checked_for_people_with_several_rows(files: list[str], tmp_path: Path) -> None:
    assert "no person of column 'person' has several rows" in run(files[0], *NAMED).stderr
    twice = tmp_path / "twice.csv"
    pd.concat([PEOPLE, PEOPLE.head(20)]).to_csv(twice, index=False)
    found = run(twice, *NAMED)
    assert "the 320 rows are of 300 people by column 'person'; pass --cluster person" in found.stderr
    clustered = run(twice, *NAMED, "--cluster", "person")
    assert "rows are of 300 people" in clustered.stderr
    assert "pass --cluster" not in clustered.stderr
    assert "named 'persn'; did you mean 'person'?" in run(files[0], *NAMED[:-1], "persn").stderr


def test_one_model_cannot_be_compared(files: list[str], tmp_path: Path) -> None:
    words = ["--model", tmp_path, "--group", "sex", "--id", "person"]
    assert "--id: needs --score" in run(*files[:2], *words).stderr
