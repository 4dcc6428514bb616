"""What commands print where the standard output is a pipe, in a process of their own."""

from __future__ import annotations

from pathlib import Path

import localparity as lp
from typed_commands import run_apart


def test_a_name_that_the_encoding_lacks_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("p,town\n" + 5 * "0.1,Köln\n0.4,Köln\n0.6,Bonn\n0.9,Bonn\n", encoding="utf-8")
    options = ["--score", "p", "--group", "town", "--resamples", 50]
    found = run_apart("audit", path, *options, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert found.returncode == 0, found.stderr
    assert r"K\xf6ln" in found.stdout


def test_the_version() -> None:
    assert run_apart("--version").stdout == f"localparity {lp.__version__}\n"
