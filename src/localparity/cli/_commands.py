"""Commands that take each option once, unless it is a list, and whose messages name their options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from localparity._io._connection import without_password
from localparity._io._forecast import forecasts_to
from localparity.cli._messages import in_options, options_of
from localparity.cli._panels import sort_into_panels
from localparity.cli._printing import note
from localparity.cli._warnings import warnings_in_lines

_TYPED = "localparity.typed"
_URL = re.compile(r"[A-Za-z][\w+.-]+:/")


def local_path(path: Path, param: Any) -> Path:
    """A path on this machine, with the home folder for ~, which a shell leaves in --out=~/scores.csv."""
    if _URL.match(path.as_posix()):
        raise typer.BadParameter(f"must be a path on this machine, got {str(path)!r}", param=param)
    try:
        return path.expanduser()
    except RuntimeError as error:  # there is no such user
        raise typer.BadParameter(f"{str(path)!r} cannot be used: {error}", param=param) from error


def typed_command(ctx: typer.Context) -> str:
    """The command that is running, as it was typed."""
    return str(ctx.meta[_TYPED])


class Command(TyperCommand):
    """A command to which a second value of an option is an error, where the parser would keep the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words that were typed."""
        ctx.meta[_TYPED] = shlex.join(["localparity", str(self.name), *map(without_password, args)])
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

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with many options in panels."""
        self.params = sort_into_panels(self.params)
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run, with what the library complains of in the command's own words."""
        options = options_of(self.params)
        try:
            with warnings_in_lines(options), forecasts_to(note):
                return super().invoke(ctx)
        except (ValueError, ImportError, OSError) as error:
            ctx.fail(in_options(str(error), options) or type(error).__name__)


class Commands(typer.Typer):
    """An application all of whose commands are such."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Add a command, as `typer.Typer.command` does."""
        return super().command(name, **{"cls": Command, **options})
