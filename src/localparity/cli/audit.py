"""`localparity audit`: a file of scores in, the disparity between groups out, with a pass or fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from localparity._types import HigherIs, IntervalMethod
from localparity.audit._audit import Audit, DecideBy, Engine
from localparity.audit._auditing import SmallGroups
from localparity.cli._options import (
    CompareOption,
    ConfidenceOption,
    CriterionOption,
    ForceOption,
    GroupOption,
    LabelOption,
    SeedOption,
    WeightOption,
    check_bound,
    check_file,
    check_labels,
    parse_epsilons,
    parse_range,
)
from localparity.metrics._window import percent
from localparity.report import write_page
from localparity.report._terminal import terminal_parts

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
    seed: SeedOption = 0,
    jobs: Annotated[int, typer.Option(help="Resamples at a time, -1 for one a core.")] = -1,
    json: Annotated[bool, typer.Option("--json", help="Print the audit as JSON.")] = False,
    max_mcdp: MaxMcdpOption = None,
    decide_by: DecideByOption = "estimate",
    report: ReportOption = None,
    force: ForceOption = False,
) -> None:
    """Find where two groups are treated most differently by the scores in a file.

    Exit codes: 0 when it passes, 1 when MCDP is above the bound, 2 for wrong usage or input.
    """
    check_bound(max_mcdp, decide_by)
    check_file(report, "--report", read=files, replace=force)
    check_labels(criterion, label)
    epsilons, limits = parse_epsilons(epsilon), parse_range(score_range, "--score-range")
    found = {}
    for file in _each_once(files):
        with _progress(resamples) as on_resample:
            found[file] = Audit.read(
                file,
                score=score,
                group=group,
                label=label,
                weight=weight,
                cluster=cluster,
                engine=engine,
                score_range=limits,
                epsilons=epsilons,
                criterion=criterion,
                compare=compare,
                threshold=threshold,
                min_group_size=min_group_size,
                small_groups=small_groups,
                confidence=confidence,
                method=method,
                n_resamples=resamples,
                random_state=seed,
                n_jobs=jobs,
                higher_is=higher_is,
                on_resample=on_resample,
            )
    if json:
        typer.echo(audits_json(found))
    else:
        for file, one in found.items():
            Console().print(*terminal_parts(one, title=file), sep="\n")
    passed = max_mcdp is None or _tell_verdicts(found, max_mcdp, decide_by)
    if report is not None:
        columns = {"score": score, "group": ", ".join(group), "label": label, "weight": weight}
        notes = {f"Column of the {what}s": name for what, name in columns.items() if name}
        notes |= {"Column of the clusters": cluster} if cluster else {}
        write_page(report, found, title=f"Local disparity by {columns['group']}", notes=notes, force=force)
        typer.echo(f"report: {report}", err=True)
    if not passed:
        raise typer.Exit(1)


def _each_once(files: list[str]) -> list[str]:
    repeated = next((file for file in files if files.count(file) > 1), None)
    if repeated is not None:
        raise typer.BadParameter(f"{repeated} is named twice", param_hint="FILE")
    return files


@contextmanager
def _progress(resamples: int) -> Iterator[Callable[[], None]]:
    """A bar on the standard error; it starts anew where the audit resamples more than once."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Resampling", total=resamples)

        def advance() -> None:
            if progress.finished:
                progress.reset(task)
            progress.advance(task)

        yield advance


def audits_json(audits: Mapping[str, Audit]) -> str:
    """One audit as its own JSON, several under their names."""
    if len(audits) == 1:
        return next(iter(audits.values())).to_json()
    plain = {name: audit.to_dict() for name, audit in audits.items()}
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
        typer.echo(f"{verdict}: {whose}{what}, {relation} the bound of {percent(max_mcdp)}", err=True)
    return all(passed)
