"""README's Python runs, and its commands are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert "people in Female are at least 27.3 points" in capsys.readouterr().out


def test_the_two_commands_are_targets() -> None:
    readme, makefile = ((ROOT / name).read_text() for name in ("README.md", "Makefile"))
    for target in ("demo", "test"):
        assert f"make {target}" in readme
        assert f"\n{target}:" in makefile
