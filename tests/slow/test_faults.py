"""Every command that writes, with every change that it makes to files failing in every way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from faults.commands import COMMANDS

pytestmark = pytest.mark.slow

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_nothing_is_lost_half_written_or_left_behind(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "faults", "--only", name, "--kills", "20"],
        capture_output=True,
        text=True,
        check=False,
        cwd=SUPPORT.parents[1],
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
