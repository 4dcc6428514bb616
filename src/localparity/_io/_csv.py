"""The first lines of a CSV: what separates its values, and what its columns are called."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

DELIMITERS = {"csv": ",;\t|", "txt": ",;\t|", "tsv": "\t"}
"""What may separate values, by the endings of files."""

_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""Excel's own first line."""


class Header(NamedTuple):
    """How a CSV begins.

    Attributes
    ----------
    delimiter : str
        What separates values.
    names : list of str
        The names of the columns; one without a name is called by its place.
    skipped : int
        How many lines there are before that with the names.
    """

    delimiter: str
    names: list[str]
    skipped: int


def header_of(lines: Sequence[str | None], kind: str) -> Header:
    r"""The header in the first lines of a CSV, of which blank ones are None.

    Examples
    --------
    >>> header_of(["sep=;", None, "p ; sex;"], "csv")
    Header(delimiter=';', names=['p', 'sex', 'column2'], skipped=2)
    """
    delimiter, skipped = None, 0
    for line in lines:
        found = None if line is None else _SEPARATOR_LINE.fullmatch(line.strip())
        if line is not None and line.strip() and not found:
            break
        delimiter, skipped = found[1] if found else delimiter, skipped + 1
    else:
        raise ValueError("has no line with the names of its columns")
    assert line is not None
    number = skipped + 1
    if line.count('"') % 2:
        raise ValueError(f"cannot be read: line {number}: a quote in the header is not closed")
    delimiter = delimiter or delimiter_of(line, kind)
    try:
        found_names = next(csv.reader([line], delimiter=delimiter, skipinitialspace=delimiter != " "))
    except csv.Error as error:  # such as a name of more than 128 KB
        raise ValueError(f"cannot be read: line {number}: {error}") from error
    names = [name.strip() or f"column{place}" for place, name in enumerate(found_names)]
    return Header(delimiter, names, skipped)


def delimiter_of(line: str, kind: str) -> str:
    """The delimiter of a CSV, from its first line.

    Examples
    --------
    >>> delimiter_of('"a,b";c;d', "csv")
    ';'
    """
    return max(DELIMITERS[kind], key=re.sub(r'"(?:[^"]|"")*"', "", line).count)


def repeated(names: Sequence[str]) -> set[str]:
    """The names that occur more than once, apart from case, as SQL has them.

    Examples
    --------
    >>> sorted(repeated(["p", "sex", "P"]))
    ['P', 'p']
    """
    times = Counter(name.casefold() for name in names)
    return {name for name in names if times[name.casefold()] > 1}


def distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number after each that occurred before, apart from case.

    Examples
    --------
    >>> distinct(["p", "P", "p.2", "p"])
    ['p', 'P.2', 'p.2.2', 'p.3']
    """
    found: list[str] = []
    seen: set[str] = set()
    for name in names:
        new, times = name, 1
        while new.casefold() in seen:
            times += 1
            new = f"{name}.{times}"
        seen.add(new.casefold())
        found.append(new)
    return found
