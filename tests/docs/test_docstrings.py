"""Every public function, class and method describes its parameters and what it returns."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import pytest

from public_names import public_names

_FROM_ELSEWHERE = re.compile(
    r"set_\w+_request$|^(forward|fit_transform|set_output|get_params|set_params|score)$"
)


def documented() -> Iterator[tuple[str, Any, str]]:
    """What has parameters, with the docstring that describes them."""
    for name, value in public_names().items():
        if inspect.isclass(value):
            if not is_dataclass(value) and not issubclass(value, tuple | Warning):
                yield name, value, value.__doc__ or ""
            for member, found in vars(value).items():
                function = found.__func__ if isinstance(found, classmethod | staticmethod) else found
                if (
                    inspect.isfunction(function)
                    and not member.startswith("_")
                    and not _FROM_ELSEWHERE.match(member)
                ):
                    yield f"{name}.{member}", function, function.__doc__ or ""
        elif inspect.isfunction(value):
            yield name, value, value.__doc__ or ""


def section(doc: str, title: str) -> str:
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", inspect.cleandoc(doc), re.M | re.S)
    return found[1] if found else ""


@pytest.mark.parametrize(
    ("value", "doc"), [pytest.param(value, doc, id=name) for name, value, doc in documented()]
)
def test_parameters_and_results_are_described(value: Any, doc: str) -> None:
    assert doc, "there is no docstring"
    described = re.findall(r"^(\*{0,2}\w[^:\n]*)", section(doc, "Parameters"), re.M)
    names = {name for entry in described for name in re.split(r",\s*", entry.strip())}
    signature = inspect.signature(value)
    asked = [
        {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + name
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
    ]
    assert [name for name in asked if name not in names] == []
    returns = str(signature.return_annotation)
    if asked and not inspect.isclass(value) and returns not in ("None", "<class 'inspect._empty'>"):
        assert section(doc, "Returns"), "there is no section Returns"
