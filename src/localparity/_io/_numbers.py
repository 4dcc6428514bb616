"""Numbers that a file writes as text: with a decimal comma, with separators of thousands, as percentages.

A column is read in the one way that fits all of its values. Where two fit and differ, nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from localparity._io._duckdb import quote_text
from localparity._validation import InputError, setting

Decimal = Literal[".", ","]

_MISSING = ("", "-", "--", ".", "?", "#n/a", "<na>", "n/a", "na", "nan", "none", "null")
"""What stands for no value, in small letters: as in `pandas.read_csv`, and what people type."""

_SEPARATORS = {".": "[,'’ \u00a0\u202f]", ",": "[.'’ \u00a0\u202f]"}
"""What may stand between thousands, given what stands before decimals."""


def is_missing_text(value: Any) -> bool:
    """Whether a value of a file stands for no value."""
    return value is None or str(value).strip().casefold() in _MISSING


def missing_text(text: str) -> str:
    """The SQL of whether a text stands for no value."""
    listed = ", ".join(f"'{word}'" for word in _MISSING)
    return f"({text} IS NULL OR lower(trim({text})) IN ({listed}))"


@dataclass(frozen=True)
class NumberFormat:
    """How a column of texts writes its numbers.

    Without a `decimal` mark they have a point and no separators of thousands, as DuckDB reads them; with
    `percent`, each has a percent sign.

    Examples
    --------
    >>> str(NumberFormat(",", percent=True))
    "with a decimal comma, as percentages: '37,5%' is 0.375"
    """

    decimal: Decimal | None = None
    percent: bool = False

    def sql(self, text: str) -> str:
        """The SQL of a text as a number: NULL where it is none, 1 and 0 for true and false."""
        number = f"TRY_CAST({text} AS DOUBLE)"
        if self != NumberFormat():
            number = self._written(text)
        truth = f"CASE lower({text}) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
        return f"coalesce({truth}, {number})"

    def _written(self, text: str) -> str:
        point = self.decimal or "."
        separator, mark = _SEPARATORS[point], "[.]" if point == "." else ","
        digits = rf"(\d+|[1-9]\d{{0,2}}({separator}\d{{3}})+)"
        sign = r"\s*%" if self.percent else ""
        pattern = rf"\s*[-+−]?({digits}({mark}\d*)?|{mark}\d+)([eE][-+]?\d+)?{sign}\s*"
        marks = quote_text(separator + r"|%|\s")
        plain = f"regexp_replace({text}, {marks}, '', 'g')"
        plain = f"replace(replace({plain}, '−', '-'), {quote_text(point)}, '.')"
        if self.percent:
            plain += " || 'e-2'"  # so that 12.3% is the float that is written 0.123
        matches = f"regexp_full_match({text}, {quote_text(pattern)})"
        return f"CASE WHEN {matches} THEN TRY_CAST({plain} AS DOUBLE) END"

    def __str__(self) -> str:
        point = self.decimal or "."
        written, number = {
            (".", False): ("1,234.5", 1234.5),
            (",", False): ("0,37", 0.37),
            (".", True): ("37.5%", 0.375),
            (",", True): ("37,5%", 0.375),
        }[point, self.percent]
        ways = ["with a decimal comma"] if point == "," else []
        ways += ["as percentages"] if self.percent else []
        how = ", ".join(ways) or "with separators of thousands"
        return f"{how}: {written!r} is {number:g}"


def survey(text: str, decimal: Decimal | None) -> dict[str, str]:
    """The SQL of what tells how a column of texts writes its numbers, by name."""
    values = f"NOT {missing_text(text)}"
    bare = f"regexp_replace({text}, '%\\s*$', '')"
    points: tuple[Decimal, ...] = (".", ",") if decimal is None else (decimal,)
    read = {point: NumberFormat(point).sql(bare) for point in points}
    found = {
        "n": f"count(*) FILTER ({values})",
        "plain": f"count(*) FILTER ({values} AND {NumberFormat(decimal).sql(text)} IS NOT NULL)",
        "percent": f"count(*) FILTER ({values} AND {text} <> {bare})",
    }
    found |= {point: f"count(*) FILTER ({values} AND {number} IS NOT NULL)" for point, number in read.items()}
    if decimal is None:
        found["differ"] = f"count(*) FILTER ({values} AND {read['.']} <> {read[',']})"
    return found


def format_of(found: Mapping[str, int], decimal: Decimal | None) -> NumberFormat | None:
    """The one other way to read a column, given what the survey counted; None where there is none.

    Two ways that differ, as for 1,234, are an InputError.

    Examples
    --------
    >>> format_of({"n": 3, "plain": 0, "percent": 0, ".": 1, ",": 3, "differ": 0}, None)
    NumberFormat(decimal=',', percent=False)
    >>> format_of({"n": 3, "plain": 0, "percent": 2, ".": 3, ",": 3, "differ": 0}, None) is None
    True
    """
    percent = found["percent"] > 0
    if found["plain"] == found["n"] or found["percent"] not in (0, found["n"]):
        return None
    fits: list[Decimal] = [point for point in (".", ",") if found.get(point) == found["n"]]
    if len(fits) == 2 and found["differ"]:
        choices = f"{setting(decimal='.')} or {setting(decimal=',')}"
        raise InputError(f"can be read with a decimal point or with a decimal comma; pass {choices}")
    return NumberFormat(fits[0], percent) if fits else None
