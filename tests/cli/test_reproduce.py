"""`localparity reproduce` as people type it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import experiment_runs
from localparity.cli import main


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, experiment_runs.__file__, "reproduce", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "110", "PYTHONWARNINGS": "error", "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.slow
def test_from_nothing_to_tables_and_figures(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    store = tmp_path / "store"
    sweep = [
        "adult",
        "--seeds",
        1,
        "--methods",
        "fairmixup,diffmcdp",
        "--strengths",
        "0.1,0.3",
        "--store",
        store,
    ]
    listed = run(*sweep, "--dry-run")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.splitlines() == [
        "adult ERM 0 seed 0",
        "adult FairMixup 0.1 seed 0",
        "adult FairMixup 0.3 seed 0",
        "adult DiffMCDP 0.1 seed 0",
        "adult DiffMCDP 0.3 seed 0",
        "5 of 5 runs would be trained; the others are in the store",
    ]
    assert not store.exists()
    trained = run(*sweep)
    assert trained.returncode == 0, trained.stderr
    assert "trained 5 runs, found 0;" in trained.stdout
    assert "5/5 adult DiffMCDP 0.3 seed 0: AP " in trained.stderr
    (damaged,) = store.glob("runs/*diffmcdp-0.3*.json")
    damaged.write_text("{")
    told = run("tables", "--store", store, "--out", tmp_path / "tables")
    assert told.returncode == 0
    assert told.stderr.startswith("warning: the run ")
    assert f"it was renamed to {damaged.name}.damaged and counts as missing" in told.stderr
    assert "tables.md" in told.stdout


def test_json(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    sweep = [
        "adult",
        "--seeds",
        1,
        "--methods",
        "diffmcdp",
        "--strengths",
        0.1,
        "--store",
        tmp_path / "store",
    ]
    listed = run(*sweep, "--dry-run", "--json")
    runs = ["adult ERM 0 seed 0", "adult DiffMCDP 0.1 seed 0"]
    assert json.loads(listed.stdout) == {"runs": runs, "wanted": 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["adlt"], "No such command 'adlt'. Did you mean 'adult'?"),
        (["adult", "--methods", "difdp"], "method 'difdp'"),
        (["adult", "--strengths", "0.7"], "got 0.7"),
        (["adult", "--strengths", "strong"], "'strong'"),
        (["adult", "--preset", "best"], "got 'best'"),
        (["tables", "--store", __file__], "is a file, not a folder"),
        (["figures", "--out", __file__], "is a file, not a folder"),
        (["adult", "--methods", "diffmcdp, nothing", "--dry-run"], "method 'nothing'"),
        (["tables", "--store", "nowhere-at-all"], "the store nowhere-at-all has no runs"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["localparity", "reproduce", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    out, err = capsys.readouterr()
    assert (exit_.value.code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_store_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "store.json").write_text('{"format": 2, "localparity": "9.9"}')
    monkeypatch.setattr(sys, "argv", ["localparity", "reproduce", "adult", "--store", str(tmp_path)])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert "newer localparity, in format 2; this version reads format 1" in capsys.readouterr().err
