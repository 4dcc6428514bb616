"""The commands and the one door through which their errors leave."""

from __future__ import annotations

import sys
from typing import Annotated, Any, NoReturn

import typer

import localparity
from localparity.cli._commands import Commands
from localparity.cli._group import Group
from localparity.cli._interrupts import CODE, heeding_interrupts
from localparity.cli._pipe import outliving_its_reader
from localparity.cli._printing import note

# Click's own class, which some versions of typer carry inside and none exports.
_UsageError: Any = typer.BadParameter.__base__
_DUCKDB_OUT_OF_MEMORY = "OutOfMemoryException"
"""The name of DuckDB's error, so that it need not be imported."""
_NO_THREAD = "can't start new thread"
"""What Python says where the system refuses one, in a RuntimeError like any other."""

app = Commands(
    name="localparity",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    """Run the command; wrong usage or input is one line on the standard error and exit code 2."""
    with outliving_its_reader("stderr"):
        _run()


def _run() -> NoReturn:
    try:
        with heeding_interrupts(), outliving_its_reader("stdout"):
            code = app(standalone_mode=False)
    except _UsageError as error:
        _fail(error.format_message())
    except (ValueError, ImportError, OSError) as error:
        _fail(str(error))
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("interrupted", err=True)
        sys.exit(CODE)
    except Exception as error:
        if isinstance(error, MemoryError) or type(error).__name__ == _DUCKDB_OUT_OF_MEMORY:
            _fail("there is not enough memory")
        if str(error) == _NO_THREAD:
            _fail("no thread can be started: there is too little memory, or there are too many processes")
        # Exit code 1 means "above the bound", so nothing else may end with it.
        _fail(f"this should not have happened, please report it: {type(error).__name__}: {error}", code=3)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, *, code: int = 2) -> NoReturn:
    if message:  # a call without arguments has printed its help and says nothing more
        note("error: " + " ".join(message.split()))
    sys.exit(code)
