"""``.. curves:: time`` and ``.. curves:: memory``: results/curves.csv, a column for each number of rows."""

from __future__ import annotations

import math

from docutils import nodes
from docutils.parsers.rst import Directive
from result_files import RESULTS, read_rows
from results import source_line, table, two_lines
from sphinx.application import Sphinx

NAME = "curves.csv"
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_SCALES = {
    "time": ("seconds", "over_sort", (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)), "sorts"),
    "memory": ("megabytes", "over_scores", (("GB", 1e3), ("MB", 1.0), ("kB", 1e-3)), "scores"),
}


class Curves(Directive):
    """The table."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A row for each series, in the order of the file."""
        self.state.document.settings.record_dependencies.add(str(RESULTS / NAME))
        head, *lines = read_rows(NAME)
        points = [dict(zip(head, line, strict=True)) for line in lines]
        value, ratio, scales, beside = _SCALES[self.arguments[0]]
        found = {(point["series"], int(point["rows"])): point for point in points if point[value]}
        rows = sorted({place for _, place in found})
        cells = [
            [name, *(_cell(found.get((name, place)), value, ratio, scales, beside) for place in rows)]
            for name in dict.fromkeys(point["series"] for point in points)
        ]
        return [table([["", *map(_power, rows)], *cells]), source_line(NAME)]


def _power(rows: int) -> str:
    return "10" + str(round(math.log10(rows))).translate(_RAISED)


def _cell(
    point: dict[str, str] | None,
    value: str,
    ratio: str,
    scales: tuple[tuple[str, float], ...],
    beside: str,
) -> str | nodes.Node:
    if point is None:
        return ""
    number, times = float(point[value]), float(point[ratio])
    unit, scale = next((each for each in scales if number >= each[1]), scales[-1])
    shown = f"{number / scale:.0f}" if number >= 100 * scale else f"{number / scale:.2g}"
    return two_lines(f"{shown} {unit}", f"{times:,.0f} {beside}" if times >= 10 else f"{times:.1f} {beside}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("curves", Curves)
    return {"parallel_read_safe": True}
