"""The commit that a result was made at."""

from __future__ import annotations

import subprocess


def current_commit() -> str:
    """The short name of the commit that is checked out."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
