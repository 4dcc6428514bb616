"""What all commands of `localparity monitor` take: where the monitor is, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from localparity._io._tables import Table
from localparity._validation import UNKNOWN, as_count, as_fraction, as_probability, warn_of_unmatched
from localparity.audit._missing import MissingPolicy, MissingRows
from localparity.cli._commands import local_path
from localparity.cli._options import (
    CompareOption,
    ConfidenceOption,
    CriterionOption,
    EpsilonOption,
    check_folder,
)
from localparity.cli._printing import note
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.engines._missing import count_missing, without_missing
from localparity.engines._table import ScoreColumns
from localparity.monitoring import Monitor
from localparity.monitoring._databases import is_database

LocationArgument = Annotated[
    str,
    typer.Argument(
        help="The folder that keeps the sketches, or a database: postgresql://USER@HOST/DATABASE#NAME or "
        "duckdb:///FILE#NAME."
    ),
]
MaxMcdpOption = Annotated[
    float | None,
    typer.Option(
        help="Raise an alarm when MCDP is significantly above this in a period, or over the last 2, 4, 8, "
        "..., 256 periods."
    ),
]
AlarmRateOption = Annotated[
    float,
    typer.Option(
        help="The most that the probability of any false alarm may be, at all looks together, ever."
    ),
]
MissingGroupsOption = Annotated[
    Literal["raise", "drop", "group"],
    typer.Option(help="Rows without a group: refuse, leave out, or a group of their own."),
]
LimitOption = Annotated[int, typer.Option(help="Nothing is said of a period with fewer people of a group.")]


def open_monitor(location: str, **options: Any) -> Monitor:
    """The monitor at a location."""
    if is_database(location):
        return Monitor(location, **options)
    folder = local_path(Path(location), None)
    check_folder(folder, "LOCATION")
    return Monitor(folder, **options)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of each period: options of a command, checked in its words."""

    epsilon: EpsilonOption = 0.0
    criterion: CriterionOption = "demographic_parity"
    compare: CompareOption = "between_groups"
    disclosure_limit: LimitOption = DISCLOSURE_LIMIT
    confidence: ConfidenceOption = 0.95
    max_mcdp: MaxMcdpOption = None
    alarm_rate: AlarmRateOption = 0.05

    def __post_init__(self) -> None:
        if self.max_mcdp is not None:
            as_fraction(self.max_mcdp, "--max-mcdp")
        as_probability(self.confidence, "--confidence")
        as_probability(self.alarm_rate, "--alarm-rate")
        as_count(self.disclosure_limit, "--disclosure-limit")

    @property
    def of_people(self) -> dict[str, Any]:
        """Who is compared and how sure intervals are, as the library takes it."""
        return {
            "epsilon": self.epsilon,
            "criterion": self.criterion,
            "compare": self.compare,
            "min_group_size": self.disclosure_limit,
            "confidence": self.confidence,
        }

    @property
    def of_series(self) -> dict[str, Any]:
        """The same with the bound."""
        return {**self.of_people, "max_mcdp": self.max_mcdp, "alarm_rate": self.alarm_rate}


def batch_rows(table: Table, columns: ScoreColumns, policy: MissingPolicy) -> Table:
    """The rows of a batch that are counted, with a note on those that lack a value."""
    counted = count_missing(table, columns, policy.texts)
    if policy.groups == "raise" and counted.groups:
        names = " and ".join(map(repr, columns.group))
        raise ValueError(
            f"column {names} has no value in {counted.groups:,} of {counted.rows:,} rows; --missing-groups "
            "drop leaves them out, --missing-groups group takes them for a group"
        )
    warn_of_unmatched(counted.unmatched)
    missing = MissingRows(groups=counted.groups, missing_groups=policy.groups)
    if policy.rows == "drop":
        missing = replace(missing, scores=counted.scores, labels=counted.labels)
    for sentence in missing.sentences:
        note(f"{table.name}: {sentence}")
    asked: dict[str, Any] = {"groups": policy.groups, "missing": policy.rows, "texts": policy.texts}
    return without_missing(table, columns, unknown=str(UNKNOWN), **asked)


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of `Asked` as options, in the place of its parameter `asked`."""
    annotations = get_type_hints(Asked, include_extras=True)
    options = [
        Parameter(
            field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=annotations[field.name]
        )
        for field in fields(Asked)
    ]
    own = signature(command, eval_str=True)
    parameters = []
    for parameter in own.parameters.values():
        parameters += options if parameter.name == "asked" else [parameter]

    @wraps(command)
    def with_options(**given: Any) -> None:
        asked = Asked(**{option.name: given.pop(option.name) for option in options})
        command(asked=asked, **given)

    with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options
