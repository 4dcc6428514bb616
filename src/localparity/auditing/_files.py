"""From files, queries and tables to the people that are audited, by their own scores or by a model's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from localparity._io._files import sha256_of
from localparity._io._numbers import is_missing_text
from localparity._io._table import Table, as_group_columns, as_table
from localparity._text import brief
from localparity._types import FloatArray, ScoreRange
from localparity._validation import (
    FileColumn,
    InputError,
    MissingValueError,
    as_choice,
    require,
    setting,
    warn_of_unmatched,
)
from localparity.auditing._missing import (
    GROUP_OPTIONS,
    KINDS,
    NOTHING_MISSING,
    ROW_OPTION,
    MissingPolicy,
    MissingRows,
    rows_without,
)
from localparity.auditing._options import AuditOptions
from localparity.auditing._people import People, Strata, as_data_range, check_scale
from localparity.counts import ScoreCounts
from localparity.counts._score_counts import Data, as_counts, as_data
from localparity.engines import from_duckdb, from_ibis, from_spark
from localparity.engines._missing_rows import LeftOutRows, count_missing, name_missing_group, without_missing
from localparity.engines._spark import read_spark
from localparity.engines._table import ScoreColumns
from localparity.predictions import Predictions

if TYPE_CHECKING:
    from localparity.models._card import ModelCard

Engine = Literal["duckdb", "spark", "ibis"]

_REFUSE = MissingPolicy("raise", "raise", ())


@dataclass(frozen=True, kw_only=True)
class AuditColumns:
    """The columns of an audit by their use; the score is None, and there may be a target, with a model."""

    score: str | None
    group: str | Sequence[str]
    label: str | None = None
    weight: str | None = None
    cluster: str | None = None
    control: str | Sequence[str] | None = None
    target: str | None = None

    def __post_init__(self) -> None:
        repeated = next((name for name in self.controls if name in (self.score, *self.groups)), None)
        if repeated is not None:
            raise InputError("cannot be both a control and the score or a group", column=repeated)

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns of the groups."""
        return as_group_columns(self.score or "", self.group)

    @property
    def controls(self) -> tuple[str, ...]:
        """The columns of the strata."""
        return (self.control,) if isinstance(self.control, str) else tuple(self.control or ())

    def named(self) -> dict[str, str | Sequence[str] | None]:
        """The columns that provenance names, by their use."""
        uses = ("score", "group", "target", "label", "weight", "cluster")
        return {use: getattr(self, use) for use in uses}


def read_people(
    source: Any, columns: AuditColumns, options: AuditOptions, *, engine: Engine, allow_remote: bool
) -> People:
    """The people in files or a table, counted by an engine."""
    as_choice(engine, "engine", get_args(Engine))
    if columns.score is None:
        raise InputError("must name the column of the scores, got None; or pass a model", "score")
    check_scale(options, control=bool(columns.controls), name="control")
    if engine != "duckdb":
        _check_engine(columns, options, engine)
        count: Callable[..., ScoreCounts] = from_ibis if engine == "ibis" else from_spark
        if engine == "spark" and isinstance(source, str | PathLike):
            source = read_spark(fspath(source), allow_remote=allow_remote)
        score_range = (0.0, 1.0) if isinstance(options.score_range, str) else options.score_range
        return _people(_counted(count, source, columns, options, score_range), options)
    table = as_table(source, allow_remote=allow_remote)
    score_range = range_in_table(table, columns.score, options)

    def read(table: Table) -> Data:
        if columns.cluster is None and options.pos_label is None:
            return _counted(from_duckdb, table, columns, options, score_range)
        if columns.controls:
            other = "pos_label" if columns.cluster is None else "cluster"
            raise InputError(f"must be None with {setting(other)}", "control")
        return Predictions.read(
            table,
            score=str(columns.score),
            group=columns.groups,
            label=columns.label,
            weight=columns.weight,
            cluster=columns.cluster,
            score_range=score_range,
            pos_label=options.pos_label,
        )

    named = ScoreColumns(
        columns.score,
        (*columns.groups, *columns.controls),
        columns.label,
        columns.weight,
        score_range,
        control=columns.controls,
    )
    try:
        data, missing = _read_rows(read, table, named, options.policy)
    except InputError as error:
        if options.pos_label is None and error.column == columns.label and type(error) is InputError:
            reason = f"{error.reason}; pass {setting('pos_label')} if there are other labels"
            raise InputError(reason, column=error.column, file=error.file, row=error.row) from error
        raise
    return _people(data, options, missing, len(columns.groups) if columns.controls else None)


