"""The public names: what they are called with, and that each is told of with an example."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import localparity
from public_names import RESULTS, SNAPSHOT, lines, public_names

NAMES = public_names()
MOST_NAMES, MOST_AT_THE_TOP = 100, 40
REFERENCE = Path(__file__).parents[1] / "docs" / "reference"


def test_they_are_those_that_were_agreed_on() -> None:
    assert list(lines()) == SNAPSHOT.read_text().splitlines(), (
        "the public names, or how they are called, have changed; if that is meant, run "
        "`python tests/support/public_names.py` and tell of it in CHANGELOG.md"
    )


def test_they_are_few_beside_the_types_that_calls_return() -> None:
    constructed_or_called = [name for name in NAMES if not name.startswith(RESULTS)]
    assert len(constructed_or_called) <= MOST_NAMES, constructed_or_called
    assert len(localparity.__all__) <= MOST_AT_THE_TOP, localparity.__all__


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_is_told_of_with_an_example(name: str) -> None:
    value = NAMES[name]
    is_table = not inspect.isclass(value) and not inspect.isfunction(value)
    doc = on_its_page(name) if is_table else inspect.getdoc(value)
    assert doc
    assert ">>>" in doc


def on_its_page(name: str) -> str | None:
    """What the reference says of a table, which has no docstring of its own; examples on pages run too."""
    short = name.rpartition(".")[2]
    pages = "\n".join(path.read_text() for path in sorted(REFERENCE.glob("*.rst")))
    found = re.search(rf"^\.\. data:: {short}\n(.*?)^\S", pages, re.DOTALL | re.MULTILINE)
    return found[1] if found else None


FUNCTIONS = {name: value for name, value in NAMES.items() if inspect.isfunction(value)}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_parameter_of_a_function_is_described(name: str) -> None:
    signature = inspect.signature(FUNCTIONS[name])
    assert set(described(FUNCTIONS[name])) == {
        f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name
        for parameter in signature.parameters.values()
    }


def described(function: Any) -> list[str]:
    """The parameters that a docstring describes."""
    section = re.search(r"Parameters\n-+\n(.*?)(\n\n|\Z)", inspect.getdoc(function) or "", re.DOTALL)
    entries = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", section.group(1), re.MULTILINE) if section else []
    return [name.strip() for entry in entries for name in entry.split(",")]
