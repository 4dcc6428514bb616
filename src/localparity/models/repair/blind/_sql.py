"""Group-blind scores as SQL: the features, the rank and the scale, as stages of an expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from localparity._types import Group
from localparity.models.repair._score_map import ScoreMap
from localparity.models.repair._sql import Dialect, Stage, score_stage
from localparity.models.repair.blind._features import GroupFeatures
from localparity.models.repair.blind._nested_score import NestedScore

if TYPE_CHECKING:
    from localparity.models.repair.blind._repair import GroupBlindRepair

_ENDS = np.array([0.0, 1.0])
_TOLERANCE = 1e-6
"""By how much the probabilities of a row may miss the sum of 1, as in `as_group_probabilities`."""


def blind_sql(
    repair: GroupBlindRepair,
    dialect: Dialect,
    score: str,
    group_probabilities: Sequence[str] | Sequence[Sequence[str]],
) -> str:
    """Return the expression of the repaired score, given the names of the columns."""
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
        raise ValueError(f"group_probabilities must name a column for each of {listed}, got {columns!r}")
    return tables


def _checked(dialect: Dialect, tables: Sequence[Sequence[str]]) -> Stage:
    """Return the score, NULL where it or a probability is wrong, and the probabilities over their sum."""
    conditions = [f"x.s >= {dialect.number(0.0)} AND x.s <= {dialect.number(1.0)}"]
    shares: dict[str, str] = {}
    for at, table in enumerate(tables):
        given = [f"x.p{at}_{group}" for group in range(len(table))]
        numbers = [f"CAST({name} AS {dialect.double})" for name in given]
        total = f"({' + '.join(numbers)})"
        conditions += [f"{name} >= 0" for name in given]
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
