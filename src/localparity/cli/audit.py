"""`localparity audit`: a file of scores in, the disparity between groups out, with a pass or fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer import Option

from localparity._io._connection import without_password
from localparity._io._sql import text_of
from localparity._io._tables import Table, open_table
from localparity._types import HigherIs, IntervalMethod, Missing, MissingGroups, Scale
from localparity.audit._audit import Audit, DecideBy
from localparity.audit._auditing import SmallGroups
from localparity.audit._classes import ClassAudits, class_confidence
from localparity.audit._document import Document
from localparity.audit._reading import Engine
from localparity.audit._same_people import PairedModels
from localparity.cli._audit_outputs import (
    AuditFormat,
    check_format,
    show,
    tell_verdicts,
    write_out,
    write_report,
)
from localparity.cli._commands import typed_command
from localparity.cli._databases import TableOption, engine_of, open_databases
from localparity.cli._options import (
    CompareOption,
    ConfidenceOption,
    CriterionOption,
    DecimalOption,
    EncodingOption,
    ForceOption,
    LabelOption,
    NormaliseOption,
    SeedOption,
    SheetOption,
    WeightOption,
    check_bound,
    check_file,
    check_labels,
    check_ratio,
    parse_epsilons,
    parse_range,
)
from localparity.cli._printing import note
from localparity.cli._remote import RemoteOption, announce_remote
from localparity.cli._scoring import check_scoring, scoring_rates_of
from localparity.cli._split import audit_splits, check_split_and_classes
from localparity.counts._disclosure import DISCLOSURE_LIMIT

FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="CSV, TSV, Parquet, JSON lines or a workbook, a model each; a glob in quotes is one model; "
        "or with --table a database's address.",
    ),
]
GroupsOption = Annotated[
    list[str] | None, Option("--group", help="The column of the groups; repeat it to compare intersections.")
]
SplitOption = Annotated[
    str | None,
    Option(
        help="Instead of --group, a column of numbers such as age: find its worst cutoff, of those with at "
        "least --min-group-size people on either side (and --disclosure-limit)."
    ),
]
ScoreOption = Annotated[
    list[str] | None,
    Option(help="The column of the scores, if no --model makes them; repeat it for several classes."),
]
ModelOption = Annotated[Path | None, Option(help="The folder of a saved model that scores the files.")]
TargetOption = Annotated[str | None, Option(help="With --model, the column of the two classes.")]
EpsilonsOption = Annotated[str, Option(help="Half-widths of windows, as fractions of the score range.")]
MaxMcdpOption = Annotated[
    float | None, Option(help="Exit with 1 when MCDP at the smallest epsilon is above this.")
]
DecideByOption = Annotated[
    DecideBy, Option(help="What --max-mcdp compares: the estimate or an end of its interval.")
]
MethodOption = Annotated[
    IntervalMethod | None,
    Option(help="How intervals are made; finite_sample, or bootstrap with weights or clusters."),
]
FormatOption = Annotated[
    AuditFormat,
    Option("--format", help="Print tables, JSON, Markdown for a pull request, or JUnit XML for a pipeline."),
]
OutOption = Annotated[
    Path | None,
    Option(help="Write a zip here: the page, JSON, Markdown, a model's card, the command and checksums."),
]
ReportOption = Annotated[
    Path | None, Option(help="Write a page with charts here, all models on it; opens offline.")
]
DisclosureOption = Annotated[
    int, Option(help="Groups of fewer people are left out of everything, named but not counted.")
]
MissingGroupsOption = Annotated[
    MissingGroups,
    Option(help="Rows without a group: refuse, leave out, a group, or bounds of what they could change."),
]
MissingValueOption = Annotated[
    list[str] | None, Option("--missing-value", help="What stands for no group beside blanks; repeatable.")
]
ScoreRangeOption = Annotated[
    str, Option(help="The lowest and the highest score there can be, or data: those of the scores.")
]
ScaleOption = Annotated[
    Scale, Option(help="Windows in the scores' units, or in ranks: an epsilon is a share of people.")
]
MissingOption = Annotated[Missing, Option(help="Rows without a score, label or weight: refuse or leave out.")]
ControlOption = Annotated[
    list[str] | None,
    Option(help="A column of strata, such as job or year, within which groups are compared too; repeatable."),
]
MinRatioOption = Annotated[
    float | None,
    Option(help="Find the cutoffs that keep every group's selection rate at this share of the highest."),
]
ScoringOption = Annotated[
    bool, Option("--scoring-rates", help="Add the table of scoring rates that New York City's rule asks for.")
]
IdOption = Annotated[
    str | None,
    Option(
        "--id",
        help="The column of the people's ids. Says whether a file has several rows of a person; several "
        "files of the same people are compared.",
    ),
]


def audit(
    ctx: typer.Context,
    files: FilesArgument,
    table: TableOption = None,
    group: GroupsOption = None,
    split: SplitOption = None,
    score: ScoreOption = None,
    model: ModelOption = None,
    target: TargetOption = None,
    label: LabelOption = None,
    weight: WeightOption = None,
    epsilon: EpsilonsOption = "0,0.01,0.05,0.1",
    criterion: CriterionOption = "demographic_parity",
    compare: CompareOption = "between_groups",
    score_range: ScoreRangeOption = "0,1",
    scale: ScaleOption = "score",
    threshold: Annotated[float | None, Option(help="Threshold of delta-DP; by default mean scores.")] = None,
    min_group_size: Annotated[int, Option(help="The fewest people that a group may have.")] = 1,
    small_groups: Annotated[SmallGroups, Option(help="Refuse small groups, or leave them out.")] = "raise",
    disclosure_limit: DisclosureOption = DISCLOSURE_LIMIT,
    control: ControlOption = None,
    missing_groups: MissingGroupsOption = "raise",
    missing_values: MissingValueOption = None,
    missing: MissingOption = "raise",
    cluster: Annotated[str | None, Option(help="The column of the person or household of a row.")] = None,
    person_id: IdOption = None,
    higher_is: Annotated[HigherIs | None, Option(help="Whether higher scores are better or worse.")] = None,
    method: MethodOption = None,
    confidence: ConfidenceOption = 0.95,
    resamples: Annotated[int, Option(help="Resamples of the test; 0 leaves it out.")] = 1000,
    engine: Annotated[Engine, Option(help="The engine that reads the files.")] = "duckdb",
    encoding: EncodingOption = None,
    decimal: DecimalOption = None,
    sheet: SheetOption = None,
    normalise_groups: NormaliseOption = False,
    seed: SeedOption = 0,
    jobs: Annotated[int, Option(help="How many resamples run at a time; -1 for all cores.")] = -1,
    form: FormatOption = "text",
    json: Annotated[bool, Option("--json", help="The same as --format json.")] = False,
    max_mcdp: MaxMcdpOption = None,
    decide_by: DecideByOption = "estimate",
    min_ratio: MinRatioOption = None,
    scoring: ScoringOption = False,
    report: ReportOption = None,
    out: OutOption = None,
    force: ForceOption = False,
    allow_remote: RemoteOption = False,
) -> None:
    """Find where two groups are treated most differently by the scores in a file, or by a model's.

    Exit codes: 0 when it passes, 1 when MCDP is above the bound, 2 for wrong usage or input.
    """
    check_bound(max_mcdp, decide_by)
    check_file(report, "--report", read=files, replace=force)
    check_file(out, "--out", read=files, replace=force)
    form = check_format(form, json, max_mcdp)
    check_ratio(min_ratio, criterion)
    engine = engine_of(ctx)
    check_scoring(ctx.params)
    _check_source(score, model, target=target, label=label, engine=engine)
    check_split_and_classes(ctx.params)
    check_labels(criterion, target or label, "--label" if model is None else "--target")
    _check_id(ctx.params)
    columns = {"group": group, "label": label, "weight": weight, "cluster": cluster}
    asked = {
        "score_range": "data" if score_range == "data" else parse_range(score_range, "--score-range"),
        "scale": scale,
        "epsilons": parse_epsilons(epsilon),
        "criterion": criterion,
        "compare": compare,
        "threshold": threshold,
        "min_group_size": min_group_size,
        "small_groups": small_groups,
        "disclosure_limit": disclosure_limit,
        "control": control or None,
        "missing_groups": missing_groups,
        "missing_values": missing_values or (),
        "missing": missing,
        "confidence": confidence,
        "method": method,
        "n_resamples": resamples,
        "random_state": seed,
        "n_jobs": jobs,
        "higher_is": higher_is,
    }
    reading = {"encoding": encoding, "decimal": decimal, "sheet": sheet, "normalise_groups": normalise_groups}
    tables = _open_all(ctx, _each_once(files), table, reading)
    if split is not None and score is not None:
        asked |= {"max_mcdp": max_mcdp, "label": label}
        within = audit_splits(tables, split, score[0], asked, json=form == "json")
        raise typer.Exit(0 if within else 1)
    read = _reader(score, model, target, engine, allow_remote)
    asked["confidence"] = class_confidence(confidence, len(read))
    found = {
        column if len(read) > 1 else file: _read(ctx, each, table, **columns, **asked)
        for file, table in tables.items()
        for column, each in read.items()
    }
    named = {"id": person_id, "score": (score or [""])[0], **columns}
    document = Document(
        audits=found,
        title=f"Local disparity by {', '.join(group or [])}",
        paired=_same_people(found, list(tables.values()), named, asked),
        max_mcdp=max_mcdp,
        decide_by=decide_by,
        disclosure_limit=disclosure_limit,
        min_ratio=min_ratio,
        scoring=scoring_rates_of(tables, named, asked) if scoring else {},
    )
    if not _tell(document, form, len(read) > 1, report, out, model=model, confidence=confidence, force=force):
        raise typer.Exit(1)


def _tell(
    document: Document,
    form: AuditFormat,
    classes: bool,
    report: Path | None,
    out: Path | None,
    *,
    model: Path | None,
    confidence: float,
    force: bool,
) -> bool:
    """Print the audits, and write the page and the bundle where they are asked for; whether all pass."""
    show(document, form)
    if classes:
        note(ClassAudits(document.audits, confidence).sentence)
    passed = document.max_mcdp is None or tell_verdicts(document)
    if report is not None:
        write_report(document, report, force=force)
    if out is not None:
        write_out(document, out, model=model, force=force)
    return passed


def _check_source(
    score: list[str] | None, model: Path | None, *, target: str | None, label: str | None, engine: Engine
) -> None:
    """Check that scores are read or made, and that options of the one are not given for the other."""
    if (not score) == (model is None):
        got = "both" if score else "neither"
        raise typer.BadParameter(
            f"must name the column of the scores, or --model a folder that makes them, got {got}",
            param_hint="--score",
        )
    if target is not None and model is None:
        raise typer.BadParameter("needs --model; use --label with --score", param_hint="--target")
    if target is not None and label is not None:
        raise typer.BadParameter("has the use of --label; give one of them", param_hint="--target")
    if model is not None and engine != "duckdb":
        raise typer.BadParameter(f"must be duckdb with --model, got {engine}", param_hint="--engine")


def _note_repeated(table: Table, person_id: str, *, clustered: bool) -> None:
    """Say whether a file has several rows of a person, which an audit takes for several people."""
    table.check([person_id])
    text = text_of(person_id)
    query = f"SELECT count(DISTINCT {text}) AS people, count({text}) AS named FROM {table.rows}"
    found = {name: int(values[0]) for name, values in table.fetch(query).items()}
    if found["named"] == found["people"]:
        note(f"no person of column {person_id!r} has several rows")
        return
    advice = "" if clustered else f"; pass --cluster {person_id} to take them for one person each"
    note(f"the {found['named']:,} rows are of {found['people']:,} people by column {person_id!r}{advice}")


def _check_id(params: Mapping[str, Any]) -> None:
    """Check that people can be told apart, and files compared where there are several."""
    if params["person_id"] is None:
        return
    needed = {"table": None, "engine": "duckdb"}
    if len(params["files"]) > 1:
        if params["model"] is not None:
            raise typer.BadParameter("needs --score; one model gives a person one score", param_hint="--id")
        needed = {"engine": "duckdb", "scale": "score", "missing_groups": "raise", "missing": "raise"}
    for name, value in needed.items():
        if params[name] != value:
            option = "--" + name.replace("_", "-")
            raise typer.BadParameter(f"needs {option} {value}, got {params[name]}", param_hint="--id")


def _reader(
    score: list[str] | None, model: Path | None, target: str | None, engine: Engine, allow_remote: bool
) -> dict[str, Callable[..., Audit]]:
    """What audits a file, by the columns of the scores; or for those that a model gives."""
    if model is None:
        shared: dict[str, Any] = {"engine": engine, "allow_remote": allow_remote}
        return {column: partial(Audit.read, score=column, **shared) for column in score or []}
    from localparity.cli._model_audit import ModelAudit

    return {"": ModelAudit.load(model, target).read}


def _each_once(files: list[str]) -> list[str]:
    repeated = next((file for file in files if files.count(file) > 1), None)
    if repeated is not None:
        raise typer.BadParameter(f"{repeated} is named twice", param_hint="FILE")
    return files


def _open_all(
    ctx: typer.Context, files: list[str], table: str | None, reading: Mapping[str, Any]
) -> dict[str, Any]:
    """What is read, by the names that it is shown under."""
    allow_remote, engine = ctx.params["allow_remote"], ctx.params["engine"]
    if table is not None:
        return open_databases(ctx, files, table, allow_remote=allow_remote)
    announce_remote(files, allow_remote=allow_remote)
    return {without_password(file): _opened(file, engine, allow_remote, reading) for file in files}


def _opened(file: str, engine: Engine, allow_remote: bool, reading: Mapping[str, Any]) -> Any:
    """A file as it is to be read; for Spark, its path."""
    if engine == "duckdb":
        return open_table(file, allow_remote=allow_remote, **reading)
    given = next((name for name, value in reading.items() if value), None)
    if given is not None:
        option = f"--{given.replace('_', '-')}"
        raise typer.BadParameter(f"needs --engine duckdb, got {engine}", param_hint=option)
    return file


def _read(ctx: typer.Context, read: Callable[..., Audit], file: Any, **options: Any) -> Audit:
    """Audit a file and note the command that did."""
    found = _read_with_progress(read, file, **options)
    assert found.provenance is not None  # what reads a file says so
    return replace(found, provenance=replace(found.provenance, call=typed_command(ctx)))


def _read_with_progress(read: Callable[..., Audit], file: Any, **options: Any) -> Audit:
    """Audit a file, with a bar on a terminal; it starts anew where there are more resamples."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return read(file, **options)
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Resampling", total=options["n_resamples"])

        def advance() -> None:
            if progress.finished:
                progress.reset(task)
            progress.advance(task)

        return read(file, **options, on_resample=advance)


def _same_people(
    audits: Mapping[str, Audit], tables: Sequence[Table], columns: Mapping[str, Any], asked: Mapping[str, Any]
) -> PairedModels | None:
    """The models compared on the same people, where several files have ids; one file's are checked."""
    if columns["id"] is None:
        return None
    if len(tables) > 1:
        return _compare(audits, tables, columns, asked)
    _note_repeated(tables[0], columns["id"], clustered=columns["cluster"] is not None)
    return None


def _compare(
    audits: Mapping[str, Audit],
    tables: Sequence[Any],
    columns: Mapping[str, Any],
    asked: Mapping[str, Any],
) -> PairedModels:
    """The models on the same people, each compared with the first at the smallest epsilon."""
    shared = ("score_range", "criterion", "compare", "confidence", "n_resamples", "random_state", "n_jobs")
    first = next(iter(audits.values()))
    if asked["score_range"] == "data":
        lows, highs = zip(*(audit.score_range for audit in audits.values()), strict=True)
        asked = {**asked, "score_range": (min(lows), max(highs))}
    return PairedModels.read(
        tables,
        **columns,
        left_out=[left.group for left in first.left_out],
        epsilon=first.findings[0].epsilon,
        **{name: asked[name] for name in shared},
    )
