"""Names of a package that are imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names are imported on first use.

    Parameters
    ----------
    package : str
        The package's `__name__`.
    modules : mapping
        The names that each module defines, by the module's path below the package. A module without names
        is itself the name.

    Returns
    -------
    tuple of callables

    Examples
    --------
    >>> getattr_, dir_ = lazy_names("json", {"decoder": ["JSONDecoder"], "tool": []})
    >>> getattr_("JSONDecoder").__name__, getattr_("tool").__name__
    ('JSONDecoder', 'json.tool')
    """
    homes = {name: module for module, names in modules.items() for name in names or [module]}

    def getattr_(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{homes[name]}")
        found = getattr(module, name) if modules[homes[name]] else module
        vars(sys.modules[package])[name] = found  # which is looked up first from then on
        return found

    def dir_() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return getattr_, dir_
