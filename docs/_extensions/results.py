"""Numbers out of results/, so that no page can claim another: a table, and a number in a sentence.

``.. results:: ground.csv`` is a table of a CSV file, or the one table of a Markdown file.
``:result:`gpu_scale.json audit_over_sort .1f``` is one number of a JSON file, by its keys with slashes
between them, and its format.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
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
        names = self.options["columns"].split(",") if "columns" in self.options else head
        places = [head.index(name.strip()) for name in names]
        found: list[nodes.Node] = [table([[row[i] for i in places] for row in [head, *rows]])]
        where = f"results/{self.arguments[0]}" + _machine(path)
        return [*found, nodes.paragraph("", "", nodes.emphasis("", where))]


def _machine(path: Path) -> str:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return f", made on {first.lstrip('# ')}" if path.suffix == ".csv" and first.startswith("#") else ""


def table(rows: list[list[str]]) -> nodes.table:
    """A table of texts, the first row its head."""
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
            line += nodes.entry("", nodes.paragraph("", _shown(cell)))
    return whole


def _shown(cell: str) -> str:
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
