"""The public names: what they are called with, and that each is told of with an example."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from public_names import SNAPSHOT, lines, public_names

NAMES = public_names()

WITHOUT_EXAMPLE = {
    "localparity.WorstSplit",
    "localparity.boosting.Trial",
    "localparity.comparison.Comparison",
    "localparity.comparison.Outcome",
    "localparity.training.METHODS",
    "localparity.training.Rows",
}
"""What the examples of the functions that return or take it show, and a table of names."""


def test_they_are_those_that_were_agreed_on() -> None:
    expected, found = SNAPSHOT.read_text().splitlines(), list(lines())
    assert found == expected, (
        "the public names, or how they are called, have changed; if that is meant, run "
        "`python tests/public_names.py` and tell of it in CHANGELOG.md"
    )


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_is_told_of_with_an_example(name: str) -> None:
    doc = inspect.getdoc(NAMES[name])
    assert doc
    is_warning = inspect.isclass(NAMES[name]) and issubclass(NAMES[name], Warning)
    assert (">>>" in doc) != (is_warning or name in WITHOUT_EXAMPLE)


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
