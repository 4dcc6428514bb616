"""What people type who meet the command for the first time, and what they read then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from typed_commands import run_here

AUDIT = ["--score", "p", "--group", "sex"]
TRAIN = ["--target", "income", "--group", "sex", "--out", "model"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{rng.random():.4f},{'fm'[i % 2]},{i % 3 % 2}" for i in range(60)]
    Path("scores.csv").write_text("\n".join(["p,sex,y", *rows]))
    rows = [f"{20 + i % 40},{'fm'[i % 2]},{int(rng.random() < 0.4)}" for i in range(100)]
    Path("people.csv").write_text("\n".join(["age,sex,income", *rows]))
    Path("empty.csv").write_text("")
    Path("header.csv").write_text("p,sex\n")
    Path("latin.csv").write_bytes("p,sex\n0.1,männlich\n0.2,f\n".encode("latin-1"))
    Path("nan.csv").write_text("p,sex\n0.1,m\nnan,f\n")
    Path("huge.csv").write_text("p,sex\n0.1,m\n1e300,f\n")
    Path("damaged.parquet").write_bytes(b"PAR1 and no more")
    Path("folder.csv").mkdir()
    Path("full").mkdir()
    Path("full/a.png").write_text("mine")
    return tmp_path


def typed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, str]:
    """The exit code and the one line of a command that is refused."""
    code = run_here(monkeypatch, *words)
    said = capsys.readouterr()
    assert said.out == ""
    return code, said.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit", "scores.csv", *AUDIT, "--label", "z"], "there is no column in scores.csv named 'z'"),
        (
            ["audit", "scores.csv", "--score", "p", "--group", "p"],
            "column 'p' cannot be both the score and a group",
        ),
        (["audit", "nothere.csv", *AUDIT], "nothere.csv does not exist"),
        (["audit", "empty.csv", *AUDIT], "empty.csv is empty"),
        (["audit", "header.csv", *AUDIT], "header.csv has no rows"),
        (
            ["audit", "folder.csv", *AUDIT],
            "folder.csv is a folder; name its files, e.g. folder.csv/*.csv",
        ),
        (["audit", "latin.csv", *AUDIT], "latin.csv cannot be read: line 2: Invalid unicode"),
        (["audit", "nan.csv", *AUDIT], "column 'p' must be finite, got nan at data row 2"),
        (
            ["audit", "huge.csv", *AUDIT],
            "--score-range (0.0, 1.0)",
        ),
        (["audit", "damaged.parquet", *AUDIT], "damaged.parquet cannot be read: "),
        (
            ["audit", "scores.csv", *AUDIT, "--report", "folder.csv"],
            "--report: folder.csv is a folder, not a file",
        ),
        (["audit", "scores.csv", *AUDIT, "--max-mcdp", "5"], "--max-mcdp must be between 0 and 1, got 5"),
        (["audti", "scores.csv"], "No such command 'audti'"),
        (
            ["audit", "scores.csv", *AUDIT, "--label", "q", "--label", "y"],
            "--label was given 2 times; it takes",
        ),
        (["audit", "scores.csv", *AUDIT, "--json", "--json"], "--json was given 2 times"),
        (["train", "people.csv", *TRAIN, "--out", "b", "--out", "c"], "--out was given 3 times"),
        (
            ["monitor", "append", "kept", *AUDIT, "--epsilon", "0", "--epsilon", "0.1"],
            "--epsilon was given 2 times",
        ),
        (["reproduce", "adult", "--seeds", "1", "--seeds", "2"], "--seeds was given 2 times"),
        (["reproduce", "tables", "--out", "a", "--out", "b"], "--out was given 2 times"),
        (
            ["train", "people.csv", *TRAIN[:4], "--out", "full"],
            "full already exists; pass --force to overwrite",
        ),
        (["predict", "full", "people.csv", "--out", "nan.csv"], "nan.csv already exists; pass --force"),
        (
            ["compare", "people.csv", *TRAIN[:4], "--figure", "full/a.png"],
            "a.png already exists; pass --force",
        ),
        (["demo", "--report", "nan.csv"], "nan.csv already exists; pass --force"),
        (["train", "people.csv", *TRAIN, "--drop", "agee"], "named 'agee'; did you mean 'age'?"),
        (["train", "people.csv", *TRAIN, "--text", "agee"], "named 'agee'; did you mean 'age'?"),
        (["train", "people.csv", *TRAIN, "--drop", "age"], "people.csv has no column left"),
        (
            ["train", "people.csv", *TRAIN, "--group", "income"],
            "column 'income' must be --target or --group",
        ),
        (["train", "people.csv", *TRAIN, "--steps", "0"], "--steps must be >= 1, got 0"),
        (["train", "people.csv", *TRAIN, "--max-mcdp", "5"], "--max-mcdp must be between 0 and 1, got 5"),
        (
            ["train", "people.csv", *TRAIN[:4], "--out", "nan.csv"],
            "--out: nan.csv is a file, not a folder",
        ),
        (["train", "folder.csv", *TRAIN], "folder.csv is a folder; name its files"),
        (["repair", "people.csv", *TRAIN, "--out", "full"], "--out was given 2 times"),
        (
            ["repair", "people.csv", *TRAIN[:4], "--out", "full"],
            "full already exists; pass --force to overwrite",
        ),
        (["repair", "people.csv", *TRAIN[:4], "--out", "nan.csv"], "--out: nan.csv is a file, not a folder"),
        (["repair", "empty.csv", *TRAIN], "empty.csv is empty"),
        (["repair", "people.csv", *TRAIN, "--text", "agee"], "named 'agee'; did you mean 'age'?"),
        (
            ["audit", "people.csv", "--model", "full", "--group", "sex"],
            "there is no model in full: model.json",
        ),
        (
            ["audit", "people.csv", "--model", "model", "--group", "sex"],
            "there is no model in model: model.json",
        ),
        (
            ["predict", "model", "people.csv", "--out", "folder.csv"],
            "--out: folder.csv is a folder, not a file",
        ),
        (
            ["predict", "model", "people.csv", "--out", "s.csv"],
            "there is no model in model: model.json cannot be read",
        ),
        (
            ["monitor", "append", "nan.csv", "scores.csv", *AUDIT],
            "LOCATION: nan.csv is a file, not a folder",
        ),
        (["demo", "--report", "folder.csv"], "--report: folder.csv is a folder, not a file"),
        (
            ["compare", "people.csv", *TRAIN[:4], "--figure", "a.gif"],
            "--figure: must be a .png, .svg or .pdf file, got 'a.gif'",
        ),
        (
            ["reproduce", "adult", "--store", "nan.csv"],
            "--store: nan.csv is a file, not a folder",
        ),
    ],
)
def test_one_line_says_what_is_wrong(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    before = sorted(folder.rglob("*"))
    code, line = typed(capsys, monkeypatch, *words)
    assert code == 2
    assert line.startswith("error: ")
    assert line.count("\n") == 1
    assert message in line
    assert sorted(folder.rglob("*")) == before


def test_a_bound_that_is_no_fraction_is_refused_before_the_batch_is_kept(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["monitor", "append", "kept", "scores.csv", *AUDIT, "--max-mcdp", "7"]
    code, line = typed(capsys, monkeypatch, *words)
    assert code == 2
    assert "--max-mcdp must be between 0 and 1, got 7" in line
    assert not (folder / "kept").exists()
