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

from localparity._io._tables import as_group_columns, open_table
from localparity._types import Missing
from localparity._validation import as_count
from localparity.audit._missing import MissingPolicy
from localparity.audit._wording import interval_text
from localparity.cli._commands import Commands
from localparity.cli._monitor_options import (
    Asked,
    LocationArgument,
    MissingGroupsOption,
    asking,
    batch_rows,
    open_monitor,
)
from localparity.cli._options import (
    DecimalOption,
    EncodingOption,
    ForceOption,
    LabelOption,
    NormaliseOption,
    SheetOption,
    check_file,
    check_labels,
    parse_range,
)
from localparity.cli._printing import note, print_json, print_line
from localparity.cli._remote import RemoteOption, announce_remote
from localparity.engines._table import ScoreColumns
from localparity.metrics._window import percent
from localparity.monitoring import Monitor, PeriodResult, WindowResult
from localparity.monitoring._monitor import Every
from localparity.monitoring._webhook import Webhook
from localparity.monitoring._wording import alarm_sentence, how_many, quiet_sentence

app = Commands(no_args_is_help=True, add_completion=False)

JsonOption = Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")]


@app.callback()
def monitor() -> None:
    """Keep sketches of a stream of scores: MCDP over time, alarms, a page, and metrics for Prometheus."""


@app.command()
@asking
def append(
    *,
    location: LocationArgument,
    batches: Annotated[list[str], typer.Argument(metavar="BATCH...", help="Files of scores to append.")],
    score: Annotated[str, typer.Option(help="The column of the scores.")],
    group: Annotated[
        list[str], typer.Option(help="The column of the groups; repeat it to compare intersections.")
    ],
    label: LabelOption = None,
    at: Annotated[
        str | None,
        typer.Option(help="The time of the batch in UTC, e.g. 2026-05-17T13:00; now by default."),
    ] = None,
    batch_id: Annotated[
        str | None,
        typer.Option("--id", help="The name of the batch, counted once; the sha256 of the file by default."),
    ] = None,
    every: Annotated[Every | None, typer.Option(help="The length of a period, for a new monitor.")] = None,
    score_range: Annotated[
        str | None, typer.Option(help="The lowest and the highest score there can be, for a new monitor.")
    ] = None,
    keep: Annotated[
        int | None, typer.Option(help="Remove all but so many of the newest periods, as monitor prune does.")
    ] = None,
    missing_groups: MissingGroupsOption = "raise",
    missing_values: Annotated[
        list[str] | None,
        typer.Option("--missing-value", help="What stands for no group beside blanks; repeatable."),
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="Rows without a score or label: refuse or leave out.")
    ] = "raise",
    normalise_groups: NormaliseOption = False,
    encoding: EncodingOption = None,
    decimal: DecimalOption = None,
    sheet: SheetOption = None,
    asked: Asked,
    webhook: Annotated[
        str | None, typer.Option(help="Post an alarm at the newest period as JSON to this URL, once.")
    ] = None,
    json: JsonOption = False,
    allow_duplicate: Annotated[
        bool, typer.Option("--allow-duplicate", help="Count a batch with the same rows as another.")
    ] = False,
    allow_remote: RemoteOption = False,
) -> None:
    """Count batches of scores, each once, and look for an alarm at the newest period.

    Exit codes: 0 when there is no alarm at the newest period, 1 when there is, 2 for wrong usage or input.
    """
    hook = _hook(webhook, asked.max_mcdp)
    if keep is not None:
        as_count(keep, "--keep")
    if batch_id is not None and len(batches) > 1:
        raise typer.BadParameter("names one batch", param_hint="--id")
    limits = None if score_range is None else parse_range(score_range, "--score-range")
    kept = open_monitor(location, every=every, score_range=limits)
    check_labels(asked.criterion, label)
    announce_remote(batches, allow_remote=allow_remote)
    named: dict[str, Any] = {"score": score, "group": group, "label": label, "at": _parse_time(at)}
    named |= {"allow_duplicate": allow_duplicate, "batch_id": batch_id}
    reading: dict[str, Any] = {"encoding": encoding, "decimal": decimal, "sheet": sheet}
    reading |= {"normalise_groups": normalise_groups, "allow_remote": allow_remote}
    policy = MissingPolicy.of(missing_groups, missing, missing_values or ())
    columns = ScoreColumns(score, as_group_columns(score, group), label)
    counted = []
    for batch in batches:
        rows = batch_rows(open_table(batch, **reading), columns, policy)
        if kept.append_file(rows, **named):
            counted.append(batch)
        else:
            note(f"{batch} was counted before and is not counted again")
    if keep is not None:
        kept.prune(keep)
    (newest,) = kept.series(**asked.of_series, last=1)
    if json:
        print_json({"counted": counted, "newest": asdict(newest)})
    else:
        print_line(_newest_line(newest, asked))
    _end(kept, newest, asked, hook, counted=True)


