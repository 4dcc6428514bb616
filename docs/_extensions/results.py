"""Numbers out of results/, so that no page can claim another: a table, and a number in a sentence.

``.. results:: ground.csv`` is a table of a CSV file, or the one table of a Markdown file; ``:columns:`` and
``:rows:`` choose some, with bars between their names, numbers are rounded, and a column "NAME deviation" is
joined to its own.
``:result:`gpu_scale.json audit_over_sort .1f``` is one number of a JSON file, by its keys with slashes
between them, and its format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from result_files import RESULTS, read_rows
from sphinx.application import Sphinx


class ResultsTable(Directive):
    """A file of results; a first line of a CSV file that starts with # says on which machine."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        "columns": directives.unchanged,
        "rows": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """The table, and the machine below it."""
        path = RESULTS / self.arguments[0]
        settings = self.state.document.settings
        settings.record_dependencies.add(str(path))
        head, *rows = read_rows(self.arguments[0])
        if "rows" in self.options:
            kept = self.options["rows"].split("|")
            rows = [row for row in rows if any(row[0].startswith(start.strip()) for start in kept)]
        if not rows:
            raise self.error(f"no row of {path.name} is as asked for")
        head, rows = with_deviations(head, rows)
        names = self.options["columns"].split("|") if "columns" in self.options else head
        places = [head.index(name.strip()) for name in names]
        found = table([[row[i] for i in places] for row in [head, *rows]])
        return [found, source_line(self.arguments[0])]


def with_deviations(head: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Each value with its deviation beside it, in place of a column of deviations."""
    kept = [name for name in head if not name.endswith(" deviation")]
    found = []
    for row in rows:
        cells = dict(zip(head, map(_shown, row), strict=True))
        spreads = [cells.get(f"{name} deviation") for name in kept]
        found.append(
            [
                f"{cells[name]} ± {spread}" if spread else cells[name]
                for name, spread in zip(kept, spreads, strict=True)
            ]
        )
    return kept, found


def source_line(name: str) -> nodes.paragraph:
    """Which file a table is of, and the machine that its first line names."""
    first = (RESULTS / name).read_text(encoding="utf-8").partition("\n")[0]
    made = f", made on {first.lstrip('# ')}" if name.endswith(".csv") and first.startswith("#") else ""
    return nodes.paragraph("", "", nodes.emphasis("", f"results/{name}{made}"))


def table(rows: Sequence[Sequence[str | nodes.Node]]) -> nodes.table:
    """A table of texts or nodes, the first row its head."""
    whole, group = nodes.table(), nodes.tgroup(cols=len(rows[0]))
    whole += group
    for _ in rows[0]:
        group += nodes.colspec(colwidth=1)
    head, body = nodes.thead(), nodes.tbody()
    group += [head, body]
    for i, row in enumerate(rows):
        line = nodes.row()
        (body if i else head).append(line)
        for cell in row:
            line += nodes.entry("", nodes.paragraph("", _unbroken(cell)) if isinstance(cell, str) else cell)
    return whole


def _unbroken(text: str) -> str:
    """A value and its deviation, and a bar and its sign, on one line."""
    return re.sub(r" (± )|(?<=[<>]=) ", lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), text)


def two_lines(value: str, below: str, *, strong: bool = False) -> nodes.line_block:
    """A cell with a value and, smaller below it, what it is compared with."""
    lines = nodes.line_block()
    above = nodes.strong("", _unbroken(value)) if strong else nodes.Text(_unbroken(value))
    lines += nodes.line("", "", above)
    if below:
        lines += nodes.line("", "", nodes.inline("", _unbroken(below), classes=["below"]))
    return lines


def _shown(cell: str) -> str:
    """Four digits of a number that has more; zeros at the end of one that has fewer are kept."""
    if re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", cell) and sum(letter.isdigit() for letter in cell) > 4:
        return f"{float(cell):.4g}" if abs(float(cell)) < 1000 else f"{float(cell):,.0f}"
    return {"True": "yes", "False": "no"}.get(cell, cell)


def result(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any
) -> tuple[list[Any], list[Any]]:
    """One number."""
    file, keys, shown = text.split()
    found = json.loads((RESULTS / file).read_text(encoding="utf-8"))
    try:
        for key in keys.split("/"):
            found = found[int(key)] if isinstance(found, list) else found[key]
    except (KeyError, IndexError, ValueError):
        problem = inliner.reporter.error(f"results/{file} has no {keys}", line=lineno)
        return [inliner.problematic(rawtext, rawtext, problem)], [problem]
    return [nodes.Text(_shown(str(found) if shown == "s" else format(found, shown)))], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("results", ResultsTable)
    app.add_role("result", result)
    return {"parallel_read_safe": True}
