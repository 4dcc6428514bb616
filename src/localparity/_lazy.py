"""Names of a package that are imported on first use, listed once, in the package's stub."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple


class LazyNames(NamedTuple):
    """The `__getattr__`, `__dir__` and `__all__` of a module whose names are imported on first use."""

    getattr: Callable[[str], Any]
    dir: Callable[[], list[str]]
    all: list[str]


def lazy_names(module: str, file: str) -> LazyNames:
    """Return what a module, by its `__name__` and `__file__`, needs to import its names on first use.

    The names are those that the stub beside it (``.pyi``) imports: they are written once, for type checkers
    too.

    Examples
    --------
    >>> import localparity
    >>> names = lazy_names("localparity", localparity.__file__)
    >>> "mcdp" in names.all, names.getattr("mcdp").__name__
    (True, 'mcdp')
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes = {
        alias.name: str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def getattr_(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        is_module = homes[name] == module
        value = import_module(f"{module}.{name}") if is_module else getattr(import_module(homes[name]), name)
        vars(sys.modules[module])[name] = value  # found before __getattr__ from then on
        return value

    public = sorted(name for name in homes if not name.startswith("_"))

    def dir_() -> list[str]:
        return sorted({*public, *(name for name in vars(sys.modules[module]) if name.startswith("__"))})

    return LazyNames(getattr_, dir_, public)
