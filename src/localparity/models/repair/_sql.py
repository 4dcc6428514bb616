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
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np

from localparity._io._duckdb import quote_name, quote_text
from localparity._types import FloatArray, Group
from localparity._validation import InputError, as_choice
from localparity.models.repair._maps import ScoreMap

if TYPE_CHECKING:
    from localparity.models.repair._dual import GroupFeatures, NestedScore
    from localparity.models.repair._group_blind import GroupBlindRepair

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
    """How a database writes names, values, stages and maps."""

    double: ClassVar[str] = "DOUBLE"
    first: ClassVar[int] = 1
    """The index of an array's first element."""

    most_knots: ClassVar[int] = 2**20

    @abstractmethod
    def array(self, numbers: FloatArray) -> str:
        """Return an array of doubles."""

    def name(self, column: str) -> str:
        """Return a column's name, quoted."""
        return quote_name(column)

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

    def text(self, value: str) -> str:
        """Return a text as a literal."""
        return quote_text(value)

    def is_group(self, group: Group) -> str:
        """Return the condition that a row, whose columns are ``x.g0``, ``x.g1`` and so on, is of a group."""
        parts = group if isinstance(group, tuple) else (group,)
        return " AND ".join(f"x.g{place} = {self.value(part)}" for place, part in enumerate(parts))

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

    def between(self, value: str, low: str, high: str) -> str:
        """Return a value, or the end of a range that it is beyond."""
        return f"least(greatest({value}, {low}), {high})"

    def inside(self, score_map: ScoreMap) -> str:
        """Return the condition that a score is in the range of a map; NaN is above it in every dialect."""
        low, high = map(self.number, score_map.score_range)
        return f"x.s >= {low} AND x.s <= {high}"

    def _lines(self, maps: Mapping[str, ScoreMap]) -> dict[str, Lines]:
        """Return the lines of maps, unless there are too many."""
        lines = {condition: Lines.of(score_map) for condition, score_map in maps.items()}
        knots = sum(pieces.knots.size for pieces in lines.values())
        if knots > self.most_knots:
            raise ValueError(
                f"the maps must have at most {self.most_knots:,} knots for this dialect, got {knots:,}; "
                "fit the repair on fewer distinct scores, such as counts on a grid"
            )
        return lines

    def follow(self, stages: Sequence[Stage], maps: Mapping[str, ScoreMap]) -> str:
        """Return the expression that takes ``x.s`` of the last stage through the map whose condition holds.

        Where ``x.s`` is NULL or outside of the range of the maps, or where no condition holds, it is NULL.
        """
        lines = self._lines(maps)
        knots, values = (self.array(np.concatenate(part)) for part in zip(*lines.values(), strict=True))
        first, last, at = "CASE", "CASE", self.first
        for condition, line in lines.items():
            pieces = line.knots.size - 1
            first += f" WHEN {self.inside(maps[condition])} AND {condition} THEN {at}"
            last += f" WHEN {condition} THEN {at + pieces - 1}"
            at += pieces + 1
        unchanged = {name: f"x.{name}" for name in ("s", "k", "v")}
        most = max(line.knots.size for line in lines.values()) - 1
        search = [{**unchanged, "i": f"{first} END", "last": f"{last} END"}]
        search += [
            {**unchanged, "i": self._step(2**bit), "last": "x.last"}
            for bit in reversed(range((most - 1).bit_length()))
        ]
        ends = {"a": "(x.k)[x.i]", "b": "(x.k)[x.i + 1]", "va": "(x.v)[x.i]", "vb": "(x.v)[x.i + 1]"}
        along = self.between("x.va + (x.s - x.a) / (x.b - x.a) * (x.vb - x.va)", "x.va", "x.vb")
        result = f"CASE WHEN x.a = x.va AND x.b = x.vb THEN x.s ELSE {along} END"
        before = [*stages[:-1], {**stages[-1], "k": knots, "v": values}]
        return self.chain([*before, *search, {"s": "x.s", **ends}], result)

    def _step(self, size: int) -> str:
        """Return the piece after a step of the bisection, which never looks beyond the last."""
        further = f"x.i + {size}"
        return (
            f"CASE WHEN {further} > x.last THEN x.i WHEN (x.k)[{further}] <= x.s THEN {further} ELSE x.i END"
        )


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


_DIALECTS: dict[str, Dialect] = {
    "duckdb": _DuckDB(),
    "postgres": _Postgres(),
    "spark": _Spark(),
}


def as_dialect(name: str) -> Dialect:
    """Return the dialect of a name, or raise a ValueError."""
    return _DIALECTS[as_choice(name, "dialect", tuple(_DIALECTS))]


def score_stage(dialect: Dialect, score: str, columns: Mapping[str, str]) -> Stage:
    """Return the first stage: the score as a double, and other columns of the table, by their short names."""
    named = {short: dialect.name(column) for short, column in columns.items()}
    return {"s": f"CAST({dialect.name(score)} AS {dialect.double})", **named}


