"""Rows of a table that have no group, score, label or weight: counted, and left out or kept, by SQL."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from localparity._io._sql import quote_name, quote_text, text_of
from localparity._io._tables import Table
from localparity._types import Group, Missing, MissingGroups
from localparity._validation import UNKNOWN
from localparity.counts._inputs import Data
from localparity.engines._table import ScoreColumns
from localparity.predictions import Predictions

_UNKNOWN_TEXT = "localparity: no group"
"""A text that no file has, for the rows whose group is not known."""


@dataclass(frozen=True)
class MissingValues:
    """Which rows of a table lack a value, in SQL.

    Attributes
    ----------
    table : Table
        The table, which says what it has for no value.
    columns : ScoreColumns
        The columns of the table.
    texts : tuple of str
        What stands for no value, beside what the table has for it. In a column of numbers, a text that is a
        number is that number.
    """

    table: Table
    columns: ScoreColumns
    texts: tuple[str, ...] = ()

    def lacks_number(self, name: str) -> str:
        """Whether a row has no number in a column, by its text: what is no number is an error elsewhere."""
        text = text_of(name)
        named = self._named(text)
        number = f"TRY_CAST({text} AS DOUBLE)"
        lacks = f"{self.table.lacks(name)} OR coalesce(isnan({number}), false)"
        return f"({lacks} OR ({named} AND {number} IS NULL))"

    def lacks_group(self) -> str:
        """Whether a row has no value in one of the group columns."""
        each = [f"{self.table.lacks(name)} OR {self._named(text_of(name))}" for name in self.columns.group]
        return f"({' OR '.join(each)})"

    def known_group(self, name: str) -> str:
        """A group column as texts, in which the groups that are not known have a text of their own."""
        return f"CASE WHEN {self.lacks_group()} THEN {quote_text(_UNKNOWN_TEXT)} ELSE {text_of(name)} END"

    def _named(self, text: str) -> str:
        """Whether a text is one of those that stand for no value."""
        listed = ", ".join(map(quote_text, self.texts))
        return f"coalesce({text} IN ({listed}), false)" if self.texts else "false"


@dataclass(frozen=True)
class LeftOutRows:
    """How many rows of a table lack a value of each kind, those left out for another not counted again."""

    rows: int = 0
    scores: int = 0
    labels: int = 0
    weights: int = 0
    groups: int = 0

    @property
    def without_group(self) -> bool:
        """Whether no row that lacks nothing else has a group."""
        return self.groups == self.rows - self.scores - self.labels - self.weights


def count_missing(table: Table, columns: ScoreColumns, texts: tuple[str, ...]) -> LeftOutRows:
    """How many rows of a table lack a score; of the others, a label, a weight, a group."""
    lacking = MissingValues(table, columns, texts)
    table.check([*columns.numbers.values(), *columns.group])
    conditions = {short: lacking.lacks_number(name) for short, name in columns.numbers.items()}
    conditions["g"] = lacking.lacks_group()
    counted, before = ["count(*) AS rows"], "true"
    for short, condition in conditions.items():
        counted.append(f"count(*) FILTER (WHERE {before} AND {condition}) AS {short}")
        before += f" AND NOT {condition}"
    found = table.fetch(f"SELECT {', '.join(counted)} FROM {table.rows}")
    names = {"rows": "rows", "s": "scores", "y": "labels", "w": "weights", "g": "groups"}
    return LeftOutRows(**{names[short]: int(number[0]) for short, number in found.items()})


def without_missing(
    table: Table, columns: ScoreColumns, *, groups: MissingGroups, missing: Missing, texts: tuple[str, ...]
) -> Table:
    """The rows of a table that are counted; where groups that are not known are kept, these have a text."""
    table.normalise(columns.group)
    lacking = MissingValues(table, columns, texts)
    conditions = []
    if missing == "drop":
        conditions += [f"NOT {lacking.lacks_number(name)}" for name in columns.numbers.values()]
    if groups == "drop":
        conditions.append(f"NOT {lacking.lacks_group()}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    replaced, types = "", dict(table.types)
    if groups in ("group", "bound"):
        texts_of = [f"{lacking.known_group(name)} AS {quote_name(name)}" for name in columns.group]
        replaced = f" REPLACE ({', '.join(texts_of)})"
        types |= dict.fromkeys(columns.group, "VARCHAR")
    found: Any = copy(table)
    found.rows, found.types = f"(SELECT *{replaced} FROM {table.rows}{where})", types
    return found  # type: ignore[no-any-return]


def name_unknown(data: Data) -> Data:
    """The same people, where the group of those without one is `UNKNOWN` instead of a text."""
    if isinstance(data, Predictions):
        return replace(data, groups=tuple(map(_name, data.groups)))
    atoms = {(_name(group), label): found for (group, label), found in data.atoms.items()}
    return replace(data, atoms=atoms)


def _name(group: Group) -> Group:
    parts = group if isinstance(group, tuple) else (group,)
    return UNKNOWN if _UNKNOWN_TEXT in parts else group
