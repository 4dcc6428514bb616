"""`localparity monitor`: MCDP over time, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, Literal, get_args

import typer

from localparity._io._files import sha256_of
from localparity._io._table import Table, as_group_columns, open_table
from localparity._text import capitalised, interval_text, percent, shown_address
from localparity._types import Missing
from localparity._validation import NO_GROUP, InputError, as_count, warn_of_unmatched
from localparity.auditing._missing import MissingPolicy, MissingRows
from localparity.auditing._policy import Policy, read_policy
from localparity.cli._commands import Commands, local_path, note, print_result
from localparity.cli._options import (
    CompareOption,
    ConfidenceOption,
    CriterionOption,
    DecimalOption,
    EncodingOption,
    EpsilonOption,
    ForceOption,
    LabelOption,
    MissingValueOption,
    NormaliseOption,
    RemoteOption,
    SheetOption,
    announce_remote,
    check_file,
    check_folder,
    check_labels,
    expanding,
    parse_range,
)
from localparity.engines._missing_rows import count_missing, without_missing
from localparity.engines._table import ScoreColumns
from localparity.monitoring import Monitor, PeriodResult, Watch, WindowResult
from localparity.monitoring._store import Every, is_database
from localparity.monitoring._watch import (
    APPROXIMATE,
    about,
    alarm_sentence,
    how_many,
    quiet_sentence,
    rows_text,
)
from localparity.monitoring._webhook import Webhook
from localparity.predictions import Predictions

# What all commands of `localparity monitor` take: where the monitor is, and what is asked of it.


LocationArgument = Annotated[
    str,
    typer.Argument(
        help="The folder that keeps the sketches, or a database: postgresql://USER@HOST/DATABASE#NAME."
    ),
]
MissingGroupsOption = Annotated[
    Literal["raise", "drop", "group"],
    typer.Option(help="Rows without a group: refuse, leave out, or make a group."),
]
_WATCH_OPTIONS = {
    "epsilon": EpsilonOption,
    "criterion": CriterionOption,
    "compare": CompareOption,
    "min_group_size": Annotated[
        int, typer.Option(help="No numbers of a period with fewer people of a group; alarms count them.")
    ],
    "confidence": ConfidenceOption,
    "max_mcdp": Annotated[
        float | None,
        typer.Option(
            help="Raise an alarm when MCDP has been significantly above this, by one period alone or by the "
            "evidence of all so far."
        ),
    ],
    "alarm_rate": Annotated[
        float,
        typer.Option(
            help="The most that the probability of any false alarm may be, at all looks together, ever."
        ),
    ],
}
"""The options of the question, one for each field of `Watch`."""


def open_monitor(location: str, every: Every | None = None, score_range: str | None = None) -> Monitor:
    """The monitor at a location."""
    limits = None if score_range is None else parse_range(score_range, "--score-range")
    if is_database(location):
        return Monitor(location, every=every, score_range=limits)
    folder = local_path(Path(location), None)
    check_folder(folder, "LOCATION")
    return Monitor(folder, every=every, score_range=limits)


class TypedWatch:
    """The fields of a watch that were typed; in the place of the others the monitor has its own."""

    def __init__(self, typed: dict[str, Any]) -> None:
        Watch(**typed)  # checked before anything is read
        self._typed = typed

    def of(self, kept: Monitor) -> Watch:
        """The question of a monitor."""
        return replace(kept.watched or Watch(), **self._typed)

    def once(self, kept: Monitor) -> Watch:
        """The same for one command, which says where it asks for something else than the monitor keeps."""
        watch = self.of(kept)
        for name, before in self._changes(kept, watch):
            note(
                f"{_option(name)} {self._typed[name]} is for this command only; the monitor keeps {before}, "
                "which monitor append changes"
            )
        return watch

    def keep(self, kept: Monitor) -> None:
        """Keep what was typed with the monitor, and say what that changes."""
        if not self._typed:
            return
        watch = self.of(kept)
        changes = self._changes(kept, watch)
        kept.watch(watch)
        for name, before in changes:
            note(f"{_option(name)} is {self._typed[name]} from now on; it was {before}")

    def _changes(self, kept: Monitor, watch: Watch) -> list[tuple[str, object]]:
        """The fields in which a watch differs from what the monitor keeps, and what it keeps."""
        before = kept.watched
        values = {} if before is None else asdict(before)
        return [
            (name, value)
            for name, value in values.items()
            if value is not None and value != getattr(watch, name)
        ]


def _option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


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
    return without_missing(
        table, columns, groups=policy.groups, missing=policy.rows, texts=policy.texts, unknown=str(NO_GROUP)
    )


def with_watch(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of `Watch` as options, in the place of its parameter `asked`."""
    options = [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=_unless_kept(_WATCH_OPTIONS[field.name], field.default),
        )
        for field in fields(Watch)
    ]

    def typed(**values: Any) -> TypedWatch:
        return TypedWatch({name: value for name, value in values.items() if value is not None})

    return expanding(command, {"asked": (options, typed)})


