"""The command as people type it: in this process, which has everything imported, or in one of its own."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO
from unittest.mock import patch

import pytest

import localparity
from localparity import _progress as _forecast
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
    """Run here in a bare environment; a warning is an error unless PYTHONWARNINGS says otherwise."""
    out, err = io.StringIO(), io.StringIO()
    code = _run(words, environment, out, err)
    return subprocess.CompletedProcess(list(map(str, words)), code, out.getvalue(), err.getvalue())


def only_audit(text: str) -> dict[str, Any]:
    """The one audit of a JSON document, without what comes from the file: names of it and of its columns."""
    (audit,) = json.loads(text)["audits"]
    for name in ("name", "provenance"):
        del audit[name]
    for name in ("about", "headline", "rates", "verdict", "unknown", "by_outcome", "caveats", "next_steps"):
        del audit["answer"][name]
    found: dict[str, Any] = audit
    return found


def run_merged(*words: object, **environment: str) -> tuple[int, str]:
    """The same with the standard error in its place among the output, as a terminal shows it."""
    both = io.StringIO()
    return _run(words, environment, both, both), both.getvalue()


def _run(words: Sequence[object], environment: dict[str, str], out: TextIO, err: TextIO) -> int:
    given = {**BARE, **environment}
    with (
        patch.dict(os.environ, given, clear=True),
        patch.object(sys, "argv", ["localparity", *map(str, words)]),
        patch.object(_forecast, "_LONG", math.inf),  # on a busy machine, too, nothing is said of the time
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(action=given["PYTHONWARNINGS"]),  # type: ignore[call-overload]
        pytest.raises(SystemExit) as left,
    ):
        main()
    return int(left.value.code or 0)


def run_apart(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own, as a shell starts it."""
    return subprocess.run(
        [sys.executable, "-m", "localparity", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**BARE, **environment},
    )


def run_here(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """Run here, in the environment as it is, and print where pytest captures it; the exit code."""
    monkeypatch.setattr(sys, "argv", ["localparity", *map(str, words)])
    monkeypatch.setattr(_forecast, "_LONG", math.inf)
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)
