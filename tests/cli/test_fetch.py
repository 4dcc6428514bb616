"""`localparity fetch`, from files at hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from typed_commands import run_here


def test_files_at_hand_are_checked_and_counted(
    data_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOCALPARITY_DATA", str(data_folder))
    assert run_here(monkeypatch, "fetch", "bank", "--data-home", tmp_path / "none") == 0
    assert capsys.readouterr().out == "bank: 41,188 people, in the folder named by LOCALPARITY_DATA\n"
    shutil.copytree(data_folder / "bank", tmp_path / "bank")
    monkeypatch.delenv("LOCALPARITY_DATA")
    assert run_here(monkeypatch, "fetch", "bank", "--data-home", tmp_path) == 0
    assert capsys.readouterr().out == f"bank: 41,188 people, in {tmp_path / 'bank'}\n"


def test_a_damaged_file_and_a_data_set_that_is_not_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LOCALPARITY_DATA", raising=False)
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.data").write_text("39, State-gov\n")
    assert run_here(monkeypatch, "fetch", "adult", "--data-home", tmp_path) == 2
    assert "adult.data is not the expected adult/adult.data: its sha256 is" in capsys.readouterr().err
    assert run_here(monkeypatch, "fetch", "mars") == 2
    assert "'mars' is not one of 'adult', 'bank'" in capsys.readouterr().err
    assert run_here(monkeypatch, "fetch", "adult", "--data-home", tmp_path / "adult" / "adult.data") == 2
    assert "adult.data is a file where a folder is expected" in capsys.readouterr().err
