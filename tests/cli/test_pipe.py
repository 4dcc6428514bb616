"""What commands print where the standard output is a pipe, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import localparity as lp
from typed_commands import BARE, run_apart


def test_a_name_that_the_encoding_lacks_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("p,town\n" + 5 * "0.1,Köln\n0.4,Köln\n0.6,Bonn\n0.9,Bonn\n", encoding="utf-8")
    options = ["--score", "p", "--group", "town", "--resamples", 50]
    found = run_apart("audit", path, *options, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert found.returncode == 0, found.stderr
    assert r"K\xf6ln" in found.stdout


def test_the_version() -> None:
    assert run_apart("--version").stdout == f"localparity {lp.__version__}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("words", [["plan", "--group-sizes", "9,9", "--resamples", "99"], ["nothing"]])
def test_a_full_disk_under_the_output_is_said(words: list[str]) -> None:
    command = [sys.executable, "-m", "localparity", *words]
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=BARE, check=False)
        untold = subprocess.run(command, stdout=full, stderr=full, env=BARE, check=False)
    assert told.returncode == untold.returncode == 2
    assert told.stderr.count("\n") == 1
    if words[0] == "plan":
        assert told.stderr == "error: the output cannot be written: No space left on device\n"
