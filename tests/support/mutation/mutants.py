"""The mutants of a file."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS = (
    *("Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt"),
    *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
)
_ARITHMETIC = (
    *("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Div", "Pow_Mul"),
    *("LShift_RShift", "RShift_LShift", "BitAnd_BitOr", "BitOr_BitAnd"),
)
_UNARY = ("Delete_USub", "Delete_Not", "Delete_Invert")

OPERATORS = (
    *(f"core/ReplaceComparisonOperator_{pair}" for pair in _COMPARISONS),
    *(f"core/ReplaceBinaryOperator_{pair}" for pair in _ARITHMETIC),
    *(f"core/ReplaceUnaryOperator_{pair}" for pair in _UNARY),
    "core/NumberReplacer",
    "core/AddNot",
    "core/ReplaceTrueWithFalse",
    "core/ReplaceFalseWithTrue",
    "core/ReplaceAndWithOr",
    "core/ReplaceOrWithAnd",
    "core/ReplaceContinueWithBreak",
    "core/ReplaceBreakWithContinue",
    "core/ZeroIterationForLoop",
    "core/ExceptionReplacer",
    "core/RemoveDecorator",
)
"""The operators of cosmic-ray in use: a comparison's boundary and its opposite, of arithmetic the inverse."""

_IDLE = ("compiled", "overload")


@dataclass(frozen=True)
class Mutant:
    """One change of one line.

    `was` and `now` are the lines that differ; `nth` tells apart the changes that read the same.
    """

    file: str
    line: int
    function: str
    was: str
    now: str
    nth: int
    source: str

    @property
    def digest(self) -> str:
        """What names the mutant for as long as its file does not change."""
        return hashlib.sha256(f"{self.file}\n{self.source}".encode()).hexdigest()[:16]

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What names the mutant also when lines above it change."""
        return self.file, self.function, self.was, self.now, self.nth


def mutants_of(path: Path, name: str) -> list[Mutant]:
    """All mutants of a file that change what runs, by their place in it."""
    source = path.read_text()
    meaning = _meaning(source)
    found = []
    for position, mutated in _mutated_sources(source):
        if _meaning(mutated) not in (meaning, None):
            was, now = _difference(source, mutated)
            found.append((position, _function_at(source, position[0]), was, now, mutated))
    found.sort(key=lambda each: each[0])
    seen: Counter[tuple[str, str, str]] = Counter()
    mutants = []
    for (line, _), function, was, now, mutated in found:
        mutants.append(Mutant(name, line, function, was, now, seen[function, was, now], mutated))
        seen[function, was, now] += 1
    return mutants


def _mutated_sources(source: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Where a change begins, and the file with it."""
    import cosmic_ray.plugins
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code

    nodes = list(ast_nodes(get_ast(source)))
    for name in OPERATORS:
        operator = cosmic_ray.plugins.get_operator(name)()
        places = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        for occurrence, start in enumerate(places):
            yield start, mutate_code(source, operator, occurrence)


def _meaning(source: str) -> str | None:
    """What runs and can make a difference.

    That is the tree without docstrings, annotations and the decorators that concern them alone, without `compiled`, which
    changes the time, `strict` of zip, which asserts, and `copy` of astype, which spares memory. None where nothing runs:
    the operators take the stars of ``**options`` for arithmetic.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            node.decorator_list = [each for each in node.decorator_list if ast.unparse(each) not in _IDLE]
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.Call):
            node.keywords = [each for each in node.keywords if each.arg not in ("strict", "copy")]
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
    return ast.dump(tree)


def _difference(source: str, mutated: str) -> tuple[str, str]:
    """The lines that differ, before and after, without the space around them."""
    before, after = source.splitlines(), mutated.splitlines()
    same_first = _common_start(before, after)
    same_last = _common_start(before[same_first:][::-1], after[same_first:][::-1])
    was, now = (lines[same_first : len(lines) - same_last] for lines in (before, after))
    return " ".join(map(str.strip, was)), " ".join(map(str.strip, now))


def _common_start(one: list[str], two: list[str]) -> int:
    for place, (left, right) in enumerate(zip(one, two, strict=False)):
        if left != right:
            return place
    return min(len(one), len(two))


def _function_at(source: str, line: int) -> str:
    """The dotted name of the innermost function or class around a line; empty at the top of the file."""
    name = ""
    for node, dotted in _definitions(ast.parse(source), ""):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        if first <= line <= (node.end_lineno or first):
            name = dotted
    return name


def _definitions(tree: ast.AST, prefix: str) -> Iterator[tuple[ast.FunctionDef | ast.ClassDef, str]]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield child, prefix + child.name
            yield from _definitions(child, prefix + child.name + ".")
        else:
            yield from _definitions(child, prefix)


def lines_of_statement(source: str, line: int) -> range | None:
    """The lines of the statement inside a function that holds a line; None for what runs on import."""
    tree = ast.parse(source)
    best: range | None = None
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.stmt) and node is not function:
                    body = getattr(node, "body", None)
                    end = body[0].lineno - 1 if body else (node.end_lineno or node.lineno)
                    lines = range(node.lineno, max(end, node.lineno) + 1)
                    if line in lines and (best is None or len(lines) <= len(best)):
                        best = lines
    return best
