"""The house rules that the source itself shows: rooms keep what is private, one name is one thing, functions are short.

A room is a package or module right under `localparity`, and keeps its private names, methods and attributes to itself. The
order of imports between rooms is import-linter's to check.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
FILES = sorted((SRC / "localparity").rglob("*.py"))
OTHER_FILES = sorted(path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))

MOST_LINES_OF_A_FUNCTION = 60
MOST_POSITIONAL_PARAMETERS = 5
MOST_SINGLE_IMPORTERS = 30
MOST_FILES_OF_MCDP = 25
SHARED_FUNCTIONS = dict.fromkeys(
    ("count_places", "count_parts", "collect_rows"),
    "the torch engine counts by the module for its device: both have the same functions",
)
"""Public functions of one name in several files, and why; a command has the name of the function that it calls."""

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


def module_name(path: Path) -> str:
    """The dotted name of a file.

    Examples
    --------
    >>> module_name(SRC / "localparity" / "metrics" / "__init__.py")
    'localparity.metrics'
    """
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in FILES}


def modules_that_define(kind: type[ast.AST]) -> dict[str, list[str]]:
    """The names at the top of more than one module, and these modules."""
    modules: dict[str, set[str]] = defaultdict(set)
    for module in MODULES:
        for node in tree_of(MODULES[module]).body:
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
        for name in imports_of(tree_of(MODULES[module])):
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


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """The functions of a file and how many lines each has beside its parameters and its docstring.

    The parameters of a command are the table of its options, of which there may be many.
    """
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            has_docstring = ast.get_docstring(node, clean=False) is not None
            body = node.body[has_docstring:] or node.body
            yield node.name, (node.end_lineno or 0) - body[0].lineno + 1


def test_no_function_is_too_long() -> None:
    lengths = {
        f"{path.relative_to(ROOT)}::{name}": lines
        for path in (*FILES, *OTHER_FILES)
        for name, lines in functions(path)
    }
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}


def positional(path: Path) -> Iterator[tuple[str, int]]:
    """The functions of a file and how many arguments each takes by position, itself or its class not counted.

    Compiled kernels take arrays by position alone, and typer hands a command its options by name.
    """
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_compiled = any(ast.unparse(each) == "compiled" for each in node.decorator_list)
            is_option_table = path.parent.name == "cli" and not node.name.startswith("_")
            if not is_compiled and not is_option_table:
                names = [argument.arg for argument in [*node.args.posonlyargs, *node.args.args]]
                yield node.name, len([name for name in names if name not in ("self", "cls")])


def test_no_function_takes_many_arguments_by_position() -> None:
    counts = {
        f"{path.relative_to(ROOT)}::{name}": count for path in FILES for name, count in positional(path)
    }
    assert len(counts) > 500
    assert {name: count for name, count in counts.items() if count > MOST_POSITIONAL_PARAMETERS} == {}


@pytest.mark.parametrize(
    ("check", "code", "found"),
    [
        (lambda tree: foreign_private_imports(tree, "audit"), "from localparity.metrics._mcdp import _x", ["localparity.metrics._mcdp._x"]),
        (lambda tree: foreign_private_imports(tree, "metrics"), "from localparity.metrics._mcdp import _x", []),
        (lambda tree: foreign_private_imports(tree, "audit"), "from localparity.metrics import _mcdp", []),
        (private_accesses, "def f(model):\n    model._fit()", ["_fit"]),
        (private_accesses, "def f(self):\n    self._fit(super()._x)", []),
        (attributes_set, "def f(model, *, n):\n    model.n_ = n", ["n_"]),
        (lambda tree: enumerate(imports_of(tree)), "from localparity.metrics import _mcdp", ["localparity.metrics", "localparity.metrics._mcdp"]),
        (lambda tree: enumerate(imports_of(tree)), "def f():\n    from localparity.metrics._mcdp import mcdp", ["localparity.metrics._mcdp"]),
        (numba_imports, "import numpy\nfrom numba import njit\nimport numba.core as core", ["numba", "numba"]),
        (attributes_set, "def f(self, n):\n    self.n_ = n\n    model = g()\n    model.n_ = n", []),
    ],
)  # fmt: skip
def test_the_checks_find_what_they_look_for(check, code: str, found: list[str]) -> None:  # type: ignore[no-untyped-def]
    assert [name for _, name in check(ast.parse(code))] == found
