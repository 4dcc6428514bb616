"""The command as people type it: in a process of its own, or, where many are typed, in this one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from localparity.cli import main


def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run in a bare environment; a warning is an error unless PYTHONWARNINGS says otherwise."""
    bare = {"COLUMNS": "110", "PATH": "", "HOME": "/nonexistent", "PYTHONWARNINGS": "error"}
    return subprocess.run(
        [sys.executable, "-m", "localparity", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**bare, "OMP_NUM_THREADS": "1", **environment},
    )


def run_here(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """Run in this process; the exit code."""
    monkeypatch.setattr(sys, "argv", ["localparity", *map(str, words)])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)
