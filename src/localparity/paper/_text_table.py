"""Tables as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from localparity.paper._selection import Measured

Cell = str | Measured | None

_LATEX = {
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "*": "$^*$",
    "±": r"$\pm$",
    "~": r"\textasciitilde{}",
}


@dataclass
class TextTable:
    """A table of texts and measured values, None for an empty cell.

    `name` is that of its files; `marks` are "best" or "outside", by row and column; `digits` is the number of
    decimals of a measured value; `notes` are sentences below it.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: list[list[Cell]]
    marks: dict[tuple[int, int], set[str]] = field(default_factory=dict)
    digits: int = 2
    notes: list[str] = field(default_factory=list)

    def to_markdown(self) -> str:
        """The table as GitHub reads it."""
        lines = [f"### {self.title}", "", _joined(self.columns)]
        lines.append("|" + "|".join("---:" if self._is_numbers(i) else "---" for i in self._places()) + "|")
        for row in range(len(self.rows)):
            cells = [self._shown(row, column) for column in self._places()]
            best = [self._has(row, column, "best") for column in self._places()]
            lines.append(
                _joined(f"**{cell}**" if bold else cell for cell, bold in zip(cells, best, strict=True))
            )
        lines += ["", *(note + "\n" for note in self.notes)]
        return "\n".join(lines)

    def to_latex(self) -> str:
        """The table as a `tabular` with booktabs' rules."""
        kinds = "".join("r" if self._is_numbers(column) else "l" for column in self._places())
        lines = [f"% {self.title}", rf"\begin{{tabular}}{{{kinds}}}", r"\toprule"]
        lines += [" & ".join(map(_escape, self.columns)) + r" \\", r"\midrule"]
        for row in range(len(self.rows)):
            cells = []
            for column in self._places():
                text = _escape(self._shown(row, column))
                cells.append(rf"\textbf{{{text}}}" if self._has(row, column, "best") else text)
            lines.append(" & ".join(cells) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}", *(f"% {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """The table with all digits; deviations have a column of their own."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        measured = [self._is_numbers(column) for column in self._places()]
        header: list[str] = []
        for name, numbers in zip(self.columns, measured, strict=True):
            header += [name, f"{name} deviation"] if numbers else [name]
        writer.writerow(header)
        for row in self.rows:
            cells: list[object] = []
            for cell, numbers in zip(row, measured, strict=True):
                if isinstance(cell, Measured):
                    cells += [cell.mean, cell.deviation]
                else:
                    cells += [cell, None] if numbers else [cell]
            writer.writerow(cells)
        return stream.getvalue()

    def _places(self) -> range:
        return range(len(self.columns))

    def _is_numbers(self, column: int) -> bool:
        return any(isinstance(row[column], Measured) for row in self.rows)

    def _has(self, row: int, column: int, mark: str) -> bool:
        return mark in self.marks.get((row, column), set())

    def _shown(self, row: int, column: int) -> str:
        cell = self.rows[row][column]
        if cell is None:
            return "-"
        if isinstance(cell, str):
            return cell
        star = "*" if self._has(row, column, "outside") else ""
        spread = "" if cell.deviation is None else f" ± {cell.deviation:.{self.digits}f}"
        return f"{cell.mean:.{self.digits}f}{spread}{star}"


def _joined(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _escape(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
