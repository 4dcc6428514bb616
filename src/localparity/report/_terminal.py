"""A document on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from localparity._text import percent, visible
from localparity.auditing._document import Document
from localparity.auditing._tables import ReportTable, Section, delta_dp_name

MOST_PAIRS = 10
_WIDEST_NAME = 12
_ASIDE = ("assumptions", "audited")


def terminal_parts(document: Document) -> Iterator[RenderableType]:
    """A document for rich, section by section."""
    for section in document.sections():
        if section.name == "verdict":
            yield from _verdict(document, section)
        elif section.name == "windows":
            yield Padding(Group(*map(Text, section.sentences)), (0, 0, 1, 0))
        elif section.name == "paired":
            yield Text("\n".join(section.sentences), style="bold")
            yield from map(_rich_table, section.tables)
            yield from (Text(promise, style="dim") for _, promise in section.facts)
        elif section.name == "pairs":
            yield from _pairs(document, *section.tables)
        elif section.name not in ("answers", "steps", "models"):
            yield from _section(section, several=len(document.audits) > 1)


def _verdict(document: Document, section: Section) -> Iterator[RenderableType]:
    name = section.model or ""
    comparison = document.audits[name].comparison
    compared = f"{comparison.criterion}, {comparison.compare}".replace("_", " ")
    yield Text(f"{visible(name)}: {compared}", style="bold")
    headline, where, how_sure, *notes = section.sentences
    sentences = [Text(headline, style="bold"), Text(f"{where} {how_sure}"), *map(Text, notes)]
    yield Padding(Group(*sentences), (0, 0, 1, 0))


def _pairs(document: Document, table: ReportTable) -> Iterator[RenderableType]:
    """The first pairs; of a model's one pair, its averages."""
    if any(len(audit.pairs) > 1 for audit in document.audits.values()):
        yield _rich_table(table.without("ABCC", delta_dp_name(document.audits)).first(MOST_PAIRS))
    for name, audit in document.audits.items():
        whose = f"{visible(name)}: " if len(document.audits) > 1 else ""
        if len(audit.pairs) == 1:
            (pair,) = audit.pairs
            delta_dp = f"{delta_dp_name({name: audit})} is {percent(pair.delta_dp)}"
            yield Text(f"{whose}Averages over thresholds: ABCC is {percent(pair.abcc)}, {delta_dp}.")
        elif len(audit.pairs) > MOST_PAIRS:
            more = f"... and {len(audit.pairs) - MOST_PAIRS:,} more pairs, all in the audit's JSON."
            yield Text(f"{whose}{more}", style="dim")


def _section(section: Section, *, several: bool) -> Iterator[RenderableType]:
    """A section of sentences and tables; those of one line have the heading in front."""
    whose = f" of {visible(section.model)}" if several and section.model else ""
    if section.sentences or (section.tables and section.model):
        style = "dim" if section.name in _ASIDE else ""
        if section.name in ("ratios", "scoring") or (whose and section.name != "left_out"):
            yield Text(f"{section.heading}{whose}", style="bold")
        if section.name == "left_out":
            yield Text(f"{section.heading}{whose}: {' '.join(section.sentences)}")
        elif section.name != "scoring":
            between = " " if section.name == "missing" else "\n"
            yield Text(between.join(section.sentences), style=style)
    for table in section.tables:
        yield _rich_table(table.first(MOST_PAIRS) if section.name == "strata" else table)
    if section.name == "scoring" and section.sentences:
        yield Text("\n".join(section.sentences), style="dim")


def _rich_table(table: ReportTable) -> Table:
    """A table in which rows that belong together are one, with the cells that they share shown once."""
    shown = Table(title=table.caption, title_justify="left", show_lines=table.shared > 0)
    for name in table.names:
        shown.add_column(name, overflow="fold")
    for name in table.numbers:
        # Numbers keep to one line, so that a long name takes two.
        header = name.replace(" ", "\n", 1) if len(name) > _WIDEST_NAME else name
        shown.add_column(header, justify="right", no_wrap=True)
    shared = table.shared
    for key, rows in groupby(enumerate(table.rows), key=lambda row: row[1][:shared] or row[0]):
        together = zip(*(row[shared:] for _, row in rows), strict=True)
        shown.add_row(*map(escape, key if shared else ()), *(escape("\n".join(cells)) for cells in together))
    return shown
