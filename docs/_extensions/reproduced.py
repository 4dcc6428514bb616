"""``.. reproduced:: paper`` is a table for each data set with that preset: every value above the paper's.

The files are results/reproduce/results-DATA-PRESET.csv, whichever there are; of a data set that is not in the
paper, only the values stand there.
"""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from result_files import RESULTS, read_rows
from results import source_line, table, two_lines
from sphinx.application import Sphinx

from localparity.paper._data import DATA_SETS

_METRICS = ("AP", "delta-DP", "ABCC", "MCDP(0)")
_LEAST_TOLERANCE = 1.0


class Reproduced(Directive):
    """The tables."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """One a data set, in the order that the experiments have them."""
        preset = self.arguments[0]
        found: list[nodes.Node] = []
        for data, about in DATA_SETS.items():
            name = f"reproduce/results-{data}-{preset}.csv"
            if (RESULTS / name).exists():
                self.state.document.settings.record_dependencies.add(str(RESULTS / name))
                found += [nodes.rubric("", about.title), results_table(name, stars=preset == "paper")]
                found.append(source_line(name))
        if not found:
            raise self.error(f"results/reproduce has no table of preset {preset}")
        return found


def results_table(name: str, *, stars: bool) -> nodes.table:
    """The methods of one file."""
    head, *lines = read_rows(name)
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    best = {metric: _best(rows, metric) for metric in _METRICS}
    cells = []
    for i, row in enumerate(rows):
        values = (_cell(row, metric, best[metric] == i, stars) for metric in _METRICS)
        cells.append([row["method"], *values, row["strengths"] or "-", row["seeds"]])
    return table([["method", *_METRICS, "strengths chosen", "seeds"], *cells])


def _best(rows: list[dict[str, str]], metric: str) -> int:
    """The row with the highest AP, or with the least of another metric."""
    values = [
        (float(row[metric]) * (-1 if metric == "AP" else 1), i) for i, row in enumerate(rows) if row[metric]
    ]
    return min(values)[1] if values else -1


def _cell(row: dict[str, str], metric: str, is_best: bool, stars: bool) -> nodes.Node:
    """The value with its deviation, and the paper's below it."""
    ours, theirs = _measured(row, metric), _measured(row, f"{metric}, paper")
    star = " *" if stars and ours and theirs and _is_outside(row, metric) else ""
    return two_lines(ours + star if ours else "-", theirs, strong=is_best)


def _measured(row: dict[str, str], column: str) -> str:
    value, deviation = row.get(column), row.get(f"{column} deviation")
    if not value:
        return ""
    return f"{float(value):.2f}" + (f" ± {float(deviation):.2f}" if deviation else "")


def _is_outside(row: dict[str, str], metric: str) -> bool:
    theirs, deviation = float(row[f"{metric}, paper"]), float(row[f"{metric}, paper deviation"] or 0.0)
    return abs(float(row[metric]) - theirs) > max(deviation, _LEAST_TOLERANCE)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("reproduced", Reproduced)
    return {"parallel_read_safe": True}
