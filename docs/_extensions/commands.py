"""``.. commands::`` describes every command with its arguments and options, as ``--help`` does."""

from __future__ import annotations

import inspect
from typing import Any, Literal, get_args, get_origin

import typer
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from localparity.cli._app import app as localparity_app


class Commands(Directive):
    """A section for each command."""

    def run(self) -> list[nodes.Node]:
        """The sections."""
        top = typer.main.get_command(localparity_app)
        return [_section(name, command) for name, command in _leaves("localparity", top)]


def _leaves(name: str, command: Any) -> list[tuple[str, Any]]:
    parts = getattr(command, "commands", None)
    if parts is None:
        return [(name, command)]
    return [leaf for part in sorted(parts) for leaf in _leaves(f"{name} {part}", parts[part])]


def _section(name: str, command: Any) -> nodes.section:
    section = nodes.section(ids=[nodes.make_id(name)])
    section += nodes.title("", name)
    for text in inspect.cleandoc(command.help or "").split("\n\n"):
        section += _paragraph(text)
    terms = nodes.definition_list()
    for parameter in command.params:
        if parameter.name == "help":
            continue
        option = parameter.param_type_name == "option"
        shown = ", ".join([*parameter.opts, *parameter.secondary_opts]) if option else parameter.name.upper()
        notes = ["required"] if parameter.required else []
        if choices := _choices(parameter.type_descriptor.annotation):
            notes.append("one of " + ", ".join(choices))
        if (
            option
            and parameter.default not in (None, "", (), [])
            and parameter.default is not False
            and not parameter.required
        ):
            notes.append(f"default: {parameter.default}")
        text = (parameter.help or "") + (f" ({'; '.join(notes)})" if notes else "")
        term = nodes.term("", "", nodes.literal("", shown))
        terms += nodes.definition_list_item("", term, nodes.definition("", _paragraph(text)))
    section += terms
    return section


def _choices(annotation: Any) -> list[str]:
    """The words that an option or argument can be."""
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    return [word for part in get_args(annotation) for word in _choices(part)]


def _paragraph(text: str) -> nodes.paragraph:
    """A text, in which words between backticks are code."""
    parts = text.split("`")
    pieces = (nodes.literal("", part) if i % 2 else nodes.Text(part) for i, part in enumerate(parts))
    return nodes.paragraph("", "", *pieces)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
