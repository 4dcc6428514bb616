"""`localparity audit`: a file of scores in, the disparity between groups out, with a pass or fail."""

from __future__ import annotations

from collections.abc import Callable
from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import Progress

import localparity as lp
from localparity._io._tables import Table
from localparity._types import HigherIs, IntervalMethod
from localparity._validation import unknown_name
from localparity.audit._audit import Audit, DecideBy, SmallGroups
from localparity.cli._options import (
    CompareOption,
    ConfidenceOption,
    CriterionOption,
    GroupOption,
    LabelOption,
    WeightOption,
    check_bound,
    check_file,
    check_labels,
    parse_epsilons,
    parse_range,
)
from localparity.cli._warnings import warnings_in_lines
from localparity.counts import ScoreCounts
from localparity.engines import from_duckdb, from_spark
from localparity.engines._spark import read_spark
from localparity.metrics._window import percent
from localparity.predictions import Predictions
from localparity.report import write_page
from localparity.report._terminal import terminal_parts

Engine = Literal["duckdb", "spark"]


def _count_by_spark(path: str, **options: Any) -> ScoreCounts:
    return from_spark(read_spark(path), **options)


_COUNT: dict[Engine, Callable[..., ScoreCounts]] = {"duckdb": from_duckdb, "spark": _count_by_spark}


FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="CSV, TSV, Parquet or JSON lines, a model each; a glob in quotes is one model.",
    ),
]
EpsilonsOption = Annotated[str, typer.Option(help="Half-widths of windows, as fractions of the score range.")]
ThresholdOption = Annotated[
    float | None, typer.Option(help="The threshold of delta-DP; mean scores without it.")
]
SmallGroupsOption = Annotated[
    SmallGroups, typer.Option(help="Whether a group that is too small is an error or left out.")
]
MaxMcdpOption = Annotated[
    float | None, typer.Option(help="Exit with 1 when MCDP at the smallest epsilon is above this.")
]
DecideByOption = Annotated[
    DecideBy, typer.Option(help="What --max-mcdp compares: the estimate or an end of its interval.")
]
ClusterOption = Annotated[
    str | None, typer.Option(help="The column of the person or household, where one has several rows.")
]
HigherIsOption = Annotated[
    HigherIs | None, typer.Option(help="Whether a higher score is the better or the worse outcome.")
]
MethodOption = Annotated[
    IntervalMethod | None,
    typer.Option(help="How intervals are made; dkw, or bootstrap with weights or clusters."),
]
ReportOption = Annotated[
    Path | None, typer.Option(help="Write a page with charts here, all models on it; opens offline.")
]


def audit(
    files: FilesArgument,
    score: Annotated[str, typer.Option(help="The column of the scores.")],
    group: GroupOption,
    label: LabelOption = None,
    weight: WeightOption = None,
    epsilon: EpsilonsOption = "0,0.01,0.05,0.1",
    criterion: CriterionOption = "demographic_parity",
    compare: CompareOption = "between_groups",
    score_range: Annotated[str, typer.Option(help="The lowest and the highest score there can be.")] = "0,1",
    threshold: ThresholdOption = None,
    min_group_size: Annotated[int, typer.Option(help="The fewest people that a group may have.")] = 1,
    small_groups: SmallGroupsOption = "raise",
    cluster: ClusterOption = None,
    higher_is: HigherIsOption = None,
    method: MethodOption = None,
    confidence: ConfidenceOption = 0.95,
    resamples: Annotated[int, typer.Option(help="Resamples of the test; 0 leaves it out.")] = 1000,
    engine: Annotated[Engine, typer.Option(help="What reads the file.")] = "duckdb",
    seed: Annotated[int, typer.Option(help="The same seed gives the same audit.")] = 0,
    jobs: Annotated[int, typer.Option(help="Resamples at a time, -1 for one a core.")] = -1,
    json: Annotated[bool, typer.Option("--json", help="Print the audit as JSON.")] = False,
    max_mcdp: MaxMcdpOption = None,
    decide_by: DecideByOption = "estimate",
    report: ReportOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a page that is there already.")] = False,
) -> None:
    """Find where two groups are treated most differently by the scores in a file.

    Exit codes: 0 when it passes, 1 when MCDP is above the bound, 2 for wrong usage or input.
    """
    check_bound(max_mcdp, decide_by)
    check_file(report, "--report", read=files, replace=force)
    compared = {"epsilons": parse_epsilons(epsilon), "criterion": criterion, "compare": compare}
    columns = {"score": score, "group": group, "label": label, "weight": weight, "cluster": cluster}
    if cluster is not None and engine != "duckdb":
        raise typer.BadParameter("needs --engine duckdb", param_hint="--cluster")
    limits = parse_range(score_range, "--score-range")
    needs_labels = check_labels(criterion, label) or report is not None
    found = {}
    for file in _each_once(files):
        if label is not None and not needs_labels:
            _check_column(file, label, engine)
        found[file] = _with_progress(
            _count(file, engine, columns | ({} if needs_labels else {"label": None}), compared, limits),
            **compared,
            threshold=threshold,
            min_group_size=min_group_size,
            small_groups=small_groups,
            confidence=confidence,
            method=method,
            n_resamples=resamples,
            random_state=seed,
            n_jobs=jobs,
            higher_is=higher_is,
        )
    _show(found, json)
    passed = max_mcdp is None or _tell_verdicts(found, max_mcdp, decide_by)
    if report is not None:
        _write_report(report, found, {**columns, "group": ", ".join(group)}, force)
    if not passed:
        raise typer.Exit(1)


