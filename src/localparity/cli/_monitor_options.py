"""What all commands of `localparity monitor` take: where the monitor is, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from localparity._validation import as_count, as_fraction, as_probability
from localparity.cli._commands import local_path
from localparity.cli._options import check_folder
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
    """What is asked of each period, checked in the words of the command."""

    epsilon: float
    criterion: Any
    compare: Any
    disclosure_limit: int
    confidence: float
    max_mcdp: float | None
    alarm_rate: float

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
