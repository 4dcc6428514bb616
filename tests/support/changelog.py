"""What CHANGELOG.md must tell of: how the public names differ from those of the last release.

`released_names.txt` holds the public names as the last release had them, and nothing before the first. A release
gives its section a date in place of "unreleased", and ``python tests/support/changelog.py`` then writes the file anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from public_names import SNAPSHOT

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
RELEASED = Path(__file__).with_name("released_names.txt")

_HEADING = re.compile(r"^## (?P<version>\S+) \((?P<date>[^)]+)\)$", re.MULTILINE)


class Section(NamedTuple):
    """The newest section of the changelog; its date is "unreleased" until there is a release."""

    version: str
    date: str
    text: str


def newest_section(changelog: str) -> Section:
    """The section at the top."""
    first, *others = _HEADING.finditer(changelog)
    end = others[0].start() if others else len(changelog)
    return Section(first["version"], first["date"], changelog[first.end() : end])


def changes(released: Iterable[str], current: Iterable[str]) -> Iterator[str]:
    """The names that were added, removed, or are called otherwise; a class stands for its new or lost members."""
    before, after = _calls(released), _calls(current)
    for name in sorted(before.keys() | after.keys()):
        owner = name.rpartition(".")[0]
        came_or_went = (name in before) != (name in after)
        with_its_owner = came_or_went and (owner in before) != (owner in after)
        if not with_its_owner and before.get(name) != after.get(name):
            yield name


def untold(section: str, names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Those of the names that no `code` of a section names; a method goes with its class, as `Audit.to_json`."""
    spans, owners = re.findall(r"`([^`]+)`", section), set(_calls(known))
    return [name for name in names if not any(_names(span, name, owners) for span in spans)]


def _names(span: str, name: str, owners: set[str]) -> bool:
    """Whether a span begins with the name, in full or without the modules before it."""
    owner, _, last = name.rpartition(".")
    shortest = f"{owner.rpartition('.')[2]}.{last}" if owner in owners else last
    leading = name.removesuffix(shortest).split(".")[:-1]
    spellings = [".".join([*leading[place:], shortest]) for place in range(len(leading) + 1)]
    return any(re.match(rf"{re.escape(spelling)}\b", span) for spelling in spellings)


def _calls(lines: Iterable[str]) -> dict[str, str]:
    """How each name is called, by the name."""
    return {line.partition("(")[0]: line for line in lines}


if __name__ == "__main__":
    RELEASED.write_text(SNAPSHOT.read_text())
