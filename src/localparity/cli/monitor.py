"""`localparity monitor`: MCDP over time, a batch at a time."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from localparity._validation import as_count, as_fraction, as_probability
from localparity.audit._wording import interval_text
from localparity.cli._options import (
    CompareOption,
    ConfidenceOption,
    CriterionOption,
    EpsilonOption,
    LabelOption,
    check_folder,
    check_labels,
    parse_range,
)
from localparity.cli._printing import note, print_json
from localparity.cli._remote import RemoteOption, announce_remote
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.metrics._window import percent
from localparity.monitoring import Monitor, PeriodResult, WindowResult
from localparity.monitoring._monitor import Every

MaxMcdpOption = Annotated[
    float | None,
    typer.Option(
        help="Exit with 1 when MCDP is significantly above this in the newest period, or over the last 2, 4, "
        "8, ..., 256 periods."
    ),
]
AlarmRateOption = Annotated[
    float,
    typer.Option(
        help="The most that the probability of any false alarm may be, at all looks together, ever."
    ),
]


def monitor(
    folder: Annotated[Path, typer.Argument(help="The folder that keeps the sketches.")],
    batch: Annotated[
        str | None, typer.Argument(help="A file of scores to append; without it, only print.")
    ] = None,
    score: Annotated[str | None, typer.Option(help="The column of the scores.")] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="The column of the groups; repeat it to compare intersections."),
    ] = None,
    label: LabelOption = None,
    at: Annotated[
        str | None,
        typer.Option(help="The time of the batch in UTC, e.g. 2026-05-17T13:00; now by default."),
    ] = None,
    batch_id: Annotated[
        str | None,
        typer.Option("--id", help="The name of the batch, counted once; the sha256 of the file by default."),
    ] = None,
    every: Annotated[Every | None, typer.Option(help="The length of a period, for a new folder.")] = None,
    score_range: Annotated[
        str | None, typer.Option(help="The lowest and the highest score there can be, for a new folder.")
    ] = None,
    epsilon: EpsilonOption = 0.0,
    criterion: CriterionOption = "demographic_parity",
    compare: CompareOption = "between_groups",
    disclosure_limit: Annotated[
        int, typer.Option(help="Nothing is said of a period with fewer people of a group.")
    ] = DISCLOSURE_LIMIT,
    confidence: ConfidenceOption = 0.95,
    json: Annotated[bool, typer.Option("--json", help="Print the series as JSON.")] = False,
    max_mcdp: MaxMcdpOption = None,
    alarm_rate: AlarmRateOption = 0.05,
    allow_duplicate: Annotated[
        bool, typer.Option("--allow-duplicate", help="Count a batch with the same rows as another.")
    ] = False,
    allow_remote: RemoteOption = False,
) -> None:
    """Append a batch of scores and print MCDP over time and since the start, with intervals and alarms.

    Exit codes: 0 when there is no alarm at the newest period, 1 when there is, 2 for wrong usage or input.
    """
    check_folder(folder, "FOLDER")
    if max_mcdp is not None:
        as_fraction(max_mcdp, "--max-mcdp")
    as_probability(confidence, "--confidence")
    as_probability(alarm_rate, "--alarm-rate")
    as_count(disclosure_limit, "--disclosure-limit")
    limits = None if score_range is None else parse_range(score_range, "--score-range")
    kept = Monitor(folder, every=every, score_range=limits)
    if batch is not None:
        check_labels(criterion, label)
        announce_remote([batch], allow_remote=allow_remote)
        named: dict[str, Any] = {"label": label, "batch_id": batch_id, "allow_duplicate": allow_duplicate}
        named["allow_remote"] = allow_remote
        _append(kept, batch, score=score, group=group, at=_parse_time(at), **named)
    asked: dict[str, Any] = {
        "criterion": criterion,
        "compare": compare,
        "min_group_size": disclosure_limit,
        "confidence": confidence,
    }
    series = kept.series(epsilon, max_mcdp=max_mcdp, alarm_rate=alarm_rate, **asked)
    if not series:
        raise typer.BadParameter(f"{folder} has no periods; name a batch to append", param_hint="FOLDER")
    whole = kept.since_start(epsilon, **asked)
    if json:
        found = {"periods": [asdict(point) for point in series], "since_start": asdict(whole)}
        print_json(found)
    else:
        _show(Console(), series, whole, epsilon, every=kept.every, confidence=confidence)
    if max_mcdp is not None and _alarmed(series[-1], max_mcdp, kept.every):
        raise typer.Exit(1)


def _append(kept: Monitor, batch: str, *, score: str | None, group: list[str] | None, **options: Any) -> None:
    if score is None or not group:
        raise typer.BadParameter("a batch needs its columns", param_hint="--score and --group")
    if not kept.append_file(batch, score=score, group=group, **options):
        note(f"{batch} was counted before and is not counted again")


def _parse_time(at: str | None) -> datetime | None:
    try:
        return None if at is None else datetime.fromisoformat(at)
    except ValueError:
        raise ValueError(f"--at must be a time such as 2026-05-17T13:00, got {at!r}") from None


def _show(
    console: Console,
    series: list[PeriodResult],
    whole: WindowResult,
    epsilon: float,
    *,
    every: str,
    confidence: float,
) -> None:
    table = Table(title=f"MCDP({epsilon:g}) over time", title_justify="left")
    table.add_column("period")
    for name in ("rows", "MCDP", f"{100 * confidence:g}% interval", "expected under parity", "alarm"):
        table.add_column(name, justify="right")
    for point in series:
        alarm = "" if point.alarm is None else _how_many(point.alarm.periods, every)
        if point.interval is None or point.expected is None:
            table.add_row(point.period, f"{point.rows:,}", "-", escape(point.missing), "-", alarm)
            continue
        numbers = percent(point.interval.estimate), interval_text(point.interval), percent(point.expected)
        table.add_row(point.period, f"{point.rows:,}", *numbers, alarm)
    table.add_section()
    total = ("-", "-")
    if whole.interval is not None:
        total = percent(whole.interval.estimate), interval_text(whole.interval)
    table.add_row("since the start", f"{whole.rows:,}", *total, "-", "")
    console.print(table)
    console.print("Rows are assumed to be independent: one row for each person.", style="dim")
    console.print("The interval since the start holds at all looks together.", style="dim")


def _alarmed(newest: PeriodResult, bound: float, every: str) -> bool:
    """Print and return whether there is an alarm at the newest period."""
    if newest.alarm is not None:
        found = newest.alarm
        assert found.interval is not None
        where = f"in {found.end}"
        if found.periods > 1:
            where = f"over the last {_how_many(found.periods, every)}, {found.start} to {found.end},"
        value, least = percent(found.interval.estimate), percent(found.interval.low)
        note(f"alarm: MCDP {where} is {value}, at least {least}, above the bound of {percent(bound)}")
        return True
    if newest.interval is None:
        raise ValueError(f"period {newest.period} has nothing to compare: {newest.missing}")
    above = newest.interval.estimate > bound
    relation, ending = ("above", ", which chance could explain") if above else ("within", "")
    what = f"MCDP in {newest.period} is {percent(newest.interval.estimate)}"
    note(f"no alarm: {what}, {relation} the bound of {percent(bound)}{ending}")
    return False


def _how_many(periods: int, every: str) -> str:
    """A number of days or hours in words."""
    return f"{periods} {every}" if periods == 1 else f"{periods} {every}s"
