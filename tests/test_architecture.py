"""Each room of the package keeps what is private to it: its names, its methods and its objects' attributes.

A room is a package or module right under `localparity`. The order of imports between rooms is import-linter's to check.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
FILES = sorted((SRC / "localparity").rglob("*.py"))
OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
OWN = {"self", "cls", "mcs"}
CONTEXT = "ctx"  # what torch hands to an autograd function to keep things on


def room_of(path: Path) -> str:
    """The room that a file belongs to.

    Examples
    --------
    >>> room_of(SRC / "localparity" / "models" / "trees" / "_booster.py")
    'models'
    """
    return path.relative_to(SRC / "localparity").parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def is_module(dotted: str) -> bool:
    path = SRC.joinpath(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def foreign_private_imports(tree: ast.AST, room: str) -> Iterator[tuple[int, str]]:
    """Private names, other than modules, that are imported from another room."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("localparity."):
            module = str(node.module)
            for name in (alias.name for alias in node.names):
                if is_private(name) and module.split(".")[1] != room and not is_module(f"{module}.{name}"):
                    yield node.lineno, f"{module}.{name}"


def members(tree: ast.AST) -> Iterator[str]:
    """What modules and classes define: functions and methods, globals and fields, attributes of self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    yield statement.name
                elif isinstance(statement, ast.Assign | ast.AnnAssign):
                    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                    yield from (
                        each.id
                        for target in targets
                        for each in ast.walk(target)
                        if isinstance(each, ast.Name)
                    )
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node.value):
            yield node.attr


def is_own(value: ast.expr) -> bool:
    """Whether an object is the one whose method runs."""
    is_super = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
    return is_super or (isinstance(value, ast.Name) and value.id in OWN)


def private_accesses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Private attributes and methods of objects other than self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            yield node.lineno, node.attr


def attributes_set(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Attributes that functions set on what they are given, as ``parameter.name = value``."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            given = (
                {argument.arg for argument in [*function.args.args, *function.args.kwonlyargs]}
                - OWN
                - {CONTEXT}
            )
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.ctx, ast.Store)
                    and isinstance(node.value, ast.Name)
                    and node.value.id in given
                ):
                    yield node.lineno, node.attr


@cache
def rooms_that_define() -> dict[str, set[str]]:
    """The rooms in which each name is a member of something."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in FILES:
        for name in members(tree_of(path)):
            found[name].add(room_of(path))
    return found


def test_private_names_stay_in_their_room() -> None:
    found = [
        f"{path.relative_to(SRC)}:{line} {name}"
        for path in FILES
        for line, name in foreign_private_imports(tree_of(path), room_of(path))
    ]
    assert found == []


def test_private_methods_and_attributes_stay_in_their_room() -> None:
    found = [
        f"{path.relative_to(SRC)}:{line} .{name}"
        for path in FILES
        for line, name in private_accesses(tree_of(path))
        if name not in OF_NAMED_TUPLES and room_of(path) not in rooms_that_define().get(name, set())
    ]
    assert found == []


def test_attributes_are_set_in_the_file_of_their_class() -> None:
    found = [
        f"{path.relative_to(SRC)}:{line} .{name}"
        for path in FILES
        for line, name in attributes_set(tree_of(path))
        if name in rooms_that_define() and name not in members(tree_of(path))
    ]
    assert found == []


def numba_imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where numba is imported, and whether with the module (0 columns in) or inside a function."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        if any(name.split(".")[0] == "numba" for name in names):
            yield node.col_offset, "numba"


def test_one_module_imports_numba_and_only_when_it_compiles() -> None:
    found = {room_of(path): column for path in FILES for column, _ in numba_imports(tree_of(path))}
    assert found.keys() == {"_compiled"}
    assert min(found.values()) > 0


@pytest.mark.parametrize(
    ("check", "code", "found"),
    [
        (lambda tree: foreign_private_imports(tree, "audit"), "from localparity.metrics._mcdp import _x", ["localparity.metrics._mcdp._x"]),
        (lambda tree: foreign_private_imports(tree, "metrics"), "from localparity.metrics._mcdp import _x", []),
        (lambda tree: foreign_private_imports(tree, "audit"), "from localparity.metrics import _mcdp", []),
        (private_accesses, "def f(model):\n    model._fit()", ["_fit"]),
        (private_accesses, "def f(self):\n    self._fit(super()._x)", []),
        (attributes_set, "def f(model, *, n):\n    model.n_ = n", ["n_"]),
        (numba_imports, "import numpy\nfrom numba import njit\nimport numba.core as core", ["numba", "numba"]),
        (attributes_set, "def f(self, n):\n    self.n_ = n\n    model = g()\n    model.n_ = n", []),
    ],
)  # fmt: skip
def test_the_checks_find_what_they_look_for(check, code: str, found: list[str]) -> None:  # type: ignore[no-untyped-def]
    assert [name for _, name in check(ast.parse(code))] == found
