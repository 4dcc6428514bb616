"""Commands that take each option once, unless it is a list, and whose messages name their options."""

from __future__ import annotations

import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import cleandoc
from json import dumps
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer
from typer.core import TyperCommand

from localparity._progress import bar_on_terminal, forecasts_to
from localparity._text import shown_address, visible, visible_lines, without_secrets
from localparity._validation import Worded

# The library's messages in the words of a command: "n_resamples must be" is "--resamples must be".


_ALIASES = {
    "X": "features",
    "epsilons": "epsilon",
    "n_jobs": "jobs",
    "n_resamples": "resamples",
    "random_state": "seed",
    "sample_weight": "weight",
    "sensitive_features": "group",
    "y": "target",
    "y_score": "score",
    "y_true": "label",
}
"""What a command calls an argument of the library, where that is another name."""


def options_of(params: Iterable[Any]) -> dict[str, str]:
    """The options of a command, by the names that the library has for them."""
    options = {param.name: param.opts[0] for param in params if param.param_type_name == "option"}
    aliases = {alias: options[name] for alias, name in _ALIASES.items() if name in options}
    return aliases | options


def in_options(error: Exception, options: Mapping[str, str]) -> str:
    """The message of an error or a warning, with options in the place of the library's arguments."""
    return error.in_words(options) if isinstance(error, Worded) else str(error)


# What commands print beside their tables: lines about the work, and JSON.
#
# A file's or a group's name may hold anything, so it never reaches a terminal as it is.


def print_line(text: str) -> None:
    """Print a line of the result."""
    typer.echo(visible(text))


def note(text: str) -> None:
    """Print a line on the standard error, in which no address shows a secret."""
    typer.echo(visible(without_secrets(text)), err=True)


def print_json(found: Any) -> None:
    """Print a result as JSON, in which a value of another kind is text."""
    typer.echo(visible_lines(dumps(found, indent=2, default=str, ensure_ascii=False)))


def print_result(result: Any, *lines: str, json: bool) -> None:
    """Print a result as JSON, or in lines."""
    if json:
        print_json(result)
    else:
        for line in lines:
            print_line(line)


# Warnings as people read them on a terminal.


@contextmanager
def warnings_in_lines(options: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """A warning is one line on the standard error, as an error is, however often it is given."""
    shown = set[str]()

    def show(message: Any, *_: Any, **__: Any) -> None:
        line = f"warning: {in_options(message, options)}"
        if line not in shown:
            shown.add(line)
            note(line)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


# How long work takes.


@contextmanager
def _showing_progress() -> Iterator[None]:
    """Show long work as a bar on a terminal; elsewhere a line says how long it takes."""
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    with bar_on_terminal() if is_terminal else forecasts_to(note):
        yield


_TYPED = "localparity.typed"
_URL = re.compile(r"([A-Za-z][\w+.-]+:)+/")


def local_path(path: Path, param: Any) -> Path:
    """A path on this machine, with the home folder for ~, which a shell leaves in --out=~/scores.csv."""
    if _URL.match(path.as_posix()):
        raise typer.BadParameter(
            f"must be a path on this machine, got {shown_address(str(path))!r}", param=param
        )
    try:
        return path.expanduser()
    except RuntimeError as error:  # there is no such user
        raise typer.BadParameter(f"{str(path)!r} cannot be used: {error}", param=param) from error


def typed_command(ctx: typer.Context) -> str:
    """The command that is running, as it was typed."""
    return str(ctx.meta[_TYPED])


class Command(TyperCommand):
    """A command to which a second value of an option is an error, where the parser would keep the last.

    A paragraph of its help is as wide as the terminal, however the docstring breaks it.
    """

    def __init__(self, name: str | None, *, help: str | None = None, **options: Any) -> None:
        super().__init__(name, help=help and re.sub(r"(?<!\n)\n(?!\n)", " ", cleandoc(help)), **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words that were typed."""
        ctx.meta[_TYPED] = shlex.join(["localparity", str(self.name), *map(shown_address, args)])
        parsed: Any = self.make_parser(ctx).parse_args(args=list(args))
        for word in args:
            if word.encode(errors="ignore").decode() != word:
                ctx.fail(f"{word!r} must be UTF-8; rename the file if it is one")
        given = parsed[2]  # in the order in which they were typed, and as often
        if not any(param.is_eager for param in given):  # --help is about no value
            for param in given:
                times = sum(other is param for other in given)
                if times > 1 and param.param_type_name == "option" and not param.multiple:
                    limit = "it can be given once" if param.is_flag else "it takes one value"
                    ctx.fail(f"{param.opts[0]} was given {times} times; {limit}")
        rest = super().parse_args(ctx, args)
        for param in self.params:
            if isinstance(ctx.params.get(param.name), Path):
                ctx.params[param.name] = local_path(ctx.params[param.name], param)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run, with what the library complains of in the command's own words."""
        options = options_of(self.params)
        try:
            with warnings_in_lines(options), _showing_progress():
                return super().invoke(ctx)
        except (ValueError, ImportError, OSError) as error:
            ctx.fail(in_options(error, options) or type(error).__name__)


class Commands(typer.Typer):
    """An application all of whose commands are such."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Add a command, as `typer.Typer.command` does."""
        return super().command(name, **{"cls": Command, **options})
