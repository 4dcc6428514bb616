"""What a file may not have meant to say, and what comes before it is read."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from typed_commands import run


def rows(group: str = "m", copies: int = 1) -> str:
    rng = np.random.default_rng(0)
    lines = [f"{i},{rng.random():.3f},{['f', group][i % 2]}\n" for i in range(200)]
    return "id,p,sex\n" + "".join(lines) * copies


def audit(path: object, *words: object) -> tuple[int, str, str]:
    done = run("audit", path, "--score", "p", "--group", "sex", "--resamples", 19, *words)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(("name", "hinted"), [("Unknown", True), ("not stated", True), ("m", False)])
def test_a_group_that_stands_for_none_is_hinted_at(tmp_path: Path, name: str, hinted: bool) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(rows(name))
    code, _, err = audit(path)
    assert code == 0
    assert (f"hint: the group '{name}' may stand for no group: --missing-groups bound" in err) is hinted
    assert err.count("\n") == hinted


def test_repeated_ids_are_hinted_at(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(rows(copies=2))
    code, _, err = audit(path)
    assert code == 0
    assert "hint: the 400 rows are of 200 people by column 'id'; pass --cluster id" in err
    assert "hint" not in audit(path, "--cluster", "id")[2]


def test_labels_in_words_are_hinted_at(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("p,sex,y\n" + 30 * "0.2,f,no\n0.9,m,yes\n0.4,m,no\n0.3,f,yes\n")
    code, _, err = audit(path, "--label", "y")
    assert code == 2
    assert "column 'y' of" in err
    assert "got 'no' at data row 1; pass --pos-label if there are other labels" in err
    assert audit(path, "--label", "y", "--pos-label", "yes")[0] == 0


def test_a_dash_is_the_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(rows())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    code, out, _ = audit("-")
    assert code == 0
    assert out.startswith("stdin.csv  200 people")
    assert out.splitlines()[1:] == audit(path)[1].splitlines()[1:]
    # No command can go on from it.
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    assert '"command": "localparity' not in audit("-", "--json")[1]
    assert '"command": "localparity' in audit(path, "--json")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["b.csv", "--id", "id", "--resamples", 0], "--resamples must be >= 19"),
        (["--pairs", "some"], "--pairs: must be a number or all, got 'some'"),
        (["a.csv"], "a.csv is named twice"),
    ],
)
def test_wrong_usage_comes_before_a_file_is_looked_for(words: list[object], message: str) -> None:
    options = [] if "--resamples" in words else ["--resamples", 19]
    done = run("audit", "a.csv", *words, "--score", "p", "--group", "sex", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
