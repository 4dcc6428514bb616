"""The reference has every public name, and no other."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from public_names import public_names

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def listed_names() -> list[str]:
    """The dotted names that the pages list."""
    found = []
    for page in sorted(REFERENCE.glob("*.rst")):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            elif (match := re.match(r"(?:   |\.\. data:: )(\w+)$", line)) and module:
                found.append(f"{module}.{match[1]}")
    return found


def value_of(name: str) -> Any:
    module, _, short = name.rpartition(".")
    try:
        return getattr(import_module(module), short)
    except (ImportError, AttributeError):
        return None


def test_the_reference_lists_the_public_names() -> None:
    public, listed = public_names(), {name: value_of(name) for name in listed_names()}
    missing = [name for name, value in public.items() if not any(value is one for one in listed.values())]
    unknown = [name for name, value in listed.items() if not any(value is one for one in public.values())]
    assert (missing, unknown) == ([], [])
    assert len(listed) == len(listed_names()) == len(public)
