"""One writer of the pages of results/ that the programs make: a title, what was tried, a table, and the commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks._commit import current_commit

from processes import ROOT

RESULTS = ROOT / "results"
Row = Mapping[str, str | int]


def write_page(name: str, title: str, text: str, rows: Sequence[Row], ending: Sequence[str] = ()) -> None:
    """Write results/NAME.md; what is counted stands on the right of its column."""
    header = list(rows[0])
    marks = [" ---: " if isinstance(cell, int) else " --- " for cell in rows[0].values()]
    lines = [f"# {title}", "", text, "", _line(header), f"|{'|'.join(marks)}|"]
    lines += [
        _line([f"{cell:,}" if isinstance(cell, int) else cell for cell in row.values()]) for row in rows
    ]
    lines += ["", *ending, *([""] if ending else []), f"Written at commit {current_commit()}.", ""]
    (RESULTS / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")


def rows_of(name: str) -> dict[str, Row]:
    """The rows of a page, by their first cell; none where there is no page."""
    path = RESULTS / f"{name}.md"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    header, *rows = [_cells(line) for line in lines if line.startswith("|") and "---" not in line] or [[]]
    return {row[0]: {name: _read(name, cell) for name, cell in zip(header, row, strict=True)} for row in rows}


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _read(column: str, cell: str) -> str | int:
    digits = cell.replace(",", "")
    return int(digits) if digits.isdecimal() and column != "commit" else cell