def _unless_kept(annotation: Any, default: Any) -> Any:
    """An option that need not be typed: what the monitor keeps comes before the default."""
    kind, option = get_args(annotation)
    shown = "the monitor's own" if default is None else f"the monitor's own, else {default}"
    return Annotated[kind | None, typer.Option(help=option.help, show_default=shown)]


def with_policy(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command --policy, whose fields take the place of options; what was typed must agree."""
    own = signature(command)
    meaning = "The columns and what is looked for: a TOML file, or tool.localparity in a pyproject.toml."
    annotation = Annotated[Path | None, typer.Option(help=meaning)]
    policy = Parameter("policy", Parameter.KEYWORD_ONLY, default=None, annotation=annotation)

    @wraps(command)
    def with_options(**values: Any) -> None:
        path = values.pop("policy")
        for name, value in {} if path is None else _fields_of(read_policy(path).policy).items():
            is_typed = values[name] not in (own.parameters[name].default, None)
            if is_typed and value is not None and values[name] != value:
                raise typer.BadParameter(f"contradicts {path}: it says {value!r}", param_hint=_option(name))
            values[name] = values[name] if is_typed else value
        for name in ("score", "group"):
            if values[name] is None:
                raise typer.BadParameter(f"must name the column of the {name}s", param_hint=_option(name))
        command(**values)

    with_options.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[*own.parameters.values(), policy]
    )
    with_options.__annotations__ = {**command.__annotations__, "policy": annotation}
    return with_options


def _fields_of(policy: Policy) -> dict[str, Any]:
    """What a policy says of a monitor, by the names of options."""
    if policy.missing_groups == "bound":
        raise InputError("must be 'raise', 'drop' or 'group' for a monitor, got 'bound'", "missing_groups")
    if isinstance(policy.score_range, str):
        raise InputError(f"must be [low, high] for a monitor, got {policy.score_range!r}", "score_range")
    same = ("score", "label", "missing_groups", "missing", "normalise_groups", "encoding", "decimal", "sheet")
    return {
        **{name: getattr(policy, name) for name in same},
        **asdict(policy.watch),
        "group": list(policy.group) or None,
        "missing_values": list(policy.missing_values) or None,
        "score_range": ",".join(map(repr, policy.score_range)),
    }


_LAST, _MOST_ALARMS = 14, 4

app = Commands(no_args_is_help=True, add_completion=False)

JsonOption = Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")]


@app.callback()
def monitor() -> None:
    """Keep sketches of a stream of scores: MCDP over time, alarms, a page, and metrics for Prometheus."""


@app.command()
@with_policy
@with_watch
def append(
    *,
    location: LocationArgument,
    batches: Annotated[list[str], typer.Argument(metavar="BATCH...", help="Files of scores to append.")],
    score: Annotated[str | None, typer.Option(help="The column of the scores.")] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="The column of the groups; repeat it to compare intersections.")
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
    every: Annotated[Every | None, typer.Option(help="The length of a period, for a new monitor.")] = None,
    score_range: Annotated[
        str | None, typer.Option(help="The lowest and the highest score there can be, for a new monitor.")
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(help="Remove all but this many of the newest periods, as monitor prune does."),
    ] = None,
    missing_groups: MissingGroupsOption = "raise",
    missing_values: MissingValueOption = None,
    missing: Annotated[
        Missing, typer.Option(help="Rows without a score or label: refuse or leave out.")
    ] = "raise",
    normalise_groups: NormaliseOption = False,
    encoding: EncodingOption = None,
    decimal: DecimalOption = None,
    sheet: SheetOption = None,
    asked: TypedWatch,
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

    The monitor keeps --max-mcdp, --epsilon and the other options of what is looked for: the next commands
    need not repeat them, and another value here takes their place.

    Exit codes: 0 when there is no alarm at the newest period, 1 when there is, 2 for bad usage or input.
    """
    if keep is not None:
        as_count(keep, "--keep")
    if batch_id is not None and len(batches) > 1:
        raise typer.BadParameter("names one batch", param_hint="--id")
    kept = open_monitor(location, every, score_range)
    watch = asked.of(kept)
    hook = _hook(webhook, watch.max_mcdp)
    check_labels(watch.criterion, label)
    announce_remote(batches, allow_remote=allow_remote)
    policy = MissingPolicy.of(missing_groups, missing, missing_values or ())
    columns = ScoreColumns(str(score), as_group_columns(str(score), group or []), label)
    named: dict[str, Any] = {"score": score, "group": list(columns.group), "label": label}
    when, counted = _parse_time(at) or datetime.now(UTC), []
    for batch in batches:
        table = open_table(
            batch,
            encoding=encoding,
            decimal=decimal,
            sheet=sheet,
            normalise_groups=normalise_groups,
            allow_remote=allow_remote,
        )
        rows = Predictions.read(
            batch_rows(table, columns, policy), **named, score_range=kept.score_range, min_groups=1
        )
        try:
            is_new = kept.append(
                rows,
                at=when,
                batch_id=_hash_of(table) if batch_id is None else batch_id,
                columns=named,
                allow_duplicate=allow_duplicate,
            )
        except InputError as error:
            if batch_id is None:  # then it is a digest, which nobody knows
                error.file = shown_address(batch)
            raise
        if is_new:
            counted.append(shown_address(batch))
        else:
            note(f"{shown_address(batch)} was counted before and is not counted again")
    asked.keep(kept)
    if keep is not None:
        kept.prune(keep)
    (newest,) = kept.series(watch, last=1)
    print_result({"counted": counted, "newest": asdict(newest)}, _newest_line(newest, watch), json=json)
    _end(kept, newest, watch, hook)


def _hash_of(table: Table) -> str:
    """The sha256 of a single file."""
    if len(table.paths) != 1 or not Path(table.paths[0]).is_file():
        raise InputError(f"must be given unless the source is a single file, got {table.paths}", "batch_id")
    return sha256_of(Path(table.paths[0]))


@app.command("show")
@with_watch
def show_series(
    *,
    location: LocationArgument,
    last: Annotated[
        int | None, typer.Option(help="Show this many of the newest periods; by default 14, or all in JSON.")
    ] = None,
    asked: TypedWatch,
    json: JsonOption = False,
) -> None:
    """Print MCDP over time and since the start, with intervals and alarms.

    Exit codes: 0 when there is no alarm at the newest period, 1 when there is, 2 for bad usage or input.
    """
    kept = open_monitor(location)
    watch = asked.once(kept)
    series = _some(kept, kept.series(watch, last=last))
    whole = kept.since_start(watch)
    result = {"periods": [asdict(point) for point in series], "since_start": asdict(whole)}
    print_result(result, *_series_lines(series, last or _LAST, whole, watch, kept.every), json=json)
    _end(kept, series[-1], watch)


@app.command()
@with_watch
def report(
    *,
    location: LocationArgument,
    out: Annotated[Path, typer.Option(help="Where to write the page.")],
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
    asked: TypedWatch,
    json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Write MCDP over time as one page that opens anywhere, offline.

    Exit codes: 0 when there is no alarm at the newest period, 1 when there is, 2 for bad usage or input.
    """
    from localparity.report import write_monitor_page

    check_file(out, "--out", replace=force)
    kept = open_monitor(location)
    watch = asked.once(kept)
    (newest,) = _some(kept, kept.series(watch, last=1))
    write_monitor_page(out, kept, watch, title=title, force=force)
    print_result({"page": str(out), "newest": asdict(newest)}, f"wrote {out}", json=json)
    _end(kept, newest, watch)


@app.command()
@with_watch
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
    asked: TypedWatch,
) -> None:
    """Serve the newest numbers as metrics for Prometheus at /metrics, until it is stopped."""
    from localparity.integrations.prometheus import MonitorMetrics

    check_file(textfile, "--textfile")
    kept = open_monitor(location)
    asked.once(kept)
    metrics = MonitorMetrics(kept, lambda: asked.of(kept), name=name)
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
    line = f"removed {how_many(removed, kept.every)} from {kept.location}"
    print_result({"removed": removed}, line, json=json)


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


def _newest_line(newest: PeriodResult, watch: Watch) -> str:
    """The newest period in a line."""
    rows = (
        f"{newest.period}: {newest.rows:,} rows" if newest.rows is not None else f"{newest.period}: few rows"
    )
    if newest.interval is None:
        return f"{rows}, nothing to compare: {newest.missing}"
    value = f"MCDP({watch.epsilon:g}) {about(newest.interval.estimate, newest)}"
    return f"{rows}, {value}, {100 * watch.confidence:g}% interval {interval_text(newest.interval)}"


def _series_lines(
    series: list[PeriodResult], last: int, whole: WindowResult, watch: Watch, every: Every
) -> list[str]:
    """The last periods of a series, the whole of it, and the alarms before."""
    shown, earlier = series[-last:], [point for point in series[:-last] if point.alarm is not None]
    head = ["period", "rows", "MCDP", f"{100 * watch.confidence:g}% interval", "by chance"]
    rows = [[*head, *([] if watch.max_mcdp is None else ["alarm"])]]
    for point in shown:
        numbers = ["-", point.missing, "-"]
        if point.interval is not None and point.expected is not None:
            value = about(point.interval.estimate, point)
            numbers = [value, interval_text(point.interval), percent(point.expected)]
        alarm = "" if point.alarm is None else how_many(point.alarm.periods, every)
        rows.append([point.period, rows_text(point.rows), *numbers, alarm])
    total = ["-", "-"]
    if whole.interval is not None:
        total = [about(whole.interval.estimate, whole), interval_text(whole.interval)]
    rows.append(["since the start", rows_text(whole.rows), *total, "-"])
    widths = [max(len(row[place]) for row in rows if place < len(row)) for place in range(5)]
    lines = [
        f"MCDP({watch.epsilon:g}) over time, the last {how_many(len(shown), every)} of {len(series):,}",
        "",
    ]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:5], widths[1:], strict=True)]
        lines.append("  ".join([f"  {row[0]:<{widths[0]}}", *cells, *row[5:]]).rstrip())
    if earlier:
        dates = ", ".join(point.period for point in earlier[-_MOST_ALARMS:])
        lines += ["", f"  {len(earlier):,} earlier alarms, the newest {dates}"]
    notes = ["By chance: what MCDP is expected under parity. Rows are assumed to be independent."]
    notes += [f"{capitalised(APPROXIMATE)}."] if whole.approximate else []
    notes.append("The interval since the start holds at all looks together.")
    return [*lines, "", *(f"  {line}" for note in notes for line in wrap(note, 78))]


def _end(kept: Monitor, newest: PeriodResult, watch: Watch, hook: Webhook | None = None) -> None:
    """Say whether there is an alarm at the newest period, and end with 1 if there is.

    It is no error that there is nothing to compare in it.
    """
    if watch.max_mcdp is None:
        return
    if newest.alarm is None:
        note(f"no alarm: {quiet_sentence(newest, watch.max_mcdp)}")
        return
    note(f"alarm: {alarm_sentence(newest.alarm, kept.every, watch.max_mcdp)}")
    if hook is not None:
        try:
            if hook.tell(kept, newest, watch):
                note(f"told {hook.host} of the alarm")
        except (OSError, ValueError) as error:
            note(f"the webhook failed, and will be tried again with the next batch: {error}")
    raise typer.Exit(1)
