"""All commands: each is imported when it is called, and help on all of them imports none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from importlib import import_module
from importlib.machinery import PathFinder
from inspect import getdoc
from types import CodeType, FunctionType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from localparity.cli._commands import Commands

_NAMES = ("audit", "compare", "demo", "fetch", "monitor", "plan", "train", "repair", "predict", "reproduce")


class Group(TyperGroup):
    """The commands, each a function or an application in the module of its name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "commands": _Imported()})

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with what each command says of itself read rather than run."""
        listed = copy(self)
        listed.commands = {name: TyperCommand(name, help=_docstring(name)) for name in _NAMES}
        super(Group, listed).format_help(ctx, formatter)


class _Imported(Mapping[str, Any]):
    """The commands by their names, imported when they are asked for."""

    def __getitem__(self, name: str) -> Any:
        if name not in _NAMES:
            raise KeyError(name)
        module = import_module(f"{__package__}.{name}")
        app = getattr(module, "app", None)
        if app is None:
            app = Commands(add_completion=False)
            app.command()(getattr(module, name))
        return typer.main.get_command(app)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


def _docstring(name: str) -> str | None:
    """The docstring of a command's function, from the code of its module."""
    # Not the hook of a host such as pytest, whose loader has no code to read.
    spec: Any = PathFinder.find_spec(f"{__package__}.{name}", import_module(str(__package__)).__path__)
    parts = spec.loader.get_code(spec.name).co_consts
    (code,) = (part for part in parts if isinstance(part, CodeType) and part.co_name == name)
    return getdoc(FunctionType(code, {}))
