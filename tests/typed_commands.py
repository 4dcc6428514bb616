"""The command as people type it: in a process of its own, or, where many are typed, in this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import localparity
from localparity.cli import main

BARE = {
    "COLUMNS": "110",
    "PATH": "",
    "HOME": "/nonexistent",
    "PYTHONWARNINGS": "error",
    "OMP_NUM_THREADS": "1",
    # The package that these tests import, wherever another one is installed.
    "PYTHONPATH": str(Path(localparity.__file__).parents[1]),
}


def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run in a bare environment; a warning is an error unless PYTHONWARNINGS says otherwise."""
    return subprocess.run(
        [sys.executable, "-m", "localparity", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**BARE, **environment},
    )


def run_here(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """Run in this process; the exit code."""
    monkeypatch.setattr(sys, "argv", ["localparity", *map(str, words)])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)