def _people(
    data: Data, options: AuditOptions, missing: MissingRows = NOTHING_MISSING, width: int | None = None
) -> People:
    """People as they were counted: by strata too, where the first `width` columns are those of the groups."""
    strata = None
    if width is not None and isinstance(data, ScoreCounts):
        strata = Strata.of_columns(data, width)
        data = strata.together
    score_range = data.score_range if isinstance(options.score_range, str) else options.score_range
    blanks = options.policy.blanks
    checked = as_data(options.comparison, data, None, None, score_range=score_range, blanks=blanks)
    return People(as_counts(checked), missing, strata)


def _counted(
    count: Callable[..., ScoreCounts],
    source: Any,
    columns: AuditColumns,
    options: AuditOptions,
    score_range: ScoreRange,
) -> ScoreCounts:
    """The counts that an engine makes."""
    return count(
        source,
        score=columns.score,
        group=(*columns.groups, *columns.controls),
        label=columns.label,
        weight=columns.weight,
        score_range=score_range,
        epsilons=options.epsilons,
        criterion=options.criterion,
        compare=options.compare,
    )


def _check_engine(columns: AuditColumns, options: AuditOptions, engine: Engine) -> None:
    """Check that nothing is asked for that only DuckDB does."""
    needs = {
        setting("cluster"): columns.cluster is not None,
        setting("control"): bool(columns.controls),
        setting("pos_label"): options.pos_label is not None,
        setting("missing_groups"): options.policy != _REFUSE,
        setting(score_range=options.score_range): isinstance(options.score_range, str),
    }
    for name, asked in needs.items():
        if asked:
            raise InputError(f"{name} needs {setting(engine='duckdb')}, got {engine!r}")


def range_in_table(table: Table, score: str, options: AuditOptions) -> ScoreRange:
    """The range that was given, or that of a column."""
    if not isinstance(options.score_range, str):
        return options.score_range
    return as_data_range(*table.range_of(score), FileColumn(score))


def _read_rows(
    read: Callable[[Table], Data], table: Table, columns: ScoreColumns, policy: MissingPolicy
) -> tuple[Data, MissingRows]:
    """The rows of a table that are counted, and how many were left out."""
    complete, counted = table, LeftOutRows()
    if policy != _REFUSE or columns.control:
        counted = count_missing(table, columns, policy.texts)
        if counted.groups and (policy.groups == "raise" or counted.without_group):
            raise _no_group(columns, counted)
        warn_of_unmatched(counted.unmatched)
        complete = without_missing(
            table,
            columns,
            groups=policy.groups,
            missing=policy.rows,
            texts=policy.texts,
            strata=counted.strata > 0,
        )
    try:
        data = read(complete) if columns.control else name_missing_group(read(complete))
    except MissingValueError as error:
        explained = _explained(error, table, columns, policy.texts)
        if explained is None:
            raise
        raise explained from error
    missing = NOTHING_MISSING
    if policy.rows == "drop":
        missing = MissingRows(scores=counted.scores, labels=counted.labels, weights=counted.weights)
    if policy.groups == "drop" and counted.groups:
        missing = replace(missing, groups=counted.groups, missing_groups="drop")
    return data, missing


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


# Files that a saved model scores.


class Scorer(NamedTuple):
    """A saved classifier, its folder, and whether it needs the groups of the people that it scores."""

    classifier: Any
    folder: Path
    needs_group: bool

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Scorer:
        """The model of a folder, which must take features."""
        from localparity.models._folder import load, needs_group  # which import scikit-learn

        model = load(Path(folder))
        if not hasattr(model, "predict_proba"):
            raise InputError(f"{folder} holds a {type(model).__name__}, which takes scores, not features")
        return cls(model, Path(folder), needs_group(model))

    def was_fitted_on(self, file: str) -> bool:
        """Whether a file is the one that the model was fitted on, as far as its card tells."""
        card = self.card
        return card is not None and card.file_sha256 is not None and card.file_sha256 == file_sha256(file)

    @property
    def card(self) -> ModelCard | None:
        """The model's card, which it does not need."""
        from localparity.models._card import ModelCard

        try:
            return ModelCard.read(self.folder)
        except ValueError:
            return None

    @property
    def features(self) -> list[str]:
        """The columns that the model takes."""
        if not hasattr(self.classifier, "feature_names_in_"):
            raise InputError("the model was fitted on an array without column names")
        return list(map(str, self.classifier.feature_names_in_))

    def score(self, table: Table, group: Sequence[str]) -> FloatArray:
        """The score of each row of a file; the groups are read where the model needs them."""
        texts = self.classifier.text_features_
        features = read_features(table, self.features, texts, extra="data", advice="the model takes numbers")
        groups = {"sensitive_features": table.read(numbers=[], groups=group)} if self.needs_group else {}
        scores: FloatArray = self.classifier.predict_proba(features, **groups)[:, 1]
        return scores

    def labels(self, classes: NDArray[Any], column: str, source: str) -> NDArray[np.int64]:
        """1 for the class whose probability is the score; a file may write a class as a text."""
        negative, positive = map(str, self.classifier.classes_)
        texts = [str(value) for value in classes.tolist()]
        for row, text in enumerate(texts):
            if text not in (negative, positive):
                raise InputError(
                    f"must be {negative!r} or {positive!r}, as the model's classes, got {brief(text)} at "
                    f"data row {row + 1}",
                    column=column,
                    file=source,
                    row=row,
                )
        return np.asarray([text == positive for text in texts], dtype=np.int64)


