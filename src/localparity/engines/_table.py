"""A table of scores as a source of counts: its columns, and what is made of rows counted where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._scale import range_scale, representable_range, score_resolution
from localparity._types import ScoreRange
from localparity._validation import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    FileColumn,
    InputError,
    as_groups,
    as_labels,
    as_scores,
    as_weights,
)
from localparity.counts._coarsen import MAX_SCORES
from localparity.counts._weights import LIMB_BITS, LIMBS, carry, limb_scale
from localparity.engines._source import CellSelection, GroupCounts, check_group_weights


@dataclass(frozen=True)
class ScoreColumns:
    """The columns of a table of scores, and the range of the scores.

    The last group columns may be those of strata, `control`, by which rows are counted as by the others.
    """

    score: str
    group: tuple[str, ...]
    label: str | None = None
    weight: str | None = None
    score_range: ScoreRange = (0.0, 1.0)
    control: tuple[str, ...] = ()

    @property
    def own_group(self) -> tuple[str, ...]:
        """The group columns that are not of strata."""
        return self.group[: len(self.group) - len(self.control)]

    @property
    def numbers(self) -> dict[str, str]:
        """The short names of the columns that hold numbers."""
        named = {"s": self.score, "y": self.label, "w": self.weight}
        return {short: name for short, name in named.items() if name is not None}

    @property
    def groups(self) -> dict[str, str]:
        """The short names of the group columns."""
        return {f"g{place}": name for place, name in enumerate(self.group)}


class TableScores(ABC):
    """The rows of a table as a source of counts.

    Its rows are selected under short names: score s, label y, weight w, groups g0, g1 and so on. A subclass
    checks and counts them.
    """

    max_refined = MAX_SCORES

    def __init__(self, columns: ScoreColumns, dtype: np.dtype[Any]) -> None:
        self.columns, self.score_range, self._dtype = columns, columns.score_range, dtype
        self.resolution = score_resolution(dtype, columns.score_range)
        self._keys = ["y", *columns.groups]

    @abstractmethod
    def _not_a_number(self, name: str, row: int | None) -> ValueError:
        """The error for the first value of a column that is not a number."""

    def _counts_of(self, found: Any) -> list[GroupCounts]:
        """The counts in an Arrow table that has a row for each group, label and place."""
        codes = np.zeros(found.num_rows, dtype=np.int64)
        for name in self._keys:
            values = found[name].combine_chunks().dictionary_encode(null_encoding="encode")
            codes = codes * len(values.dictionary) + values.indices.to_numpy(zero_copy_only=False)
        others = [name for name in found.column_names if name not in ("valid", *self._keys)]
        numbers = {name: found[name].to_numpy() for name in others}
        order = np.lexsort((numbers["place"], codes))
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        counts = []
        for rows in np.split(order, starts[1:]):
            key = [found[name][int(rows[0])].as_py() for name in self._keys]
            kept = rows[numbers["n"][rows] > 0]
            counts.append(self._group_counts(key, {name: column[kept] for name, column in numbers.items()}))
        return counts

    def _group_counts(self, key: Sequence[Any], values: Mapping[str, NDArray[Any]]) -> GroupCounts:
        """The counts of one label and group, given the aggregates at each place."""
        units = None
        if self.columns.weight:
            limbs = [[values[f"{kind}{limb}"] for limb in range(LIMBS)] for kind in "wq"]
            units = carry(np.array(limbs, dtype=np.int64))
        lowest, highest = (values[name].astype(np.float64) + 0.0 for name in ("lowest", "highest"))
        return GroupCounts(
            self._key(*key), values["place"], values["n"].astype(np.int64), lowest, highest, units
        )

    def _key(self, label: Any, *groups: Any) -> tuple[Any, int | None]:
        """The group and the label as counts name them."""
        plain = tuple(value.item() if isinstance(value, np.generic) else value for value in groups)
        for name, value in zip(self.columns.group, plain, strict=True):
            if isinstance(value, np.ndarray | dict | list | bytes | bytearray):
                raise InputError(f"must be texts, numbers or dates, got {value!r}", column=name)
        return plain[0] if len(plain) == 1 else plain, int(label) if self.columns.label else None

    def _check_groups(self, counted: Sequence[GroupCounts]) -> list[GroupCounts]:
        """Raise a ValueError where there is one group only, or one without weight."""
        groups = list(dict.fromkeys(each.key[0] for each in counted))
        weighted = {each.key[0] for each in counted if each.rows.size}
        names = [f"column {name!r}" for name in (self.columns.group[0], self.columns.weight)]
        check_group_weights(groups, weighted, *names)
        return list(counted)

    def _reject(self, row: Mapping[str, Any], number: int | None) -> None:
        """Raise the error for an invalid row, given its values by short name and its number from 1."""

        def named(name: str) -> FileColumn:
            return FileColumn(name, number)

        columns = self.columns
        for short, name in columns.numbers.items():
            if row[short] is None:
                raise self._not_a_number(name, number)
        as_scores([row["s"]], self.score_range, named(columns.score))
        for short, name in columns.groups.items():
            as_groups(np.array([row[short]], dtype=object), 1, named(name), at_least=1)
        if columns.label is not None:
            as_labels([row["y"]], 1, named(columns.label))
        if columns.weight is not None:
            as_weights([row["w"]], 1, named(columns.weight))


# A table of scores counted by SQL expressions that DuckDB and Spark both understand.


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
        held = representable_range(self.score_range, self._dtype)
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
