"""A table of scores as a source of counts: its columns, and what is made of rows counted where they are."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._scale import range_scale, representable_range, score_resolution
from localparity._types import Group, IntArray, ScoreRange
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
from localparity.counts import ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.counts._coarsen import MAX_SCORES
from localparity.counts._rows import Key
from localparity.counts._weights import LIMB_BITS, LIMBS, Units, carry, limbs_of
from localparity.engines.protocol import CellSelection, CellTable, check_weighted_groups, rows_changed


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


class Counted(NamedTuple):
    """What a database counted: for each key and place, the place of the key in `keys`, and the aggregates."""

    keys: list[Key]
    codes: IntArray
    columns: dict[str, NDArray[Any]]


class TableScores:
    """The rows of a table as a source of counts.

    Its rows are selected under short names: score s, label y, weight w, groups g0, g1 and so on. A subclass
    checks and counts them.
    """

    max_refined = MAX_SCORES

    def __init__(self, columns: ScoreColumns, dtype: np.dtype[Any]) -> None:
        self.columns, self.score_range, self._dtype = columns, columns.score_range, dtype
        self.resolution = score_resolution(dtype, columns.score_range)
        self._short_keys = ["y", *columns.groups]
        self._keys: list[Key] | None = None

    def _not_a_number(self, name: str, row: int | None) -> InputError:
        """The error for the first value of a column that is not a number; not every table has an order."""
        return InputError("must be numbers, got no value or a text at some row", column=name)

    def _counted(self, found: Any) -> Counted:
        """What an Arrow table has counted, a row for each group, label and place."""
        codes = np.zeros(found.num_rows, dtype=np.int64)
        for name in self._short_keys:
            values = found[name].combine_chunks().dictionary_encode(null_encoding="encode")
            codes = codes * len(values.dictionary) + values.indices.to_numpy(zero_copy_only=False)
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        keys = [self._key(*(found[name][row].as_py() for name in self._short_keys)) for row in first.tolist()]
        columns = (name for name in found.column_names if name not in ("valid", *self._short_keys))
        return Counted(keys, codes, {name: found[name].to_numpy() for name in columns})

    def _note_groups(self, keys: Sequence[Key], weighted: Collection[Group]) -> None:
        """Note all groups and labels; one group only, or one without weight, is an error."""
        groups, labels = dict.fromkeys(key[0] for key in keys), dict.fromkeys(key[1] for key in keys)
        of_groups, of_weights = FileColumn(self.columns.group[0]), FileColumn(self.columns.weight or "")
        check_weighted_groups(list(groups), weighted, of_groups, of_weights)
        self._keys = [(group, label) for group in groups for label in labels]

    def _checked(self, counted: Counted, within: CellSelection | None) -> Counted:
        """What was counted where there is weight, with the places of keys among those of all rows."""
        kept = np.flatnonzero(counted.columns["n"] > 0)
        if within is None and self._keys is None:
            weighted = {counted.keys[code][0] for code in np.unique(counted.codes[kept])}
            self._note_groups(counted.keys, weighted)
        keys = self._keys or []
        if not set(counted.keys) <= set(keys):
            raise rows_changed()
        places = np.array([keys.index(key) for key in counted.keys], dtype=np.int64)
        columns = {name: column[kept] for name, column in counted.columns.items()}
        return Counted(keys, places[counted.codes[kept]], columns)

    def _table_of(self, counted: Counted) -> CellTable:
        """A table of what was counted by cell."""
        keys, codes, columns = counted
        numbers, cells = np.unique(columns["place"], return_inverse=True)
        table = CellTable.empty(keys, numbers.size, weighted=self.columns.weight is not None)
        table.entries[cells, codes, 0] = columns["n"]
        np.minimum.at(table.lowest, cells, columns["lowest"].astype(np.float64) + 0.0)
        np.maximum.at(table.highest, cells, columns["highest"].astype(np.float64) + 0.0)
        if (units := self._units(columns)) is not None:
            table.entries[cells, codes, 1:] = units.reshape(2 * LIMBS, -1).T
        return replace(table, numbers=numbers.astype(np.int64))

    def _counts_of(self, counted: Counted) -> ScoreCounts:
        """The counts of what was counted by score."""
        keys, codes, columns = counted
        order = np.lexsort((columns["place"], codes))
        ends = np.searchsorted(codes[order], np.arange(len(keys) + 1)).tolist()
        units, atoms = self._units(columns), {}
        for key, begin, end in zip(keys, ends, ends[1:], strict=False):
            rows = order[begin:end]
            of_key = None if units is None else np.ascontiguousarray(units[..., rows])
            scores = columns["lowest"][rows].astype(np.float64) + 0.0
            atoms[key] = Atoms.of_counts(scores, columns["n"][rows].astype(np.int64), of_key)
        return ScoreCounts(atoms, self.score_range, self.resolution)

    def _units(self, columns: Mapping[str, NDArray[Any]]) -> Units | None:
        """The sums of the weights and of their squares, where there are weights."""
        if self.columns.weight is None:
            return None
        limbs = [[columns[f"{kind}{limb}"] for limb in range(LIMBS)] for kind in "wq"]
        return carry(np.array(limbs, dtype=np.int64))

    def _key(self, label: Any, *groups: Any) -> Key:
        """The group and the label as counts name them."""
        plain = tuple(value.item() if isinstance(value, np.generic) else value for value in groups)
        for name, value in zip(self.columns.group, plain, strict=True):
            if isinstance(value, np.ndarray | dict | list | bytes | bytearray):
                raise InputError(f"must be texts, numbers or dates, got {value!r}", column=name)
        return plain[0] if len(plain) == 1 else plain, int(label) if self.columns.label else None

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


class SqlScores(TableScores, ABC):
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
    def _count(self, place: str, within: CellSelection | None) -> Counted:
        """Count the rows by an expression; of all rows, these are checked."""

    def count_cells(self, level: int, within: CellSelection | None = None) -> CellTable:
        """Count the rows by the cells of a grid."""
        return self._table_of(self._checked(self._count(self._cell(level), within), within))

    def count_scores(self, within: CellSelection | None = None) -> ScoreCounts:
        """Count the rows by their scores."""
        return self._counts_of(self._checked(self._count("s", within), within))

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
        cuts = limbs_of(
            lambda scale: f"({number} * {_double(scale)})",
            self._floor,
            lambda whole, above: f"({whole} - {above} * {_double(2.0**LIMB_BITS)})",
        )
        return {
            f"{prefix}{limb}": f"CAST(sum(CAST({cut} AS BIGINT)) AS BIGINT)" for limb, cut in enumerate(cuts)
        }


def short_reason(error: Exception) -> str:
    """The line of a long message that has an error code, such as [PATH_NOT_FOUND], or the first one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    coded = (line[line.index("[") :] for line in lines if re.search(r"\[[A-Z_]+[A-Z_.]*\] ", line))
    return next(coded, lines[0] if lines else type(error).__name__)


def _double(number: float) -> str:
    """A double as SQL, exactly: a plain literal would be a decimal."""
    return f"CAST('{number!r}' AS DOUBLE)"