def score_people(table: Table, scorer: Scorer, columns: AuditColumns, options: AuditOptions) -> People:
    """The people in a table with the scores that a model gives them."""
    groups, controls = columns.groups, columns.controls
    numbers = [name for name in (columns.label, columns.weight) if name]
    values = [name for name in (columns.target, columns.cluster) if name]
    known: Mapping[str, Any] = table.read(numbers=numbers, values=values, groups=[*groups, *controls])
    labels = known[columns.label] if columns.label else None
    if columns.target:
        labels = scorer.labels(known[columns.target], columns.target, table.name)
    table.warn({value for name in groups for value in known[name].tolist()})
    _warn_of_training_file(scorer, table.name)
    joined = replace(options, missing_values=table.as_joined(options.policy.texts))
    return People.of_arrays(
        joined,
        y_true=labels,
        y_score=scorer.score(table, groups),
        sensitive_features={name: known[name] for name in groups},
        sample_weight=known[columns.weight] if columns.weight else None,
        cluster=known[columns.cluster] if columns.cluster else None,
        control_features={name: known[name] for name in controls} if controls else None,
    )


def read_features(
    table: Table, names: Collection[str], texts: Collection[str], *, extra: str, advice: str
) -> Any:
    """Columns as a data frame: numbers if every value is one, texts if none is or `texts` has the column.

    `extra` brings the data frame; `advice` ends the message about a column that has both, named by {}.
    """
    if not names:
        raise ValueError(f"{table.name} has no column left for a feature")
    pandas = require("pandas", extra=extra)
    columns = table.read(numbers=[], values=names)
    for name, column in columns.items():
        if column.dtype.kind in "biuf" and name not in texts:
            columns[name] = column.astype(np.float64)
            continue
        values = [None if is_missing_text(value) else value for value in column.tolist()]
        numbers = None
        if name not in texts:
            numbers = _numbers(values, f"column {name!r} of {table.name}", advice.format(name))
        if numbers is None:
            text = [None if value is None else str(value) for value in values]
            columns[name] = np.array(text, dtype=object)
        else:
            columns[name] = numbers
    return pandas.DataFrame(columns)


def _numbers(values: Sequence[Any], source: str, advice: str) -> FloatArray | None:
    """Values as numbers, NaN where missing, or None if none of them is a number."""
    numbers = np.array([_number(value) for value in values], dtype=np.float64)
    odd = [row for row, value in enumerate(values) if value is not None and np.isnan(numbers[row])]
    if odd and len(odd) + values.count(None) == len(values):
        return None
    if odd:
        raise ValueError(
            f"{source} has {str(values[odd[0]])!r} in data row {odd[0] + 1} and numbers in "
            f"{np.count_nonzero(~np.isnan(numbers)):,} of {len(values):,} rows; {advice}"
        )
    return numbers


def _number(value: Any) -> float:
    """A value of a file as a number, NaN if it is none."""
    try:
        return float("nan" if value is None else value)
    except (TypeError, ValueError):
        return float("nan")


def _warn_of_training_file(scorer: Scorer, file: str) -> None:
    """Warn where a file is the one that a model was fitted on."""
    folder, card = scorer.folder, scorer.card
    if card is not None and scorer.was_fitted_on(file):
        hint = f"; {folder / 'model_card.md'} has an audit of people held out" if card.held_out else ""
        warnings.warn(
            f"{file} is the file that the model in {folder} was fitted on, so this audit does not show how "
            f"it does on other people{hint}",
            stacklevel=2,
        )


def file_sha256(file: str) -> str | None:
    """The checksum of a file; several files, or a query, have none."""
    path = Path(file)
    return sha256_of(path) if path.is_file() else None
