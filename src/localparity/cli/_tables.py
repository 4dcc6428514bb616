"""The rows of a file to train on: features, classes, groups and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from numpy.typing import NDArray
from typer import Option

from localparity._io._duckdb import check_remote, remote_among, without_password
from localparity._io._table import Table, unfit_features
from localparity.auditing._files import file_sha256, read_features
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


# What commands add to a model card, and what they read from one.


IntendedUseOption = Annotated[
    str | None, typer.Option(help="What the model is for, in your words, for its model card.")
]
PromiseOption = Annotated[
    float | None, typer.Option(help="Promise the bound for new people, with this probability.")
]


def complete_card(card: ModelCard, file: str, intended_use: str | None) -> ModelCard:
    """Return a card with the checksum of the file that was read, and what its user says."""
    known = replace(card, file_sha256=file_sha256(file))
    return known if intended_use is None else replace(known, intended_use=intended_use)
