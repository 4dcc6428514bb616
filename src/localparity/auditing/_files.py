"""From files, queries and tables to the rows that are audited, those that lack a value settled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from typing import Any, Literal, get_args

from localparity._io._table import Table, as_group_columns, as_table
from localparity._validation import InputError, MissingValueError, as_choice, setting, warn_of_unmatched
from localparity.auditing._control import Strata
from localparity.auditing._missing import (
    GROUP_OPTIONS,
    KINDS,
    NOTHING_MISSING,
    ROW_OPTION,
    MissingPolicy,
    MissingRows,
    rows_without,
)
from localparity.auditing._scale import DATA, ScoreScale, as_data_range
from localparity.counts import ScoreCounts
from localparity.counts._score_counts import Data
from localparity.engines import from_duckdb, from_ibis, from_spark
from localparity.engines._missing_rows import LeftOutRows, count_missing, name_missing_group, without_missing
from localparity.engines._spark import read_spark
from localparity.engines._table import ScoreColumns
from localparity.predictions import Predictions

Engine = Literal["duckdb", "spark", "ibis"]

_REFUSE = MissingPolicy("raise", "raise", ())


def read_people(
    source: Any,
    columns: dict[str, Any],
    engine: Engine,
    options: Mapping[str, Any],
    *,
    allow_remote: bool,
    **asked: Any,
) -> tuple[Data, MissingRows, dict[str, Any]]:
    """The people in a table by its columns, those left out since they lack a value, and options for them."""
    as_choice(engine, "engine", get_args(Engine))
    further = dict(options)
    policy = MissingPolicy.taken_from(further)
    scaled = ScoreScale.of(options.get("scale", "score"), asked["score_range"])
    asked["score_range"], from_data = scaled.score_range, scaled.from_data
    further |= {"missing_groups": policy.groups} | ({"score_range": DATA} if from_data else {})
    cluster, control = columns.pop("cluster"), _control_columns(columns, further.pop("control", None))
    if engine != "duckdb":
        needs = {"cluster": cluster, "control": control or None, "missing_groups": policy != _REFUSE or None}
        for name, given in (needs | {"score_range='data'": from_data or None}).items():
            if given is not None:
                raise InputError(f"needs {setting(engine='duckdb')}, got {engine!r}", name)
        count = from_ibis if engine == "ibis" else from_spark
        if engine == "spark" and isinstance(source, str | PathLike):
            source = read_spark(fspath(source), allow_remote=allow_remote)
        return count(source, **columns, **asked), NOTHING_MISSING, further
    table = as_table(source, allow_remote=allow_remote)
    if from_data:
        ends = table.range_of(columns["score"])
        asked["score_range"] = as_data_range(*ends, f"column {columns['score']!r}")
    read: Callable[[Table], Data] = partial(from_duckdb, **columns, **asked)
    if cluster is not None:
        if control:
            raise InputError("must be None with cluster", "control")
        read = partial(Predictions.read, **columns, cluster=cluster, score_range=asked["score_range"])
    groups = as_group_columns(columns["score"], columns["group"])
    named = ScoreColumns(**columns | {"group": groups}, control=control)
    data, missing = _read_rows(read, table, named, policy)
    if control and isinstance(data, ScoreCounts):
        strata = Strata.of_columns(data, len(groups) - len(control))
        return strata.together, missing, further | {"control_features": strata}
    return data, missing, further


def _control_columns(columns: dict[str, Any], control: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns of the strata, which rows are counted by as they are by those of the groups."""
    found = (control,) if isinstance(control, str) else tuple(control or ())
    if found:
        groups = as_group_columns(columns["score"], columns["group"])
        repeated = next((name for name in found if name in (columns["score"], *groups)), None)
        if repeated is not None:
            raise InputError("cannot be both a control and the score or a group", column=repeated)
        columns["group"] = (*groups, *found)
    return found


def _read_rows(
    read: Callable[[Table], Data], table: Table, columns: ScoreColumns, policy: MissingPolicy
) -> tuple[Data, MissingRows]:
    """The rows of a table that are counted, and how many were left out."""
    kept, counted = table, LeftOutRows()
    if policy != _REFUSE or columns.control:
        counted = count_missing(table, columns, policy.texts)
        if counted.groups and (policy.groups == "raise" or counted.without_group):
            raise _no_group(columns, counted)
        warn_of_unmatched(counted.unmatched)
        asked: dict[str, Any] = {"groups": policy.groups, "missing": policy.rows, "texts": policy.texts}
        kept = without_missing(table, columns, strata=counted.strata > 0, **asked)
    try:
        data = read(kept) if columns.control else name_missing_group(read(kept))
    except MissingValueError as error:
        explained = _explained(error, table, columns, policy.texts)
        if explained is None:
            raise
        raise explained from error
    found = NOTHING_MISSING
    if policy.rows == "drop":
        found = MissingRows(scores=counted.scores, labels=counted.labels, weights=counted.weights)
    if policy.groups == "drop" and counted.groups:
        found = replace(found, groups=counted.groups, missing_groups="drop")
    return data, found


def _explained(
    error: MissingValueError, table: Table, columns: ScoreColumns, texts: tuple[str, ...]
) -> InputError | None:
    """An error of a row that lacks a value, with how many such rows there are, and what to do."""
    counted = count_missing(table, columns, texts)
    named = {"scores": columns.score, "labels": columns.label, "weights": columns.weight}
    for kind, name in named.items():
        rows = getattr(counted, kind)
        if rows and error.column == name:
            reason = f"{error.reason}; {rows_without(rows, KINDS[kind])}: {ROW_OPTION}"
            return MissingValueError(reason, column=error.column, file=error.file, row=error.row)
    return _no_group(columns, counted) if counted.groups else None


def _no_group(columns: ScoreColumns, counted: LeftOutRows) -> InputError:
    names = " and ".join(map(repr, columns.own_group))
    if counted.without_group:
        which = "its" if counted.groups == counted.rows else "the otherwise complete"
        return MissingValueError(f"column {names} has no value in any of {which} {counted.groups:,} rows")
    rows = f"{counted.groups:,} of {counted.rows:,} rows"
    return MissingValueError(f"column {names} has no value in {rows}; {GROUP_OPTIONS}")
