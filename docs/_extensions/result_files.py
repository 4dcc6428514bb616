"""The files under results/, read."""

from __future__ import annotations

import csv
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "results"


def read_rows(name: str) -> list[list[str]]:
    """The cells of a CSV file, or of the one table of a Markdown file; the first row is the head."""
    lines = (RESULTS / name).read_text(encoding="utf-8").splitlines()
    if name.endswith(".csv"):
        return list(csv.reader(line for line in lines if not line.startswith("#")))
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [cells[0], *cells[2:]]


def agrees(ap: str, mcdp: str) -> bool:
    """Whether differences in faithful.md are within its bounds; where there are none, they are not."""
    return bool(ap) and abs(float(ap)) <= 1.0 and abs(float(mcdp)) <= 2.0
