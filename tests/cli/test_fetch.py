"""`localparity fetch`, from files at hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from typed_commands import run_here


def test_files_at_hand_are_checked_and_counted(
    data_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOCALPARITY_DATA", str(data_folder))
    assert run_here(monkeypatch, "fetch", "bank", "--data-home", tmp_path / "none") == 0
    assert capsys.readouterr().out == f"bank: 41,188 people, in {data_folder / 'bank'}\n"
    shutil.copytree(data_folder / "bank", tmp_path / "bank")
    monkeypatch.delenv("LOCALPARITY_DATA")
    assert run_here(monkeypatch, "fetch", "bank", "--data-home", tmp_path) == 0
    assert capsys.readouterr().out == f"bank: 41,188 people, in {tmp_path / 'bank'}\n"
    assert run_here(monkeypatch, "fetch", "bank", "--data-home", tmp_path, "--json") == 0
    expected = {"dataset": "bank", "rows": 41188, "folder": str(tmp_path / "bank")}
    assert json.loads(capsys.readouterr().out) == expected


def test_a_damaged_file_and_a_data_set_that_is_not_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LOCALPARITY_DATA", raising=False)
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.data").write_text("39, State-gov\n")
    assert run_here(monkeypatch, "fetch", "adult", "--data-home", tmp_path) == 2
    assert "adult.data must have sha256 " in capsys.readouterr().err
    assert run_here(monkeypatch, "fetch", "mars") == 2
    assert "'mars' is not one of 'adult', 'bank'" in capsys.readouterr().err
    assert run_here(monkeypatch, "fetch", "adult", "--data-home", tmp_path / "adult" / "adult.data") == 2
    assert "--data-home" in capsys.readouterr().err
