"""What keeps the house small: one name for one thing, modules that several use, and few files behind one number."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
MOST_SINGLE_IMPORTERS = 30
MOST_FILES_OF_MCDP = 25
SHARED_FUNCTIONS: dict[str, str] = {}
"""Public functions of one name in several files, and why; a command has the name of the function that it calls."""


def module_name(path: Path) -> str:
    """The dotted name of a file.

    Examples
    --------
    >>> module_name(SRC / "localparity" / "metrics" / "__init__.py")
    'localparity.metrics'
    """
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted((SRC / "localparity").rglob("*.py"))}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def modules_that_define(kind: type[ast.AST]) -> dict[str, list[str]]:
    """The names at the top of more than one module, and these modules."""
    modules: dict[str, set[str]] = defaultdict(set)
    for module in MODULES:
        for node in tree_of(module).body:
            if isinstance(node, kind):
                modules[node.name].add(module)  # type: ignore[attr-defined]
    return {name: sorted(names) for name, names in modules.items() if len(names) > 1}


def is_command(name: str, module: str) -> bool:
    return module == f"localparity.cli.{name}"


def test_no_two_classes_share_a_name() -> None:
    assert modules_that_define(ast.ClassDef) == {}


def test_no_two_public_functions_share_a_name() -> None:
    shared = {
        name: modules
        for name, modules in modules_that_define(ast.FunctionDef).items()
        if not name.startswith("_") and sum(not is_command(name, module) for module in modules) > 1
    }
    assert {name: modules for name, modules in shared.items() if name not in SHARED_FUNCTIONS} == {}
    assert [name for name in SHARED_FUNCTIONS if name not in shared] == []


def imports_of(tree: ast.AST) -> Iterator[str]:
    """The modules of the package that a module imports, at its top or inside a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("localparity"):
            for name in [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]:
                if name in MODULES:
                    yield name


def test_few_modules_have_a_single_importer() -> None:
    """One that only one other imports is part of it, unless it holds compiled loops or an optional dependency."""
    importers: dict[str, set[str]] = defaultdict(set)
    for module in MODULES:
        for name in imports_of(tree_of(module)):
            importers[name] |= {module} - {name}
    single = [
        f"{name}: {next(iter(importers[name]))}"
        for name, path in MODULES.items()
        if len(importers[name]) == 1 and path.name != "__init__.py" and not name.endswith("kernels")
    ]
    assert len(single) <= MOST_SINGLE_IMPORTERS, single


def test_one_number_needs_few_files() -> None:
    program = (
        "import sys, localparity as lp; lp.mcdp(None, [0.1, 0.2], sensitive_features=['a', 'b']); "
        "print(*sorted(name for name in sys.modules if name.split('.')[0] == 'localparity'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert {"localparity", "localparity.metrics._mcdp"} <= set(loaded)
    assert len(loaded) <= MOST_FILES_OF_MCDP, loaded


@pytest.mark.parametrize(
    "code",
    ["from localparity.metrics import _mcdp", "def f():\n    from localparity.metrics._mcdp import mcdp"],
)
def test_imports_are_found(code: str) -> None:
    assert "localparity.metrics._mcdp" in set(imports_of(ast.parse(code)))
