"""`localparity monitor`: MCDP over time, a batch at a time."""

from __future__ import annotations

import hashlib
import json as json_format
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from localparity._io._files import damage_of, parse_json, write_whole
from localparity.audit._wording import interval_text
from localparity.cli._options import (
    CompareOption,
    CriterionOption,
    EpsilonOption,
    LabelOption,
    check_folder,
    check_fraction,
    check_labels,
    parse_range,
)
from localparity.metrics._window import percent
from localparity.monitoring._monitor import Every, Monitor, PeriodResult
from localparity.predictions import Predictions


def monitor(
    folder: Annotated[Path, typer.Argument(help="The folder that keeps the sketches.")],
    batch: Annotated[
        str | None, typer.Argument(help="A file of scores to append; the series alone without it.")
    ] = None,
    score: Annotated[str | None, typer.Option(help="The column of the scores.")] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="The column of the groups; give it again to compare intersections."),
    ] = None,
    label: LabelOption = None,
    at: Annotated[
        str | None, typer.Option(help="When the batch was, such as 2026-05-17T13:00; now without it. UTC.")
    ] = None,
    batch_id: Annotated[
        str | None,
        typer.Option(
            "--id", help="The batch's name; one that is known is not counted again. Else its content."
        ),
    ] = None,
    every: Annotated[Every | None, typer.Option(help="How long a period is, for a new folder.")] = None,
    score_range: Annotated[
        str | None, typer.Option(help="The lowest and the highest score there can be, for a new folder.")
    ] = None,
    epsilon: EpsilonOption = 0.0,
    criterion: CriterionOption = "demographic_parity",
    compare: CompareOption = "between_groups",
    confidence: Annotated[float, typer.Option(help="The probability with which an interval holds.")] = 0.95,
    json: Annotated[bool, typer.Option("--json", help="Print the series as JSON.")] = False,
    max_mcdp: Annotated[
        float | None,
        typer.Option(help="Exit with 1 when MCDP in the newest period is above this by more than chance."),
    ] = None,
    alarm_rate: Annotated[
        float, typer.Option(help="The probability that the monitor ever raises a false alarm.")
    ] = 0.05,
    allow_duplicate: Annotated[
        bool, typer.Option("--allow-duplicate", help="Count a batch whose rows are those of another.")
    ] = False,
) -> None:
    """Append a batch of scores and print MCDP over time, with intervals and alarms.

    Exit codes: 0 when the newest period raises no alarm, 1 when it does, 2 for wrong usage or input.
    """
    check_folder(folder, "FOLDER")
    check_fraction(max_mcdp, "--max-mcdp")
    if batch is not None:
        check_labels(criterion, label)
    limits = None if score_range is None else parse_range(score_range, "--score-range")
    kept = Monitor(folder, every=every, score_range=limits)
    if batch is not None:
        _append(kept, batch, score, group, label, at, batch_id, allow_duplicate)
    asked: dict[str, Any] = {"criterion": criterion, "compare": compare, "confidence": confidence}
    series = kept.series(epsilon, max_mcdp=max_mcdp, alarm_rate=alarm_rate, **asked)
    if not series:
        raise typer.BadParameter(f"{folder} has no period yet; name a batch to append", param_hint="FOLDER")
    if json:
        typer.echo(json_format.dumps([asdict(point) for point in series], indent=2))
    else:
        _show(Console(), series, epsilon, confidence)
    if max_mcdp is not None and _alarmed(series[-1], max_mcdp):
        raise typer.Exit(1)


def _append(
    kept: Monitor,
    batch: str,
    score: str | None,
    group: list[str] | None,
    label: str | None,
    at: str | None,
    batch_id: str | None,
    allow_duplicate: bool,
) -> None:
    if score is None or not group:
        raise typer.BadParameter("a batch needs its columns", param_hint="--score and --group")
    try:
        when = datetime.now(UTC) if at is None else datetime.fromisoformat(at)
    except ValueError:
        raise typer.BadParameter(
            f"{at!r} where a time such as 2026-05-17T13:00 is expected", param_hint="--at"
        ) from None
    rows = Predictions.read(
        batch, score=score, group=group, label=label, score_range=kept.score_range, min_groups=1
    )
    if batch_id is None:
        if not Path(batch).is_file():
            raise typer.BadParameter(f"{batch} is no single file, so it needs a name", param_hint="--id")
        with Path(batch).open("rb") as file:
            batch_id = hashlib.file_digest(file, "sha256").hexdigest()
    _check_columns(kept.folder, {"score": score, "group": group, "label": label})
    if not kept.append(rows, at=when, batch_id=batch_id, allow_duplicate=allow_duplicate):
        typer.echo(f"batch {batch_id} is known and was not counted again", err=True)


def _check_columns(folder: Path, columns: dict[str, Any]) -> None:
    """Every batch of a folder has the same columns: other groups or scores would be counted with them."""
    path = folder / "columns.json"
    if not path.exists():
        write_whole(path, json_format.dumps(columns).encode(), lasting=True)
        return
    with damage_of(str(path)):
        known = parse_json(path.read_bytes())
        for name, column in columns.items():
            if known[name] != column:
                raise typer.BadParameter(
                    f"{column!r} where the batches in {folder} have {known[name]!r}", param_hint=f"--{name}"
                )


def _show(console: Console, series: list[PeriodResult], epsilon: float, confidence: float) -> None:
    table = Table(title=f"MCDP({epsilon:g}) over time", title_justify="left")
    table.add_column("period")
    for name in ("rows", "MCDP", f"{100 * confidence:g}% interval", "expected under parity", "alarm"):
        table.add_column(name, justify="right")
    for point in series:
        if point.interval is None or point.expected is None:
            table.add_row(point.period, f"{point.rows:,}", "-", escape(point.missing), "-", "")
            continue
        numbers = percent(point.interval.estimate), interval_text(point.interval), percent(point.expected)
        table.add_row(point.period, f"{point.rows:,}", *numbers, "alarm" if point.alarm else "")
    console.print(table)
    console.print("Rows are assumed to be independent: one row for each person.", style="dim")


def _alarmed(newest: PeriodResult, bound: float) -> bool:
    """Say whether the newest period raises an alarm."""
    if newest.interval is None:
        raise ValueError(f"period {newest.period} has nothing to compare: {newest.missing}")
    what = f"MCDP in {newest.period} is {percent(newest.interval.estimate)}"
    relation = "above" if newest.interval.estimate > bound else "within"
    ending = "" if newest.alarm or relation == "within" else ", which chance could explain"
    verdict = "alarm" if newest.alarm else "no alarm"
    typer.echo(f"{verdict}: {what}, {relation} the bound of {percent(bound)}{ending}", err=True)
    return newest.alarm
