"""What commands print where the standard output is a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_name_that_the_encoding_lacks_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("p,town\n0.1,Köln\n0.4,Köln\n0.6,Bonn\n0.9,Bonn\n", encoding="utf-8")
    options = ["audit", "scores.csv", "--score", "p", "--group", "town", "--resamples", "50"]
    found = subprocess.run(
        [sys.executable, "-m", "localparity", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert r"K\xf6ln" in found.stdout
