"""The programs that try thousands of cases, with fewer of them than `make faults` and `make campaign`."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from faults.commands import COMMANDS

pytestmark = pytest.mark.slow

SUPPORT = Path(__file__).parents[1] / "support"


def check(program: str, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", program, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=SUPPORT.parents[1],
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_nothing_is_lost_half_written_or_left_behind(name: str) -> None:
    check("faults", "--only", name, "--kills", "20")


def test_bad_input_is_one_line_and_never_a_wrong_number() -> None:
    """Others each day."""
    check("campaign", "--first", str(10_000 * (1 + date.today().toordinal())), "--cases", "1000")
