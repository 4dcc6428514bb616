"""Rows of a table that have no group, score, label or weight: counted, and left out or kept, by SQL."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from localparity._io._duckdb import quote_name, quote_text, text_of
from localparity._io._table import Table
from localparity._types import Group, Missing, MissingGroups
from localparity._validation import NO_GROUP
from localparity.counts._score_counts import Data
from localparity.engines._table import ScoreColumns
from localparity.predictions import Predictions

_UNKNOWN_TEXT = "localparity: no group"
"""A text that no file has, for the rows whose group is not known."""


@dataclass(frozen=True)
class MissingValues:
    """Which rows of a table lack a value, in SQL.

    The `texts` stand for no value, beside what the table has for it. In a column of numbers, a text that is a
    number is that number.
    """

    table: Table
    columns: ScoreColumns
    texts: tuple[str, ...] = ()

    def lacks_number(self, name: str) -> str:
        """Whether a row has no number in a column, by its text: what is no number is an error elsewhere."""
        number = f"TRY_CAST({text_of(name)} AS DOUBLE)"
        lacks = f"{self.table.lacks(name)} OR coalesce(isnan({number}), false)"
        return f"({lacks} OR ({self._named(name, self.texts)} AND {number} IS NULL))"

    def lacks_group(self) -> str:
        """Whether a row has no value in one of the group columns."""
        names = self.columns.own_group
        each = [f"{self.table.lacks(name)} OR {self._named(name, self.texts)}" for name in names]
        return f"({' OR '.join(each)})"

    def lacks_stratum(self) -> str:
        """Whether a row has no value in one of the control columns."""
        return f"({' OR '.join(map(self.table.lacks, self.columns.control)) or 'false'})"

    def has(self, text: str) -> str:
        """Whether a row has a text, of those that stand for no value, in a column of groups or numbers."""
        names = (*self.columns.own_group, *self.columns.numbers.values())
        return f"({' OR '.join(self._named(name, (text,)) for name in names)})"

    def _named(self, name: str, texts: tuple[str, ...]) -> str:
        """Whether a column has one of some texts, as they are written or as groups are after joining."""
        listed = ", ".join(map(quote_text, dict.fromkeys((*texts, *self.table.as_joined(texts)))))
        return f"coalesce({text_of(name)} IN ({listed}), false)" if texts else "false"


@dataclass(frozen=True)
class LeftOutRows:
    """How many rows of a table lack a value of each kind, those left out for another not counted again.

    `strata` counts all rows without a stratum; `unmatched` are the texts for no value that no row has.
    """

    rows: int = 0
    scores: int = 0
    labels: int = 0
    weights: int = 0
    groups: int = 0
    strata: int = 0
    unmatched: tuple[str, ...] = ()

    @property
    def without_group(self) -> bool:
        """Whether no row that lacks nothing else has a group."""
        return self.groups == self.rows - self.scores - self.labels - self.weights


def count_missing(table: Table, columns: ScoreColumns, texts: tuple[str, ...]) -> LeftOutRows:
    """How many rows of a table lack a score; of the others, a label, a weight, a group; of all, a stratum."""
    table.check([*columns.numbers.values(), *columns.group])
    table.normalise(columns.group)
    lacking = MissingValues(table, columns, texts)
    conditions = {short: lacking.lacks_number(name) for short, name in columns.numbers.items()}
    conditions["g"] = lacking.lacks_group()
    counted, before = ["count(*) AS rows", f"count(*) FILTER (WHERE {lacking.lacks_stratum()}) AS c"], "true"
    for short, condition in conditions.items():
        counted.append(f"count(*) FILTER (WHERE {before} AND {condition}) AS {short}")
        before += f" AND NOT {condition}"
    counted += [f"count(*) FILTER (WHERE {lacking.has(text)}) AS t{i}" for i, text in enumerate(texts)]
    found = {
        short: int(number[0])
        for short, number in table.fetch(f"SELECT {', '.join(counted)} FROM {table.rows}").items()
    }
    names = {"rows": "rows", "s": "scores", "y": "labels", "w": "weights", "g": "groups", "c": "strata"}
    return LeftOutRows(
        **{name: found[short] for short, name in names.items() if short in found},
        unmatched=tuple(text for i, text in enumerate(texts) if not found[f"t{i}"]),
    )


def without_missing(
    table: Table,
    columns: ScoreColumns,
    *,
    groups: MissingGroups,
    missing: Missing,
    texts: tuple[str, ...],
    strata: bool = False,
    unknown: str = _UNKNOWN_TEXT,
) -> Table:
    """The rows of a table that are counted; where groups that are not known are kept, these are `unknown`.

    So have strata that are not known, where there are some (`strata`).
    """
    table.normalise(columns.group)
    lacking = MissingValues(table, columns, texts)
    conditions = []
    if missing == "drop":
        conditions += [f"NOT {lacking.lacks_number(name)}" for name in columns.numbers.values()]
    if groups == "drop":
        conditions.append(f"NOT {lacking.lacks_group()}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    marked: dict[str, str] = {}
    if strata:
        marked |= _marked(columns.control, lacking.lacks_stratum(), _UNKNOWN_TEXT)
    if groups in ("group", "bound"):
        marked |= _marked(columns.own_group, lacking.lacks_group(), unknown)
    listed = ", ".join(f"{expression} AS {quote_name(name)}" for name, expression in marked.items())
    replaced = f" REPLACE ({listed})" if marked else ""
    found: Any = copy(table)
    found.types = table.types | dict.fromkeys(marked, "VARCHAR")
    found.rows = f"(SELECT *{replaced} FROM {table.rows}{where})"
    return found  # type: ignore[no-any-return]


def _marked(names: tuple[str, ...], lacks: str, unknown: str) -> dict[str, str]:
    """Columns as texts, in which what is not known has a text of its own."""
    return {name: f"CASE WHEN {lacks} THEN {quote_text(unknown)} ELSE {text_of(name)} END" for name in names}


def name_missing_group(data: Data) -> Data:
    """The same people, where the group of those without one is `NO_GROUP` instead of a text."""
    if isinstance(data, Predictions):
        return replace(data, groups=tuple(map(known_group, data.groups)))
    atoms = {(known_group(group), label): found for (group, label), found in data.atoms.items()}
    return replace(data, atoms=atoms)


def known_group(group: Group) -> Group:
    """A group as a table has it, `NO_GROUP` where that is the text of those that are not known."""
    parts = group if isinstance(group, tuple) else (group,)
    return NO_GROUP if _UNKNOWN_TEXT in parts else group
