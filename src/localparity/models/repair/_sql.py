"""Repaired scores as SQL expressions, for the dialects of DuckDB, PostgreSQL and Spark.

An expression is a chain of stages. Each has named columns, computed from those of the stage before it, which
it calls ``x.name``; the first is computed from the columns of the user's table. In most dialects a stage is a
subselect without a table, in Spark a lambda, so that nothing is computed twice and an expression stands
wherever a column can stand.

A map's piece is found by bisection in an array of all knots, one step a stage, so that the length of the text
grows with the knots and the time with their logarithm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np

from localparity._io._duckdb import quote_name, quote_text
from localparity._types import FloatArray, Group
from localparity._validation import InputError, as_choice
from localparity.models.repair._maps import ScoreMap

MOST_KNOTS = 2**20

Stage = Mapping[str, str]
"""The columns that an expression computes at one stage, by name."""


class Lines(NamedTuple):
    """A map as straight lines from knot to knot, the ends of the range among them."""

    knots: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, score_map: ScoreMap) -> Self:
        """Return a map's lines; of those on which scores stay, only the ends of each run are kept."""
        low, high = score_map.score_range
        knots, values = score_map.knots, score_map.values
        before, after = (
            [end] if outside else [] for end, outside in ((low, knots[0] > low), (high, knots[-1] < high))
        )
        knots, values = np.concatenate([before, knots, after]), np.concatenate([before, values, after])
        stays = knots == values
        needed = np.ones(knots.size, dtype=bool)
        needed[1:-1] = ~(stays[:-2] & stays[1:-1] & stays[2:])
        return cls(knots[needed], values[needed])


class Dialect(ABC):
    """How a database writes names, values and stages; `first` is the index of an array's first element."""

    double: ClassVar[str] = "DOUBLE"
    first: ClassVar[int] = 1

    @abstractmethod
    def array(self, numbers: FloatArray) -> str:
        """Return an array of doubles."""

    def name(self, column: str) -> str:
        """Return a column's name, quoted."""
        return quote_name(column)

    def text(self, value: str) -> str:
        """Return a text as a literal."""
        return quote_text(value)

    def number(self, value: float) -> str:
        """Return a number with all of its digits; a plain literal might be a decimal."""
        return f"CAST('{float(value)!r}' AS {self.double})"

    def value(self, group: Group) -> str:
        """Return a group's name as a literal."""
        if isinstance(group, str):
            return self.text(group)
        if isinstance(group, bool):
            return str(group).upper()
        if isinstance(group, int):
            return str(group)
        if isinstance(group, float):
            return self.number(group)
        raise InputError(f"must be texts, numbers or booleans in SQL, got {group!r}", "sensitive_features")

    def chain(self, stages: Sequence[Stage], result: str) -> str:
        """Return an expression that goes through stages to a result."""
        source = ""
        for stage in stages:
            columns = ", ".join(f"{expression} AS {name}" for name, expression in stage.items())
            source = f" FROM ({self.subselect(columns + source)}) AS x"
        return f"(SELECT {result}{source})"

    def subselect(self, columns: str) -> str:
        """Return a subselect whose columns are computed once, however often they are used."""
        return f"SELECT {columns}"


class _DuckDB(Dialect):
    def array(self, numbers: FloatArray) -> str:
        return f"CAST('{numbers.tolist()}' AS DOUBLE[])"


class _Postgres(Dialect):
    double = "DOUBLE PRECISION"

    def array(self, numbers: FloatArray) -> str:
        return f"CAST('{{{str(numbers.tolist())[1:-1]}}}' AS DOUBLE PRECISION[])"

    def subselect(self, columns: str) -> str:
        return f"SELECT {columns} OFFSET 0"  # without which the planner would put stages into each other


class _Spark(Dialect):
    first = 0

    def name(self, column: str) -> str:
        return "`" + column.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"

    def array(self, numbers: FloatArray) -> str:
        return f"from_json('{numbers.tolist()}', 'array<double>')"

    def chain(self, stages: Sequence[Stage], result: str) -> str:
        first, *others = stages
        rows = f"array({self._struct(first)})"
        for stage in others:
            rows = f"transform({rows}, x -> {self._struct(stage)})"
        return f"transform({rows}, x -> {result})[0]"

    @staticmethod
    def _struct(stage: Stage) -> str:
        return f"struct({', '.join(f'{expression} AS {name}' for name, expression in stage.items())})"


_DIALECTS: dict[str, Dialect] = {"duckdb": _DuckDB(), "postgres": _Postgres(), "spark": _Spark()}


def group_maps_sql(dialect: str, score: str, columns: Sequence[str], maps: Mapping[Group, ScoreMap]) -> str:
    """Return the expression that takes a score through the map of the row's group.

    Where the score is NULL or outside of the range, or the group is none of the maps', it is NULL.
    """
    host = _DIALECTS[as_choice(dialect, "dialect", tuple(_DIALECTS))]
    lines = {group: Lines.of(score_map) for group, score_map in maps.items()}
    n_knots = sum(line.knots.size for line in lines.values())
    if n_knots > MOST_KNOTS:
        raise ValueError(
            f"the maps must have at most {MOST_KNOTS:,} knots, got {n_knots:,}; fit the repair on fewer "
            "distinct scores, such as counts on a grid"
        )
    knots, values = (host.array(np.concatenate(part)) for part in zip(*lines.values(), strict=True))
    first, last, at = "CASE", "CASE", host.first
    for group, line in lines.items():
        parts = group if isinstance(group, tuple) else (group,)
        if len(parts) != len(columns):
            reason = f"must name a column for each part of {group!r}, got {', '.join(columns)}"
            raise InputError(reason, "group")
        condition = " AND ".join(f"x.g{place} = {host.value(part)}" for place, part in enumerate(parts))
        # NaN is above every range in every dialect.
        low, high = map(host.number, maps[group].score_range)
        pieces = line.knots.size - 1
        first += f" WHEN x.s >= {low} AND x.s <= {high} AND {condition} THEN {at}"
        last += f" WHEN {condition} THEN {at + pieces - 1}"
        at += pieces + 1
    groups = {f"g{place}": host.name(column) for place, column in enumerate(columns)}
    table = {"s": f"CAST({host.name(score)} AS {host.double})", **groups, "k": knots, "v": values}
    unchanged = {name: f"x.{name}" for name in ("s", "k", "v")}
    most = max(line.knots.size for line in lines.values()) - 1
    search = [{**unchanged, "i": f"{first} END", "last": f"{last} END"}]
    search += [
        {**unchanged, "i": _step(2**bit), "last": "x.last"}
        for bit in reversed(range((most - 1).bit_length()))
    ]
    ends = {"a": "(x.k)[x.i]", "b": "(x.k)[x.i + 1]", "va": "(x.v)[x.i]", "vb": "(x.v)[x.i + 1]"}
    along = "least(greatest(x.va + (x.s - x.a) / (x.b - x.a) * (x.vb - x.va), x.va), x.vb)"
    result = f"CASE WHEN x.a = x.va AND x.b = x.vb THEN x.s ELSE {along} END"
    return host.chain([table, *search, {"s": "x.s", **ends}], result)


def _step(size: int) -> str:
    """Return the piece after a step of the bisection, which never looks beyond the last."""
    further = f"x.i + {size}"
    return f"CASE WHEN {further} > x.last THEN x.i WHEN (x.k)[{further}] <= x.s THEN {further} ELSE x.i END"
