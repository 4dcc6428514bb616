"""Texts that come from data, as a terminal, a page or a log may show them."""

from __future__ import annotations

import re
import unicodedata

# Control characters, which move a terminal's cursor or change its colours; marks that turn the direction of
# what follows; ends of lines; halves of characters.
_CONTROLS = "\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
_BRIEF = 50
_UNSAFE = re.compile(f"[{_CONTROLS}]")
_UNSAFE_OR_NEW_LINE = re.compile(f"[\n{_CONTROLS}]")


def visible(text: str) -> str:
    r"""A text on one line, with what would act on a terminal written as its code.

    Examples
    --------
    >>> print(visible("a\x1b[2Jb\nc"))
    a\u001b[2Jb\u000ac
    """
    return _UNSAFE_OR_NEW_LINE.sub(_code, text)


def visible_lines(text: str) -> str:
    r"""The same of a text of several lines, such as JSON, which stays the same JSON.

    Examples
    --------
    >>> print(visible_lines('["\x9b2J",\n"b"]'))
    ["\u009b2J",
    "b"]
    """
    return _UNSAFE.sub(_code, text)


def brief(value: object) -> str:
    r"""The repr of a value for a message; of a long text, the start of its first line.

    A cell with a stray quote holds the rows of other people.

    Examples
    --------
    >>> print(brief("high"), brief(0.5), brief("0.1,f\n0.2,m\n"))
    'high' 0.5 '0.1,f'... (12 characters)
    """
    text = str(value)
    start = text.split("\n", 1)[0][:_BRIEF]
    return repr(value) if start == text else f"{start!r}... ({len(text):,} characters)"


def normal_text(text: str) -> str:
    """A text without what people see as the same: case, spaces around it, and other forms of characters.

    Examples
    --------
    >>> {normal_text(text) for text in ("Male", " MALE ", "Ｍale")}
    {'male'}
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).strip()


def _code(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
