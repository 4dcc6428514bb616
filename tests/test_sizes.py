"""One step per function: none grows past what can be read at once. A file is as long as its idea."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
MOST_LINES_OF_A_FUNCTION = 60
MOST_POSITIONAL_PARAMETERS = 5


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """The functions of a file and how many lines each has beside its parameters and its docstring.

    The parameters of a command are the table of its options, of which there may be many.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            told = ast.get_docstring(node, clean=False) is not None
            body = node.body[told:] or node.body
            yield node.name, (node.end_lineno or 0) - body[0].lineno + 1


def test_no_function_is_too_long() -> None:
    found = {f"{path.relative_to(ROOT)}::{name}": lines for path in FILES for name, lines in functions(path)}
    assert {name: lines for name, lines in found.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}


def positional(path: Path) -> Iterator[tuple[str, int]]:
    """The functions of a file and how many arguments each takes by position, itself or its class not counted.

    Compiled kernels take arrays by position alone, and typer hands a command its options by name.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_compiled = any(ast.unparse(each) == "compiled" for each in node.decorator_list)
            is_command = path.parent.name == "cli" and not node.name.startswith("_")
            if not is_compiled and not is_command:
                names = [argument.arg for argument in [*node.args.posonlyargs, *node.args.args]]
                yield node.name, len([name for name in names if name not in ("self", "cls")])


def test_no_function_takes_many_arguments_by_position() -> None:
    source = [path for path in FILES if path.is_relative_to(ROOT / "src")]
    found = {
        f"{path.relative_to(ROOT)}::{name}": count for path in source for name, count in positional(path)
    }
    assert len(found) > 500
    assert {name: count for name, count in found.items() if count > MOST_POSITIONAL_PARAMETERS} == {}
