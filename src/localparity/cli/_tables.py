"""The rows of a file to train on: features, classes, groups and weights."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from typer import Option

from localparity._io._duckdb import check_remote, remote_among, without_password
from localparity._io._files import sha256_of
from localparity._io._numbers import is_missing_text
from localparity._io._table import Table, unfit_features
from localparity._types import FloatArray
from localparity._validation import require
from localparity.cli._commands import note
from localparity.cli._options import (
    DropOption,
    EncodingOption,
    FeatureOption,
    SheetOption,
    TextOption,
    WeightOption,
)

if TYPE_CHECKING:
    from localparity.results import ModelCard


# Files on other machines: read where the option allows it, and said to be.


RemoteOption = Annotated[
    bool,
    Option("--allow-remote", help="Read files on other machines, through DuckDB's extensions, or databases."),
]


def announce_remote(files: Sequence[str], *, allow_remote: bool) -> None:
    """Check that files on other machines may be read, and say which of them will be fetched."""
    check_remote(files, allow_remote=allow_remote)
    for file in remote_among(files):
        note(f"fetching {without_password(file)}; DuckDB installs its extension for that if it has none")


def open_file(file: str, *, allow_remote: bool, **options: Any) -> Table:
    """The rows of a file, wherever it is, with the options of `open_table`."""
    announce_remote([file], allow_remote=allow_remote)
    return Table(file, allow_remote=allow_remote, **options)


class TrainingTable(NamedTuple):
    """The features, the class, the groups by their columns, and the weight, of each row."""

    features: Any
    classes: NDArray[Any]
    groups: dict[str, NDArray[Any]]
    weights: NDArray[Any] | None


@dataclass(frozen=True, kw_only=True)
class PeopleOptions:
    """How the rows of a file are read to train on."""

    weight: WeightOption = None
    drop: DropOption = None
    feature: FeatureOption = None
    text: TextOption = None
    encoding: EncodingOption = None
    sheet: SheetOption = None
    allow_remote: RemoteOption = False


def read_training_table(
    file: str,
    target: str,
    group: Sequence[str],
    options: PeopleOptions,
    *,
    extra: str,
    keep_group: bool = False,
) -> TrainingTable:
    """Return the rows of a file; every column without another role is a feature.

    A column that looks like an identifier or the class is an error, unless `feature` names it. `extra` brings
    the data frame, and what the rows are then trained with.
    """
    if target in group:
        raise ValueError(f"column {target!r} must be --target or --group, not both")
    table = open_file(file, encoding=options.encoding, sheet=options.sheet, allow_remote=options.allow_remote)
    drop, text, feature = options.drop or [], options.text or [], options.feature or []
    table.check([*drop, *text, *feature])
    weight = [options.weight] if options.weight else []
    known = table.read(numbers=weight, values=[target], groups=group)
    other_roles = {target, *drop, *weight, *([] if keep_group else group)}
    names = [name for name in table.columns if name not in other_roles]
    if not names:
        raise ValueError(f"{table.name} has no column left for a feature")
    features = read_features(table, names, text, extra=extra, advice="use --text {} if it is a text")
    judged = [name for name in names if name not in (*group, *feature)]
    for name, reason in unfit_features(table, judged, target).items():
        raise ValueError(
            f"column {name!r} of {table.name} {reason}; use --drop {name} to leave it out, or "
            f"--feature {name} if it is known when the model is used"
        )
    table.warn({value for name in group for value in known[name].tolist()})
    groups = {name: known[name] for name in group}
    return TrainingTable(features, known[target], groups, known[weight[0]] if weight else None)


def read_features(
    table: Table, names: Iterable[str], texts: Collection[str], *, extra: str, advice: str
) -> Any:
    """Return columns as a data frame: numbers if every value is one, texts if none is or `texts` has it.

    A missing value is NaN among numbers and None among texts. `extra` brings the data frame, `advice` ends
    the message about a column that has both, with the column's name for {}.
    """
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
        columns[name] = _texts(values) if numbers is None else numbers
    return pandas.DataFrame(columns)


def _texts(values: Sequence[Any]) -> NDArray[Any]:
    """Return values as texts, None where missing."""
    return np.array([None if value is None else str(value) for value in values], dtype=object)


def _numbers(values: Sequence[Any], source: str, advice: str) -> FloatArray | None:
    """Return values as numbers, NaN where missing, or None if none of them is a number."""
    found = np.array([_number(value) for value in values], dtype=np.float64)
    odd = [row for row, value in enumerate(values) if value is not None and np.isnan(found[row])]
    if odd and len(odd) + values.count(None) == len(values):
        return None
    if odd:
        raise ValueError(
            f"{source} has {str(values[odd[0]])!r} in data row {odd[0] + 1} and numbers in "
            f"{np.count_nonzero(~np.isnan(found)):,} of {len(values):,} rows; {advice}"
        )
    return found


def _number(value: Any) -> float:
    """Return a value of a file as a number, NaN if it is none."""
    try:
        return float("nan" if value is None else value)
    except (TypeError, ValueError):
        return float("nan")


# What commands add to a model card, and what they read from one.


IntendedUseOption = Annotated[
    str | None, typer.Option(help="What the model is for, in your words, for its model card.")
]


def complete_card(card: ModelCard, file: str, intended_use: str | None) -> ModelCard:
    """Return a card with the checksum of the file that was read, and what its user says."""
    known = replace(card, file_sha256=_file_sha256(file))
    return known if intended_use is None else replace(known, intended_use=intended_use)


def warn_of_training_file(folder: Path, file: str) -> None:
    """Warn where a file is the one that the model of a folder was made from, as far as its card tells."""
    from localparity.results import ModelCard

    try:
        card = ModelCard.read(folder)
    except ValueError:  # a model needs no card
        return
    if card.file_sha256 is not None and card.file_sha256 == _file_sha256(file):
        hint = f"; {folder / 'model_card.md'} has an audit of people held out" if card.held_out else ""
        warnings.warn(
            f"{file} is the file that the model in {folder} was fitted on, so this audit does not show how "
            f"it does on other people{hint}",
            stacklevel=2,
        )


def _file_sha256(file: str) -> str | None:
    """Return the checksum of a file; several files, or a query, have none."""
    path = Path(file)
    return sha256_of(path) if path.is_file() else None