def group_maps_sql(dialect: Dialect, score: str, group: Sequence[str], maps: Mapping[Group, ScoreMap]) -> str:
    """Return the expression that takes a score through the map of the row's group."""
    for name in maps:
        parts = name if isinstance(name, tuple) else (name,)
        if len(parts) != len(group):
            raise InputError(f"must name a column for each part of {name!r}, got {', '.join(group)}", "group")
    first = score_stage(dialect, score, {f"g{place}": column for place, column in enumerate(group)})
    return dialect.follow([first], {dialect.is_group(name): score_map for name, score_map in maps.items()})


_ENDS = np.array([0.0, 1.0])
_TOLERANCE = 1e-6
"""By how much the probabilities of a row may miss the sum of 1, as in `as_group_probabilities`."""


def blind_sql(
    repair: GroupBlindRepair,
    dialect: Dialect,
    score: str,
    group_probabilities: Sequence[str] | Sequence[Sequence[str]],
) -> str:
    """Return the expression of a group-blind score: its features, then its rank and its scale."""
    tables = _as_tables(group_probabilities, repair.groups_, len(repair.features_.labels))
    names = {f"p{at}_{group}": name for at, table in enumerate(tables) for group, name in enumerate(table)}
    stages = [score_stage(dialect, score, names), _checked(dialect, tables)]
    if repair.score_ is not None:
        stages.append(_features(dialect, repair.features_, len(tables)))
        stages += [_margins(dialect, repair.score_), _rank(dialect, repair.score_)]
    scale = ScoreMap(_ENDS, _ENDS) if repair.scale_ is None else repair.scale_
    return dialect.follow(stages, {"x.s IS NOT NULL": scale})


def _as_tables(
    columns: Sequence[str] | Sequence[Sequence[str]], groups: tuple[Group, ...], n_labels: int
) -> list[list[str]]:
    """Return the columns of each table of probabilities, one table for all labels or one for each."""
    parts = list(columns)
    tables = (
        [[str(part) for part in parts]]
        if all(isinstance(part, str) for part in parts)
        else list(map(list, parts))
    )
    if any(len(table) != len(groups) for table in tables) or len(tables) not in (1, n_labels):
        listed = ", ".join(map(repr, groups))
        raise InputError(f"must name a column for each of {listed}, got {columns!r}", "group_probabilities")
    return tables


def _checked(dialect: Dialect, tables: Sequence[Sequence[str]]) -> Stage:
    """Return the score, NULL where it or a probability is wrong, and the probabilities over their sum."""
    conditions = [f"x.s >= {dialect.number(0.0)} AND x.s <= {dialect.number(1.0)}"]
    shares: dict[str, str] = {}
    for at, table in enumerate(tables):
        columns = [f"x.p{at}_{group}" for group in range(len(table))]
        numbers = [f"CAST({name} AS {dialect.double})" for name in columns]
        total = f"({' + '.join(numbers)})"
        conditions += [f"{name} >= 0" for name in columns]
        conditions.append(f"abs({total} - 1) <= {dialect.number(_TOLERANCE)}")
        shares |= {f"q{at}_{group}": f"{number} / {total}" for group, number in enumerate(numbers)}
    return {"s": f"CASE WHEN {' AND '.join(conditions)} THEN x.s END", **shares}


def _features(dialect: Dialect, features: GroupFeatures, tables: int) -> Stage:
    """Return the columns that the multipliers are applied to."""
    chances = {None: "", 0: "(1 - x.s) * ", 1: "x.s * "}
    columns: dict[str, str] = {"s": "x.s"}
    for at, label in enumerate(features.labels):
        for group in features.compared:
            place = len(columns) - 1
            share = f"{chances[label]}x.q{min(at, tables - 1)}_{group}"
            columns[f"f{place}"] = f"{share} / {dialect.number(features.masses[place])}"
    return columns


def _margins(dialect: Dialect, nested: NestedScore) -> Stage:
    """Return by how much a row is selected at each rate."""
    columns = {"s": "x.s"}
    for at, (multipliers, threshold) in enumerate(zip(nested.multipliers, nested.thresholds, strict=True)):
        terms = [f" - {dialect.number(size)} * x.f{place}" for place, size in enumerate(multipliers)]
        columns[f"m{at}"] = f"x.s - {dialect.number(threshold)}{''.join(terms)}"
    return columns


def _rank(dialect: Dialect, nested: NestedScore) -> Stage:
    """Return the share of rates at which a row is selected, in place of its score."""
    parts = [
        f"CASE WHEN x.m{at} > 0 AND x.m{at + 1} > 0 THEN {width} "
        f"WHEN x.m{at} > 0 THEN {width} * x.m{at} / (x.m{at} - x.m{at + 1}) "
        f"WHEN x.m{at + 1} > 0 THEN {width} * x.m{at + 1} / (x.m{at + 1} - x.m{at}) "
        f"ELSE {dialect.number(0.0)} END"
        for at, width in enumerate(map(dialect.number, np.diff(nested.rates)))
    ]
    rank = dialect.between(" + ".join(parts), dialect.number(0.0), dialect.number(1.0))
    return {"s": f"CASE WHEN x.s IS NOT NULL THEN {rank} END"}
