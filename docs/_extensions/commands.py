"""A page for each command, reference/generated/commands/NAME, with its options as in ``--help``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from localparity.cli._app import app as localparity_app

FOLDER = Path("reference", "generated", "commands")

# How each command is typed, and the page that explains it.
EXAMPLES = {
    "audit": (
        "audit scores.csv --score p --group sex --max-mcdp 0.1 --report audit.html",
        "/start/audit_a_file",
    ),
    "compare": ("compare people.csv --target income --group sex --max-mcdp 0.05", "/how_to/which_model"),
    "demo": ("demo", "/start/install"),
    "explain": ("explain people.csv --score p --group sex", "/how_to/explain"),
    "fetch": ("fetch adult", "/research/paper"),
    "monitor": ("monitor append watch today.csv --score p --group sex --max-mcdp 0.1", "/how_to/monitoring"),
    "plan": ("plan --group-sizes 300,500", "/how_to/how_many_people"),
    "predict": ("predict model new.csv --out scores.csv", "/how_to/train"),
    "repair": ("repair people.csv --target income --group sex --max-mcdp 0.1 --out model", "/how_to/repair"),
    "reproduce": ("reproduce adult --preset paper --store runs", "/research/paper"),
    "train": ("train people.csv --target income --group sex --max-mcdp 0.1 --out model", "/how_to/train"),
    "verify": ("verify audit.zip --data scores.csv", "/how_to/pipelines"),
}


def write_pages(app: Sphinx) -> None:
    """Write a page for each command; a page that is up to date keeps its time stamp."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name in typer.main.get_command(localparity_app).commands:
        page, title = folder / f"{name}.rst", f"localparity {name}"
        example, explained = EXAMPLES[name]
        text = f"""{title}
{"=" * len(title)}

.. code-block:: text

   localparity {example}

See :doc:`{explained}`.

.. command:: {name}
"""
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


class Command(Directive):
    """What a command does, then its arguments and options; each of its parts has a section.

    Parts with the same options, such as the data sets of `reproduce`, share one.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The text and the sections."""
        name = self.arguments[0]
        command = typer.main.get_command(localparity_app).commands[name]
        parts: dict[str, Any] = getattr(command, "commands", {})
        if not parts:
            return list(_content(command))
        alike: dict[tuple[str, ...], list[str]] = {}
        for part, its in parts.items():
            alike.setdefault(tuple(f"{each.name} {each.help}" for each in its.params), []).append(part)
        found: list[nodes.Node] = list(_paragraphs(command))
        for names in alike.values():
            title = f"{name} {', '.join(names)}"
            section = nodes.section(ids=[nodes.make_id(title)])
            section += [nodes.title("", title), *_content(parts[names[0]])]
            found.append(section)
        return found


def _paragraphs(command: Any) -> Iterator[nodes.paragraph]:
    return map(_paragraph, inspect.cleandoc(command.help or "").split("\n\n"))


def _content(command: Any) -> Iterator[nodes.Node]:
    """What a command does, and its options under the headings of its help."""
    yield from _paragraphs(command)
    headings: dict[str, nodes.definition_list] = {}
    for parameter in command.params:
        if parameter.name != "help":
            terms = headings.setdefault(_heading(parameter), nodes.definition_list())
            terms += _described(parameter)
    for heading, terms in headings.items():
        yield nodes.rubric("", heading)
        yield terms


def _heading(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    return getattr(parameter, "rich_help_panel", None) or "Options"


def _described(parameter: Any) -> nodes.definition_list_item:
    is_option = parameter.param_type_name == "option"
    names = [*parameter.opts, *parameter.secondary_opts] if is_option else [parameter.name.upper()]
    notes = ["required"] if parameter.required else []
    if choices := _choices(parameter.type_descriptor.annotation):
        notes.append("one of " + ", ".join(choices))
    has_default = parameter.default not in (None, "", (), []) and parameter.default is not False
    if is_option and has_default and not parameter.required:
        notes.append(f"default: {parameter.default}")
    text = (parameter.help or "") + (f" ({'; '.join(notes)})" if notes else "")
    term = nodes.term("", "", nodes.literal("", ", ".join(names)))
    return nodes.definition_list_item("", term, nodes.definition("", _paragraph(text)))


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
    app.add_directive("command", Command)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
