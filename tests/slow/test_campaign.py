"""Generated bad files and argument lists for every command, others each day."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SUPPORT = Path(__file__).parents[1] / "support"


def test_bad_input_is_one_line_and_never_a_wrong_number() -> None:
    first = str(10_000 * (1 + date.today().toordinal()))
    done = subprocess.run(
        [sys.executable, "-m", "campaign", "--first", first, "--cases", "1000"],
        capture_output=True,
        text=True,
        check=False,
        cwd=SUPPORT.parents[1],
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
