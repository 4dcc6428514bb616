"""What other people's code calls: every public name and how it is called, a line each.

Run ``python tests/support/public_names.py`` from the root of the repository to write `public_names.txt` anew after a
change that is meant, and tell of it in CHANGELOG.md.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import localparity
from localparity import integrations, results

SNAPSHOT = Path(__file__).with_name("public_names.txt")
RESULTS = f"{results.__name__}."
EXTENDERS = ("localparity.engines.protocol", "localparity.models.networks")
"""The modules with what one needs to add an engine or a training method."""


def modules() -> list[ModuleType]:
    """The package, the types that calls return, the modules that the package lists, and those of extenders and hosts."""
    listed = [getattr(localparity, name) for name in localparity.__all__]
    public = [value.__name__ for value in listed if inspect.ismodule(value) and value is not results]
    public += [name for name in EXTENDERS if find_spec(name)]
    hosts = [part.name for part in pkgutil.iter_modules(integrations.__path__, "localparity.integrations.")]
    public += [name for name in hosts if not name.rpartition(".")[2].startswith("_")]
    return [localparity, results, *map(import_module, public)]


def public_names() -> dict[str, Any]:
    """What each public name stands for, by the first module that has it."""
    names: dict[str, Any] = {}
    for module in modules():
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.ismodule(value) and all(value is not other for other in names.values()):
                names[f"{module.__name__}.{name}"] = value
    return names


def lines() -> Iterator[str]:
    """How every public name is called, and every public method and property of a class; the results come last."""
    for name, value in sorted(
        public_names().items(), key=lambda item: (item[0].startswith(RESULTS), item[0])
    ):
        yield f"{name}{_call(value)}"
        if inspect.isclass(value):
            yield from sorted(f"{name}.{member}" for member in _members(value))


def _members(value: type) -> Iterator[str]:
    """The public methods and properties that the package itself defines."""
    for name in dir(value):
        owner = next((base for base in value.__mro__ if name in vars(base)), object)
        if not name.startswith("_") and owner.__module__.startswith("localparity."):
            found = vars(owner)[name]
            is_called = callable(getattr(value, name)) and not isinstance(found, property)
            yield name + (_call(getattr(value, name)) if is_called else "")


def _call(value: Any) -> str:
    """The names, kinds and defaults of the parameters."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


if __name__ == "__main__":
    SNAPSHOT.write_text("".join(f"{line}\n" for line in lines()))
