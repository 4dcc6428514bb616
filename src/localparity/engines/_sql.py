"""A table of scores counted by SQL expressions that DuckDB and Spark both understand."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from localparity._validation import LEAST_WEIGHT, MOST_WEIGHT, held_ends, range_scale
from localparity.counts._weights import LIMB_BITS, LIMBS, limb_scale
from localparity.engines._refine import CellSelection, GroupCounts
from localparity.engines._table import ScoreColumns, TableScores


class SqlScores(TableScores):
    """The rows of a table, counted by SQL; a subclass says what differs between dialects, and runs it."""

    def __init__(self, columns: ScoreColumns, types: Mapping[str, str]) -> None:
        self._types = {name: kind.upper() for name, kind in types.items()}
        super().__init__(columns, np.dtype("f4" if self._types[columns.score] == "FLOAT" else "f8"))

    @abstractmethod
    def _number(self, name: str) -> str:
        """A column as numbers: NULL where a value is none, 1 and 0 for true and false."""

    @abstractmethod
    def _group(self, name: str) -> str:
        """A column of groups."""

    @abstractmethod
    def _floor(self, number: str) -> str:
        """The largest whole number, as a double, that is not above a double of any size."""

    @abstractmethod
    def _count(self, place: str, within: CellSelection | None) -> list[GroupCounts]:
        """Count the rows by an expression."""

    def count_cells(self, level: int, within: CellSelection | None = None) -> list[GroupCounts]:
        """Count the rows by the cells of a grid."""
        return self._count(self._cell(level), within)

    def count_scores(self, within: CellSelection | None = None) -> list[GroupCounts]:
        """Count the rows by their scores."""
        return self._count("s", within)

    def _selected(self) -> list[str]:
        """The columns under their short names."""
        label, weight = self.columns.label, self.columns.weight
        selected = [
            f"{self._score()} + 0.0 AS s",  # which turns -0.0 into 0.0
            f"{self._number(label) if label else 'CAST(NULL AS DOUBLE)'} AS y",
            *([f"CAST({self._number(weight)} AS DOUBLE) AS w"] if weight else []),
        ]
        return selected + [f"{self._group(name)} AS {short}" for short, name in self.columns.groups.items()]

    def _score(self) -> str:
        """The score; one beyond an end of the range that its dtype cannot represent is at that end."""
        score = f"CAST({self._number(self.columns.score)} AS DOUBLE)"
        held = held_ends(self.score_range, self._dtype)
        if held == self.score_range:
            return score
        (lowest, highest), (low, high) = map(_double, held), map(_double, self.score_range)
        inside = f"{score} BETWEEN {lowest} AND {highest}"
        return f"CASE WHEN {inside} THEN least(greatest({score}, {low}), {high}) ELSE {score} END"

    def _valid(self) -> str:
        """Whether a row is valid; NaN is greater than any number."""
        low, high = map(_double, self.score_range)
        conditions = [f"s >= {low} AND s <= {high}"]
        for short, name in self.columns.groups.items():
            conditions.append(f"{short} IS NOT NULL")
            if self._types[name] in ("FLOAT", "DOUBLE"):
                conditions.append(f"NOT isnan({short})")
        if self.columns.label:
            conditions.append("y IN (0, 1)")
        if self.columns.weight:
            least, most = _double(LEAST_WEIGHT), _double(MOST_WEIGHT)
            conditions.append(f"(w = 0 OR (w >= {least} AND w <= {most}))")
        return f"coalesce({' AND '.join(conditions)}, false)"

    def _cell(self, level: int) -> str:
        """The number of the cell of a score, as `cell_numbers` computes it."""
        scale = range_scale(self.score_range)
        low, high = (scale * end for end in self.score_range)
        fraction = "s" if scale == 1.0 else f"(s * {_double(scale)})"
        if (low, high) != (0.0, 1.0):
            fraction = f"(({fraction} - {_double(low)}) / {_double(high - low)})"
        return f"CAST(ceil({fraction} * {_double(2.0**level)}) AS {'INTEGER' if level < 31 else 'BIGINT'})"

    def _aggregates(self) -> dict[str, str]:
        """What is counted at each place, by name."""
        found = {"n": "count(*)", "lowest": "min(s)", "highest": "max(s)"}
        if self.columns.weight:
            weight = "(CASE WHEN valid THEN w ELSE 0.0 END)"
            found["n"] = "count(CASE WHEN w > 0 THEN 1 END)"
            found |= self._limb_sums("w", weight) | self._limb_sums("q", f"({weight} * {weight})")
        return found

    def _limb_sums(self, prefix: str, number: str) -> dict[str, str]:
        """The sums of a number's limbs, which are whole numbers and add up the same in any order."""
        base, sums = _double(2.0**LIMB_BITS), {}
        for limb in range(LIMBS):
            scaled = f"({number} * {_double(limb_scale(limb))})"
            cut = self._floor(scaled)
            if limb < LIMBS - 1:
                cut += f" - {self._floor(f'({scaled} / {base})')} * {base}"
            sums[f"{prefix}{limb}"] = f"CAST(sum(CAST({cut} AS BIGINT)) AS BIGINT)"
        return sums


def _double(number: float) -> str:
    """A double as SQL, exactly: a plain literal would be a decimal."""
    return f"CAST('{number!r}' AS DOUBLE)"
