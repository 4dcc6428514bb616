"""A document as Markdown, for a pull request or a wiki."""

from __future__ import annotations

import json
from collections.abc import Iterator

from localparity._text import markdown_text, visible
from localparity.auditing._document import Document
from localparity.auditing._missing import further_sentences
from localparity.auditing._tables import (
    ReportTable,
    findings_table,
    groups_table,
    models_table,
    paired_table,
    pairs_table,
    scoring_tables,
)
from localparity.report._terminal import header_rows

_MOST_PAIRS = 20


def to_markdown(document: Document) -> str:
    """The document: what was audited, the answers to six questions, and the tables."""
    return "\n\n".join(_parts(document)) + "\n"


def _parts(document: Document) -> Iterator[str]:
    yield f"# {markdown_text(document.title)}"
    audits = document.audits
    for name in audits:
        answers = document.answers(name)
        if len(audits) > 1:
            yield f"## {markdown_text(name)}"
        lines = [
            f"- **{answer.question}** {markdown_text(f'{answer.short}.' if answer.text else answer.short)} "
            f"{markdown_text(answer.text)}".rstrip()
            for answer in answers.answers
        ]
        yield "\n".join(lines)
        ratios = document.ratios(name)
        if ratios is not None:
            yield "\n".join(f"- {markdown_text(sentence)}" for sentence in ratios.sentences)
        commands = [visible(step.command) for step in answers.steps if step.command]
        if commands:
            yield "\n".join(["```sh", *commands, "```"])
    if document.paired is not None:
        yield "\n\n".join(markdown_text(document.paired.sentence(name)) for name in document.paired.found)
    for table in _tables(document):
        yield f"**{markdown_text(table.caption)}**"
        yield _table(table)
    for name, scoring in document.scoring.items():
        whose = f"{markdown_text(name)}: " if len(audits) > 1 else ""
        for table in scoring_tables(scoring):
            yield f"**{whose}{markdown_text(table.caption)}**"
            yield _table(table)
        yield "\n".join(f"- {markdown_text(sentence)}" for sentence in scoring.notes)
    for name, audit in audits.items():
        whose = f" of {markdown_text(name)}" if len(audits) > 1 else ""
        yield "\n".join(
            [
                f"**What was audited{whose}**",
                "",
                *(f"- {markdown_text(what)}: {markdown_text(text)}" for what, text in header_rows(audit)),
            ]
        )
        sentences = (*further_sentences(audit, document.max_mcdp), *audit.assumptions)
        yield "\n".join(f"- {markdown_text(sentence)}" for sentence in sentences)
    yield _all_digits(document)


def _tables(document: Document) -> Iterator[ReportTable]:
    audits = document.audits
    if len(audits) > 1:
        yield models_table(audits)
    if document.paired is not None:
        yield paired_table(document.paired)
    yield findings_table(audits)
    if any(len(audit.pairs) > 1 for audit in audits.values()):
        yield pairs_table(audits, _MOST_PAIRS)
    yield groups_table(audits)


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