@app.command()
@asking
def show(
    *,
    location: LocationArgument,
    last: Annotated[int | None, typer.Option(help="Show so many of the newest periods.")] = None,
    asked: Asked,
    json: JsonOption = False,
) -> None:
    """Print MCDP over time and since the start, with intervals and alarms.

    Exit codes: 0 when there is no alarm at the newest period, 1 when there is, 2 for wrong usage or input.
    """
    kept = open_monitor(location)
    series = _some(kept, kept.series(**asked.of_series, last=last))
    whole = kept.since_start(**asked.of_people)
    if json:
        print_json({"periods": [asdict(point) for point in series], "since_start": asdict(whole)})
    else:
        _show(Console(), series, whole, asked, kept.every)
    _end(kept, series[-1], asked)


@app.command()
@asking
def report(
    *,
    location: LocationArgument,
    out: Annotated[Path, typer.Option(help="Where to write the page.")],
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
    asked: Asked,
    json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Write MCDP over time as one page that opens anywhere, offline.

    Exit codes: 0 when there is no alarm at the newest period, 1 when there is, 2 for wrong usage or input.
    """
    from localparity.report import write_monitor_page

    check_file(out, "--out", replace=force)
    kept = open_monitor(location)
    (newest,) = _some(kept, kept.series(**asked.of_series, last=1))
    write_monitor_page(out, kept, title=title, force=force, **asked.of_series)
    if json:
        print_json({"page": str(out), "newest": asdict(newest)})
    else:
        print_line(f"wrote {out}")
    _end(kept, newest, asked)


@app.command()
@asking
def serve(
    *,
    location: LocationArgument,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 9464,
    host: Annotated[
        str, typer.Option(help="The address to listen at; by default this machine alone can connect.")
    ] = "127.0.0.1",
    textfile: Annotated[
        Path | None,
        typer.Option(help="Write the metrics to this file, for a textfile collector, and serve nothing."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The label monitor of the metrics; the name of the folder by default.")
    ] = None,
    asked: Asked,
) -> None:
    """Serve the newest numbers as metrics for Prometheus at /metrics, until it is stopped."""
    from localparity.integrations.prometheus import MonitorMetrics

    check_file(textfile, "--textfile")
    metrics = MonitorMetrics(open_monitor(location), name=name, **asked.of_series)
    if textfile is not None:
        metrics.write(textfile)
        return
    metrics.serve(port, host=host, ready=lambda url: note(f"serving {url}"))


@app.command()
def prune(
    location: LocationArgument,
    keep: Annotated[int, typer.Option(help="How many of the newest periods to keep.")],
    json: JsonOption = False,
) -> None:
    """Remove all but the newest periods; their batches stay known and are not counted again."""
    kept = open_monitor(location)
    removed = kept.prune(keep)
    if json:
        print_json({"removed": removed})
    else:
        print_line(f"removed {how_many(removed, kept.every)} from {kept.location}")


def _hook(url: str | None, max_mcdp: float | None) -> Webhook | None:
    if url is None:
        return None
    if max_mcdp is None:
        raise ValueError("--webhook needs --max-mcdp")
    return Webhook(url)


def _some(kept: Monitor, series: list[PeriodResult]) -> list[PeriodResult]:
    if not series:
        raise typer.BadParameter(
            f"{kept.location} has no periods; append a batch first", param_hint="LOCATION"
        )
    return series


def _parse_time(at: str | None) -> datetime | None:
    try:
        return None if at is None else datetime.fromisoformat(at)
    except ValueError:
        raise ValueError(f"--at must be a time such as 2026-05-17T13:00, got {at!r}") from None


def _newest_line(newest: PeriodResult, asked: Asked) -> str:
    """The newest period in a line."""
    rows = f"{newest.period}: {newest.rows:,} rows"
    if newest.interval is None:
        return f"{rows}, nothing to compare: {newest.missing}"
    value = f"MCDP({asked.epsilon:g}) {percent(newest.interval.estimate)}"
    return f"{rows}, {value}, {100 * asked.confidence:g}% interval {interval_text(newest.interval)}"


def _show(
    console: Console, series: list[PeriodResult], whole: WindowResult, asked: Asked, every: str
) -> None:
    table = Table(title=f"MCDP({asked.epsilon:g}) over time", title_justify="left")
    table.add_column("period")
    interval = f"{100 * asked.confidence:g}% interval"
    for name in ("rows", "MCDP", interval, "expected under parity", "alarm"):
        table.add_column(name, justify="right")
    for point in series:
        alarm = "" if point.alarm is None else how_many(point.alarm.periods, every)
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


def _end(
    kept: Monitor, newest: PeriodResult, asked: Asked, hook: Webhook | None = None, *, counted: bool = False
) -> None:
    """Say whether there is an alarm at the newest period, and end with 1 if there is.

    Where a batch was counted, it is no error that there is nothing to compare yet.
    """
    if asked.max_mcdp is None:
        return
    if newest.alarm is None:
        if newest.interval is None and not counted:
            raise ValueError(quiet_sentence(newest, asked.max_mcdp))
        note(f"no alarm: {quiet_sentence(newest, asked.max_mcdp)}")
        return
    note(f"alarm: {alarm_sentence(newest.alarm, kept.every, asked.max_mcdp)}")
    if hook is not None:
        try:
            if hook.tell(kept, newest, asked.of_series):
                note(f"told {hook.host} of the alarm")
        except OSError as error:
            note(f"the webhook failed, and will be tried again with the next batch: {error}")
    raise typer.Exit(1)
