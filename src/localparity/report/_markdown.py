"""A document as Markdown, for a pull request or a wiki."""

from __future__ import annotations

import json
from collections.abc import Iterator

from localparity._text import markdown_text, visible
from localparity.auditing._document import Document
from localparity.auditing._tables import ReportTable, Section

_MOST_PAIRS = 20


def to_markdown(document: Document) -> str:
    """The document: the answer, the tables, and what they rest on."""
    document.check_sizes()
    return markdown_of(document)


def markdown_of(document: Document, *, without: tuple[str, ...] = ()) -> str:
    """The same of a document whose sizes were checked, without some sections."""
    sections = [section for section in document.sections() if section.name not in without]
    parts = [part for section in sections for part in _parts(section, document)]
    return "\n\n".join([f"# {markdown_text(document.title)}", *parts, _all_digits(document)]) + "\n"


def _parts(section: Section, document: Document) -> Iterator[str]:
    """A section, with the model that it is about where there are several."""
    several = len(document.audits) > 1 and section.model is not None
    if section.name == "answer":
        if several:
            yield f"## {markdown_text(section.model or '')}"
        headline, *others = map(markdown_text, section.sentences)
        yield f"**{headline}**"
        yield "\n".join(f"- {sentence}" for sentence in others)
        yield from map(_table, section.tables)
        commands = [visible(command) for _, command in section.facts if command.startswith("localparity ")]
        if commands:
            yield "\n".join(["```sh", *commands, "```"])
    elif section.name != "windows" and (section.name != "pairs" or _several_pairs(document)):
        yield from _listed(section, f" of {markdown_text(section.model or '')}" if several else "")


def _several_pairs(document: Document) -> bool:
    return any(len(audit.pairs) > 1 for audit in document.audits.values())


def _listed(section: Section, whose: str) -> Iterator[str]:
    """The sentences, facts and tables of a section."""
    lines = [f"- {markdown_text(sentence)}" for sentence in section.sentences]
    lines += [f"- {markdown_text(what)}: {markdown_text(text)}" for what, text in section.facts]
    if lines:
        yield f"**{section.heading}{whose}**\n\n" + "\n".join(lines)
    for table in section.tables:
        yield f"**{markdown_text(table.caption)}{whose}**"
        yield _table(table.first(_MOST_PAIRS) if section.name in ("pairs", "strata") else table)


def _table(table: ReportTable) -> str:
    head = [*table.names, *table.numbers]
    rule = ["---"] * len(table.names) + ["---:"] * len(table.numbers)
    rows = [head, rule, *table.rows]
    cells = [rule if row is rule else [markdown_text(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _all_digits(document: Document) -> str:
    """The findings with all their digits, for whoever checks them."""
    found = {
        name: [
            {
                "epsilon": finding.epsilon,
                "mcdp": finding.mcdp,
                "low": finding.interval.low,
                "high": finding.interval.high,
                "p_value": None if finding.test is None else finding.test.p_value,
            }
            for finding in audit.findings
        ]
        for name, audit in document.audits.items()
    }
    # A name of back ticks would end the block.
    text = json.dumps(found, indent=1).replace("`", "\\u0060")
    return f"<details><summary>All digits</summary>\n\n```json\n{text}\n```\n\n</details>"
