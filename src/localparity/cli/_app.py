"""The commands and the one door through which their errors leave."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import localparity
from localparity.cli.audit import audit
from localparity.cli.demo import demo

app = typer.Typer(
    name="localparity",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(audit)
app.command()(demo)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"localparity {localparity.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Where two groups are treated most differently by a model's scores, and how sure that is."""


def main() -> None:
    """Run the command; wrong input is one line on the standard error and exit code 2."""
    try:
        app()
    except (ValueError, ImportError, OSError) as error:
        typer.echo("error: " + " ".join(str(error).split()), err=True)
        sys.exit(2)
