"""`localparity audit`: a file of scores in, the disparity between groups out, with a pass or fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer import Option

from localparity._io._tables import open_table
from localparity._text import visible, visible_lines
from localparity._types import HigherIs, IntervalMethod, Missing, MissingGroups, Scale
from localparity.audit._audit import Audit, DecideBy
from localparity.audit._auditing import SmallGroups
from localparity.audit._reading import Engine
from localparity.audit._same_people import PairedModels
from localparity.cli._options import (
    CompareOption,
    ConfidenceOption,
    CriterionOption,
    DecimalOption,
    EncodingOption,
    ForceOption,
    GroupOption,
    LabelOption,
    NormaliseOption,
    SeedOption,
    SheetOption,
    WeightOption,
    check_bound,
    check_file,
    check_labels,
    parse_epsilons,
    parse_range,
)
from localparity.cli._printing import note
from localparity.cli._remote import RemoteOption, announce_remote
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.metrics._window import percent
from localparity.report._terminal import paired_parts, terminal_parts

FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="CSV, TSV, Parquet, JSON lines or a workbook, a model each; a glob in quotes is one model.",
    ),
]
ScoreOption = Annotated[str | None, Option(help="The column of the scores, if no --model makes them.")]
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
IdOption = Annotated[
    str | None,
    Option("--id", help="The column of the people's ids, where all files hold the same people."),
]


def audit(
    files: FilesArgument,
    group: GroupOption,
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
    json: Annotated[bool, Option("--json", help="Print the audit as JSON.")] = False,
    max_mcdp: MaxMcdpOption = None,
    decide_by: DecideByOption = "estimate",
    report: ReportOption = None,
    force: ForceOption = False,
    allow_remote: RemoteOption = False,
) -> None:
    """Find where two groups are treated most differently by the scores in a file, or by a model's.

    Exit codes: 0 when it passes, 1 when MCDP is above the bound, 2 for wrong usage or input.
    """
    check_bound(max_mcdp, decide_by)
    check_file(report, "--report", read=files, replace=force)
    _check_source(score, model, target=target, label=label, engine=engine)
    check_labels(criterion, target or label, "--label" if model is None else "--target")
    _check_id(person_id, files, model=model, engine=engine, scale=scale)
    announce_remote(files, allow_remote=allow_remote)
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
    read = _reader(score, model, target, engine, allow_remote)
    reading = {"encoding": encoding, "decimal": decimal, "sheet": sheet, "normalise_groups": normalise_groups}
    tables = {file: _opened(file, engine, allow_remote, reading) for file in _each_once(files)}
    found = {file: _read(read, table, **columns, **asked) for file, table in tables.items()}
    paired = None
    if person_id is not None:
        paired = _compare(found, list(tables.values()), {"id": person_id, "score": score, **columns}, asked)
    _show(found, paired, json, disclosure_limit)
    passed = max_mcdp is None or _tell_verdicts(found, max_mcdp, decide_by)
    if report is not None:
        named = {"score": score, "target": target, **columns}
        _write_report(report, found, named, paired, disclosure_limit=disclosure_limit, force=force)
    if not passed:
        raise typer.Exit(1)


def _check_source(
    score: str | None, model: Path | None, *, target: str | None, label: str | None, engine: Engine
) -> None:
    """Check that scores are read or made, and that options of the one are not given for the other."""
    if (score is None) == (model is None):
        got = "neither" if score is None else "both"
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


def _check_id(
    person_id: str | None, files: list[str], *, model: Path | None, engine: Engine, scale: Scale
) -> None:
    """Check that there are files to compare, and that they can be."""
    if person_id is None:
        return
    if len(files) < 2:
        raise typer.BadParameter("needs two files or more, got 1", param_hint="--id")
    if model is not None:
        raise typer.BadParameter("needs --score; one model gives a person one score", param_hint="--id")
    if engine != "duckdb":
        raise typer.BadParameter(f"needs --engine duckdb, got {engine}", param_hint="--id")
    if scale != "score":
        raise typer.BadParameter(f"needs --scale score, got {scale}", param_hint="--id")


def _reader(
    score: str | None, model: Path | None, target: str | None, engine: Engine, allow_remote: bool
) -> Callable[..., Audit]:
    """What audits a file: the scores in a column, or those that a model gives."""
    if model is None:
        return partial(Audit.read, score=str(score), engine=engine, allow_remote=allow_remote)
    from localparity.cli._model_audit import ModelAudit

    return ModelAudit.load(model, target).read


def _each_once(files: list[str]) -> list[str]:
    repeated = next((file for file in files if files.count(file) > 1), None)
    if repeated is not None:
        raise typer.BadParameter(f"{repeated} is named twice", param_hint="FILE")
    return files


def _opened(file: str, engine: Engine, allow_remote: bool, reading: Mapping[str, Any]) -> Any:
    """A file as it is to be read; for Spark, its path."""
    if engine == "duckdb":
        return open_table(file, allow_remote=allow_remote, **reading)
    given = next((name for name, value in reading.items() if value), None)
    if given is not None:
        option = f"--{given.replace('_', '-')}"
        raise typer.BadParameter(f"needs --engine duckdb, got {engine}", param_hint=option)
    return file


def _read(read: Callable[..., Audit], file: Any, **options: Any) -> Audit:
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


def _show(
    audits: Mapping[str, Audit], paired: PairedModels | None, json: bool, disclosure_limit: int
) -> None:
    if json:
        typer.echo(visible_lines(audits_json(audits, paired, disclosure_limit)))
        return
    console = Console()
    for file, audit in audits.items():
        console.print(*terminal_parts(audit, title=visible(file)), sep="\n")
    if paired is not None:
        console.print(*paired_parts(paired), sep="\n")


def _write_report(
    path: Path,
    audits: Mapping[str, Audit],
    columns: Mapping[str, Any],
    paired: PairedModels | None,
    **options: Any,
) -> None:
    from localparity.report import write_page

    groups = ", ".join(columns["group"])
    named = {**columns, "group": groups}
    notes = {f"Column of the {what}s": name for what, name in named.items() if name}
    title = f"Local disparity by {groups}"
    write_page(path, audits, title=title, notes=notes, paired=paired, **options)
    note(f"report: {path}")


def audits_json(
    audits: Mapping[str, Audit],
    paired: PairedModels | None = None,
    disclosure_limit: int = DISCLOSURE_LIMIT,
) -> str:
    """One audit as its own JSON, several under their names, with the comparison with the first."""
    if len(audits) == 1:
        return next(iter(audits.values())).to_json(disclosure_limit=disclosure_limit)
    plain = {name: audit.to_dict(disclosure_limit=disclosure_limit) for name, audit in audits.items()}
    if paired is not None:
        for name in paired.found:
            plain[name]["same_people"] = paired.to_dict(name)
    return dumps(plain, indent=2, default=str, ensure_ascii=False)


def _tell_verdicts(audits: Mapping[str, Audit], max_mcdp: float, decide_by: DecideBy) -> bool:
    """Say of each file whether it is within the bound; whether all are."""
    passed = [audit.passes(max_mcdp, decide_by=decide_by) for audit in audits.values()]
    for (file, audit), passes in zip(audits.items(), passed, strict=True):
        finding = audit.findings[0]
        name, interval = f"MCDP({finding.epsilon:g})", finding.interval
        what = {
            "estimate": f"{name} is {percent(finding.mcdp)}",
            "upper": f"the upper end of {name} is {percent(interval.high)}",
            "lower": f"the lower end of {name} is {percent(interval.low)}",
        }[decide_by]
        verdict, relation = ("pass", "within") if passes else ("fail", "above")
        whose = f"{file}: " if len(audits) > 1 else ""
        note(f"{verdict}: {whose}{what}, {relation} the bound of {percent(max_mcdp)}")
    return all(passed)
