"""The reference has every public name, and no other."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from public_names import public_names

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "index.rst"


def test_the_reference_lists_the_public_names() -> None:
    listed: list[Any] = []
    module = ""
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif (found := re.match(r"(?:   |\.\. data:: )(\w+)$", line)) and module:
            listed.append(getattr(import_module(module), found[1]))
    missing = [name for name, value in public_names().items() if not any(value is one for one in listed)]
    assert not missing
    assert len(listed) == len(public_names())