def _count(
    file: str, engine: Engine, columns: dict[str, Any], compared: dict[str, Any], limits: tuple[float, float]
) -> ScoreCounts:
    """The counts of a file; with clusters, of rows that are kept."""
    if columns["cluster"] is not None:
        return ScoreCounts.from_predictions(Predictions.read(file, **columns, score_range=limits))
    given = {name: column for name, column in columns.items() if name != "cluster"}
    return _COUNT[engine](file, **given, **compared, score_range=limits)


def _show(found: dict[str, Audit], json: bool) -> None:
    if json:
        typer.echo(_as_json(found))
        return
    for file, one in found.items():
        Console().print(*terminal_parts(one, title=file), sep="\n")


def _each_once(files: list[str]) -> list[str]:
    repeated = next((file for file in files if files.count(file) > 1), None)
    if repeated is not None:
        raise typer.BadParameter(f"{repeated} is named twice", param_hint="FILE")
    return files


def _check_column(file: str, name: str, engine: Engine) -> None:
    """Whether there is a column, although it is not needed."""
    columns = Table(file).columns if engine == "duckdb" else read_spark(file).columns
    if name not in columns:
        raise unknown_name(f"column in {file} named", name, columns)


def _write_report(path: Path, found: dict[str, Audit], columns: dict[str, Any], force: bool) -> None:
    notes = {f"Column of the {what}s": name for what, name in columns.items() if name}
    write_page(path, found, title=f"Local disparity by {columns['group']}", notes=notes, force=force)
    typer.echo(f"report: {path}", err=True)


def _with_progress(counts: ScoreCounts, **options: Any) -> Audit:
    """The audit, with a bar on the standard error while it resamples for long."""
    console = Console(stderr=True)
    with (
        warnings_in_lines(),
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        twice = options["method"] == "bootstrap" and counts.exchangeable
        task = progress.add_task("Resampling", total=options["n_resamples"] * (2 if twice else 1))
        return lp.audit(counts, **options, on_resample=lambda: progress.advance(task))


def _as_json(found: dict[str, Audit]) -> str:
    """One audit as its own JSON, several under the names of their files."""
    if len(found) == 1:
        return next(iter(found.values())).to_json()
    together = (f"{dumps(file, ensure_ascii=False)}: {audit.to_json()}" for file, audit in found.items())
    return "{" + ",\n".join(together) + "}"


def _tell_verdicts(found: dict[str, Audit], bound: float, decide_by: DecideBy) -> bool:
    """Say of each file whether it is within the bound; whether all are."""
    passed = [one.passes(bound, decide_by=decide_by) for one in found.values()]
    for (file, one), passes in zip(found.items(), passed, strict=True):
        finding = one.findings[0]
        what = {
            "estimate": f"MCDP({finding.epsilon:g}) is {percent(finding.mcdp)}",
            "upper": f"the upper end of MCDP({finding.epsilon:g}) is {percent(finding.interval.high)}",
            "lower": f"the lower end of MCDP({finding.epsilon:g}) is {percent(finding.interval.low)}",
        }[decide_by]
        verdict, relation = ("pass", "within") if passes else ("fail", "above")
        name = f"{file}: " if len(found) > 1 else ""
        typer.echo(f"{verdict}: {name}{what}, {relation} the bound of {percent(bound)}", err=True)
    return all(passed)
