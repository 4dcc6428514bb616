"""What `localparity audit` prints and writes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import typer
from rich.console import Console

from localparity._text import visible, visible_lines
from localparity.audit._document import Document
from localparity.audit._missing import breakdown_of
from localparity.cli._printing import note
from localparity.report._terminal import paired_parts, ratio_parts, terminal_parts

AuditFormat = Literal["text", "json", "markdown", "junit"]


def check_format(form: AuditFormat, json: bool, max_mcdp: float | None) -> AuditFormat:
    """The form to print, of which --json is a short name; test cases need a bound."""
    if json and form not in ("text", "json"):
        raise typer.BadParameter(f"must be json with --json, got {form}", param_hint="--format")
    if form == "junit" and max_mcdp is None:
        raise typer.BadParameter("junit needs --max-mcdp, which its test cases decide", param_hint="--format")
    return "json" if json else form


def show(document: Document, form: AuditFormat) -> None:
    """Print a document."""
    if form == "json":
        typer.echo(visible_lines(document.to_json()))
    elif form == "markdown":
        from localparity.report._markdown import to_markdown

        typer.echo(to_markdown(document), nl=False)
    elif form == "junit":
        from localparity.report._junit import to_junit

        typer.echo(to_junit(document), nl=False)
    else:
        console = Console()
        for file, audit in document.audits.items():
            console.print(*terminal_parts(audit, title=visible(file)), sep="\n")
            console.print(*ratio_parts(document.ratios(file), document.scoring.get(file)), sep="\n")
        if document.paired is not None:
            console.print(*paired_parts(document.paired), sep="\n")


def tell_verdicts(document: Document) -> bool:
    """Say of each file whether it is within the bound; whether all are."""
    bounds = {name: document.answers(name).bound for name in document.audits}
    for name, bound in bounds.items():
        if bound is not None:
            whose = f"{name}: " if len(bounds) > 1 else ""
            note(f"{'pass' if bound.within else 'fail'}: {whose}{bound.sentence}")
            if bound.could_be_chance:
                note(
                    "--decide-by lower fails only what chance does not explain; --min-group-size and "
                    "--small-groups drop leave small groups out"
                )
            breakdown = breakdown_of(document.audits[name], bound.max_mcdp)
            for sentence in () if breakdown is None else breakdown.sentences:
                note(sentence)
    return all(bound is None or bound.within for bound in bounds.values())


def write_report(document: Document, path: Path, *, force: bool) -> None:
    """Write the page."""
    from localparity.report._written import write_new
    from localparity.report.page._page import render_page

    write_new(path, render_page(document).encode(), force=force)
    note(f"report: {path}")


def write_out(document: Document, path: Path, *, model: Path | None, force: bool) -> None:
    """Write the bundle."""
    from localparity.report._bundle import bundle
    from localparity.report._written import write_new

    write_new(path, bundle(document, model), force=force)
    note(f"bundle: {path}")
