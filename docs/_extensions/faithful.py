"""``.. faithful::`` sums up results/faithful.md: how far each method is from the published code."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from result_files import agrees, read_rows
from results import table
from sphinx.application import Sphinx

from localparity.paper._runs import TITLES

HEAD = [
    "data",
    "method",
    "strengths",
    "outside",
    "largest difference of AP",
    "of MCDP(0), points",
    "outside from its start",
]


def summary() -> list[list[str]]:
    """A row for each data set and method."""
    rows = read_rows("faithful.md")[1:]
    found = []
    for data in ("adult", "bank"):
        for method, title in TITLES.items():
            own = [row for row in rows if row[:2] == [data, method]]
            ap, mcdp = (max((row[i] for row in own), key=lambda text: abs(float(text))) for i in (5, 8))
            outside = sum("*" in row[9] for row in own)
            replayed = [row[10:12] for row in own if row[10]]
            apart = sum(not agrees(*row) for row in replayed)
            again = str(apart or "none") if replayed else "-"
            found.append([data.title(), title, str(len(own)), str(outside or "none"), ap, mcdp, again])
    return found


class Faithful(Directive):
    """The table."""

    def run(self) -> list[nodes.Node]:
        """Built from the file."""
        source = nodes.emphasis(
            "", "results/faithful.md; made by python -m benchmarks.faithful REFERENCE.csv STORE"
        )
        return [table([HEAD, *summary()]), nodes.paragraph("", "", source)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("faithful", Faithful)
    return {"parallel_read_safe": True}
