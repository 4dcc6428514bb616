"""Sentences that a reader has to read twice: turns that no native speaker uses, and more than 30 words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages import all_pages

ROOT = Path(__file__).parents[2]
PROGRAMS = [
    path
    for room in (
        "auditing",
        "cli",
        "models",
        "monitoring",
        "report",
        "integrations",
        "uncertainty",
        "_validation",
    )
    for path in sorted((ROOT / "src" / "localparity" / room).rglob("*.py"))
]

TURNS = {
    r"\bbeside\b": "with, next to",
    r"\bpeople whom\b": "people the model has not seen",
    r"\b(?:its|their) own right\b|\bof (?:its|their) own\b": "name what is meant",
    r"\b(?:is|are) of (?!course)": "says, has",
    r"\bthat (?:it|one) can find\b": "leave it out",
    r"\balso those\b": "including those",
    r"(?<!are )\ball the same\b": "even so, or leave it out",
    r"\bthe worst first\b": "sorted by",
    r"\b(?:says|shows|has|repairs|computes|counts|names|tells|knows|removes) what is\b": "name the thing",
    r"\bis there already\b": "already exists",
    r"\bwhat is (?:ours|left|asked|told)\b": "name the thing",
}
MOST_WORDS = 30


_NOT_PROSE = re.compile(
    r"\s*\.\. (?:code-block|math|raw|toctree|results|reproduced|curves|faithful|autosummary|image)"
)
_ENDS_PARAGRAPH = re.compile(r"\s*(?:>>>|\.\.\. |[-=~|#]{2}|\||\.\.|:\w+:(?!`)|$)")
_ITEM = re.compile(r"^\s*(?:- |\* - |\d\. )")
_BORDER = re.compile(r"\s*=+ [= ]+$")


def prose(text: str) -> Iterator[str]:
    """The sentences of a page, without code, tables, headings, options and markup."""
    text = re.sub(r"```.*?```|<!--.*?-->", "\n", text, flags=re.DOTALL)
    paragraphs: list[list[str]] = [[]]
    block_indent, in_table = None, False
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if block_indent is not None and line.strip() and indent <= block_indent:
            block_indent = None
        if _NOT_PROSE.match(line) or (line.rstrip().endswith("::") and not line.lstrip().startswith("..")):
            block_indent = indent if block_indent is None else block_indent
        in_table = bool(line.strip()) and (in_table or bool(_BORDER.match(line)))
        if block_indent is not None or in_table or _ENDS_PARAGRAPH.match(line):
            paragraphs.append([])
            continue
        if _ITEM.match(line):
            paragraphs.append([])
        paragraphs[-1].append(_ITEM.sub("", line).strip())
    for paragraph in paragraphs:
        plain = re.sub(r":result:`[^`]*`", "NUMBER", " ".join(paragraph))
        plain = re.sub(r":\w+:`([^`<]*)(?:<[^`]*>)?`", r"\1", plain)
        plain = re.sub(r"\]\([^)]*\)", "]", re.sub(r"``?[^`]*``?_*", "CODE", plain))
        yield from re.split(r"(?<=[.!?:;])\**\s+(?=[/\[A-Z*\"(0-9])", plain)


def long_sentences(text: str) -> list[str]:
    return [sentence for sentence in prose(text) if len(sentence.split()) > MOST_WORDS]


def turns(text: str) -> list[str]:
    plain = " ".join(text.split())
    return [
        f"{plain[max(0, match.start() - 40) : match.end() + 30]!r}: {better}"
        for turn, better in TURNS.items()
        for match in re.finditer(turn, plain, re.IGNORECASE)
    ]


def test_what_they_find() -> None:
    assert len(turns("The table has the bars beside it, also those that are not met.")) == 2
    assert not turns("Of course there are others; what is a model?")
    long = "A " + "very " * 30 + "long sentence. A short one."
    assert [sentence.split()[-1] for sentence in long_sentences(long)] == ["sentence."]
    assert not long_sentences(f".. code-block:: sh\n\n   {long}\n")


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *all_pages()], ids=lambda path: str(path.relative_to(ROOT))
)
def test_pages_read_well(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert turns(text) == []
    assert long_sentences(text) == []


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_messages_and_docstrings_read_well(path: Path) -> None:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert [turn for text in texts for turn in turns(text)] == []
