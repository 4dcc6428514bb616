"""What commands print beside their tables: lines about the work, and JSON.

A file's or a group's name may hold anything, so it never reaches a terminal as it is.
"""

from __future__ import annotations

from json import dumps
from typing import Any

import typer

from localparity._text import visible, visible_lines


def print_line(text: str) -> None:
    """Print a line of the result."""
    typer.echo(visible(text))


def note(text: str) -> None:
    """Print a line on the standard error."""
    typer.echo(visible(text), err=True)


def print_json(found: Any) -> None:
    """Print a result as JSON, in which a value of another kind is text."""
    typer.echo(visible_lines(dumps(found, indent=2, default=str, ensure_ascii=False)))
