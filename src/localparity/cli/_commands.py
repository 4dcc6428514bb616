"""Commands that take each option once, unless it is a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand


class StrictCommand(TyperCommand):
    """A command to which a second value of an option is an error, where the parser would keep the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words that were typed."""
        parsed: Any = self.make_parser(ctx).parse_args(args=list(args))
        given = parsed[2]  # in the order in which they were typed, and as often
        if not any(param.is_eager for param in given):  # --help is about no value
            for param in given:
                times = sum(other is param for other in given)
                if times > 1 and param.param_type_name == "option" and not param.multiple:
                    limit = "it can be given once" if param.is_flag else "it takes one value"
                    ctx.fail(f"{param.opts[0]} was given {times} times; {limit}")
        return super().parse_args(ctx, args)


class Commands(typer.Typer):
    """An application all of whose commands are strict."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Add a command, as `typer.Typer.command` does."""
        return super().command(name, **{"cls": StrictCommand, **options})
