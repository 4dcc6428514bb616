"""`localparity monitor`: MCDP over time, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from localparity._io._table import Table, as_group_columns, open_table
from localparity._types import Missing
from localparity._validation import NO_GROUP, as_count, as_fraction, as_probability, warn_of_unmatched
from localparity.auditing._missing import MissingPolicy, MissingRows
from localparity.auditing._wording import interval_text
from localparity.cli._commands import Commands, local_path, note, print_json, print_line
from localparity.cli._options import (
    CompareOption,
    ConfidenceOption,
    CriterionOption,
    DecimalOption,
    EncodingOption,
    EpsilonOption,
    ForceOption,
    LabelOption,
    NormaliseOption,
    SheetOption,
    check_epsilon,
    check_file,
    check_folder,
    check_labels,
    parse_range,
)
from localparity.cli._tables import RemoteOption, announce_remote
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.engines._missing_rows import count_missing, without_missing
from localparity.engines._table import ScoreColumns
from localparity.metrics._window import percent
from localparity.monitoring import Monitor, PeriodResult, WindowResult
from localparity.monitoring._monitor import Every
from localparity.monitoring._results import APPROXIMATE, about, alarm_sentence, how_many, quiet_sentence
from localparity.monitoring._store import is_database
from localparity.monitoring._webhook import Webhook

# What all commands of `localparity monitor` take: where the monitor is, and what is asked of it.


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
_OPTIONS = {"min_group_size": "disclosure_limit"}
"""The names of options that the library calls otherwise."""
_LIBRARY_NAMES = {option: name for name, option in _OPTIONS.items()}
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
    """What is asked of each period: options of a command, checked in its words.

    `given` has the names of those that were typed; in the place of the others the monitor has its own.
    """

    epsilon: EpsilonOption = 0.0
    criterion: CriterionOption = "demographic_parity"
    compare: CompareOption = "between_groups"
    disclosure_limit: LimitOption = DISCLOSURE_LIMIT
    confidence: ConfidenceOption = 0.95
    max_mcdp: MaxMcdpOption = None
    alarm_rate: AlarmRateOption = 0.05
    given: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
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

    @property
    def of_watch(self) -> dict[str, Any]:
        """What was typed, as the library takes it."""
        typed = {_LIBRARY_NAMES.get(name, name) for name in self.given}
        return {name: value for name, value in self.of_series.items() if name in typed}

    def filled(self, kept: Monitor) -> Asked:
        """The same with what the monitor keeps in the place of what was not typed."""
        own = {_OPTIONS.get(name, name): value for name, value in kept.watched.items()}
        return replace(self, **{name: value for name, value in own.items() if name not in self.given})

    def once(self, kept: Monitor) -> Asked:
        """The same for one command, which says where it asks for something else than the monitor keeps."""
        for name, value in kept.watched.items():
            typed = self.of_watch.get(name, value)
            if typed != value:
                note(
                    f"{_typed(name)} {typed} is for this command only; the monitor keeps {value}, which "
                    "monitor append changes"
                )
        return self.filled(kept)

    def keep(self, kept: Monitor) -> None:
        """Keep what was typed with the monitor, and say what that changes."""
        changed = kept.watch(**self.of_watch) if self.given else {}
        for name, before in changed.items():
            note(f"{_typed(name)} is {self.of_watch[name]} from now on; it was {before}")


def _typed(name: str) -> str:
    """An option as it is typed, given its name in the library."""
    return f"--{_OPTIONS.get(name, name).replace('_', '-')}"


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
    return without_missing(table, columns, unknown=str(NO_GROUP), **asked)


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of `Asked` as options, in the place of its parameter `asked`."""
    annotations = get_type_hints(Asked, include_extras=True)
    options = [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=_unless_kept(annotations[field.name], field.default),
        )
        for field in fields(Asked)
        if field.name != "given"
    ]
    own = signature(command, eval_str=True)
    parameters = []
    for parameter in own.parameters.values():
        parameters += options if parameter.name == "asked" else [parameter]

    @wraps(command)
    def with_options(**given: Any) -> None:
        values = {option.name: given.pop(option.name) for option in options}
        typed = {name: value for name, value in values.items() if value is not None}
        command(asked=Asked(**typed, given=frozenset(typed)), **given)

    with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options


def _unless_kept(annotation: Any, default: Any) -> Any:
    """An option that need not be typed: what the monitor keeps comes before the default."""
    kind, option = get_args(annotation)
    shown = "the monitor's own" if default is None else f"the monitor's own, else {default}"
    return Annotated[kind | None, typer.Option(help=option.help, show_default=shown)]


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

    The monitor keeps --max-mcdp, --epsilon and the other options of what is looked for: the next commands
    need not repeat them, and another value here takes their place.

    Exit codes: 0 when there is no alarm at the newest period, 1 when there is, 2 for wrong usage or input.
    """
    if keep is not None:
        as_count(keep, "--keep")
    if batch_id is not None and len(batches) > 1:
        raise typer.BadParameter("names one batch", param_hint="--id")
    limits = None if score_range is None else parse_range(score_range, "--score-range")
    kept = open_monitor(location, every=every, score_range=limits)
    typed, asked = asked, asked.filled(kept)
    hook = _hook(webhook, asked.max_mcdp)
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
    typed.keep(kept)
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
    asked = asked.once(kept)
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
    asked = asked.once(kept)
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
    kept = open_monitor(location)
    asked.once(kept)
    metrics = MonitorMetrics(kept, name=name, **asked.of_watch)
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
    value = f"MCDP({asked.epsilon:g}) {about(newest.interval.estimate, newest)}"
    return f"{rows}, {value}, {100 * asked.confidence:g}% interval {interval_text(newest.interval)}"


def _show(
    console: Console, series: list[PeriodResult], whole: WindowResult, asked: Asked, every: str
) -> None:
    table = RichTable(title=f"MCDP({asked.epsilon:g}) over time", title_justify="left")
    table.add_column("period")
    interval = f"{100 * asked.confidence:g}% interval"
    alarms = [] if asked.max_mcdp is None else ["alarm"]
    for name in ("rows", "MCDP", interval, "expected under parity", *alarms):
        table.add_column(name, justify="right")
    for point in series:
        numbers = ("-", escape(point.missing), "-")
        if point.interval is not None and point.expected is not None:
            value = about(point.interval.estimate, point)
            numbers = value, interval_text(point.interval), percent(point.expected)
        alarm = "" if point.alarm is None else how_many(point.alarm.periods, every)
        table.add_row(point.period, f"{point.rows:,}", *numbers, *[alarm for _ in alarms])
    table.add_section()
    total = ("-", "-")
    if whole.interval is not None:
        total = about(whole.interval.estimate, whole), interval_text(whole.interval)
    table.add_row("since the start", f"{whole.rows:,}", *total, "-")
    console.print(table)
    if whole.approximate:
        console.print(f"{APPROXIMATE[0].upper()}{APPROXIMATE[1:]}.", style="dim")
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
