"""`localparity audit`: a file of scores in, the disparity between groups out, with a pass or fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import Progress

from localparity._audit import Audit, DecideBy, SmallGroups
from localparity.cli._options import parse_numbers, parse_range
from localparity.cli._show import percent, show_audit
from localparity.metrics import ScoreCounts
from localparity.metrics._criteria import Criterion, labels_of
from localparity.metrics._groups import Compare
from localparity.scale import from_duckdb, from_spark
from localparity.scale._spark import read_spark
from localparity.uncertainty._interval import IntervalKind

Engine = Literal["duckdb", "spark"]


def _count_by_spark(path: str, **options: Any) -> ScoreCounts:
    return from_spark(read_spark(path), **options)


_COUNT: dict[Engine, Callable[..., ScoreCounts]] = {"duckdb": from_duckdb, "spark": _count_by_spark}


def audit(
    file: Annotated[
        str, typer.Argument(help="CSV, TSV, Parquet or JSON lines; or a glob of such files, in quotes.")
    ],
    score: Annotated[str, typer.Option(help="The column of the scores.")],
    group: Annotated[
        list[str], typer.Option(help="The column of the groups; give it again to compare intersections.")
    ],
    label: Annotated[str | None, typer.Option(help="The column of the labels, 0 and 1.")] = None,
    weight: Annotated[str | None, typer.Option(help="The column of the weights.")] = None,
    epsilon: Annotated[
        str, typer.Option(help="Half-widths of windows, as fractions of the score range.")
    ] = "0,0.01,0.05,0.1",
    criterion: Annotated[Criterion, typer.Option(help="Which people are compared.")] = "demographic_parity",
    compare: Annotated[
        Compare, typer.Option(help="Every pair of groups, or each group with everyone.")
    ] = "between_groups",
    score_range: Annotated[str, typer.Option(help="The lowest and the highest score there can be.")] = "0,1",
    threshold: Annotated[
        float | None, typer.Option(help="The threshold of delta-DP; mean scores without it.")
    ] = None,
    min_group_size: Annotated[int, typer.Option(help="The fewest people that a group may have.")] = 1,
    small_groups: Annotated[
        SmallGroups, typer.Option(help="Whether a group that is too small is an error or left out.")
    ] = "raise",
    interval: Annotated[IntervalKind, typer.Option(help="How the intervals are made.")] = "dkw",
    level: Annotated[float, typer.Option(help="The probability with which the intervals hold.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Permutations of the test; 0 leaves it out.")] = 1000,
    engine: Annotated[Engine, typer.Option(help="What reads the file.")] = "duckdb",
    seed: Annotated[int, typer.Option(help="The same seed gives the same audit.")] = 0,
    jobs: Annotated[int, typer.Option(help="Resamples at a time, -1 for one a core.")] = -1,
    json: Annotated[bool, typer.Option("--json", help="Print the audit as JSON.")] = False,
    fail_above: Annotated[
        float | None, typer.Option(help="Exit with 1 when MCDP at the smallest epsilon is above this.")
    ] = None,
    decide_by: Annotated[
        DecideBy, typer.Option(help="What --fail-above compares: the estimate or an end of its interval.")
    ] = "estimate",
) -> None:
    """Find where two groups are treated most differently by the scores in a file.

    Exit codes: 0 when it passes, 1 when MCDP is above the bound, 2 for wrong usage or input.
    """
    epsilons = parse_numbers(epsilon, "--epsilon")
    needs_labels = labels_of(criterion) != (None,)
    if needs_labels and label is None:
        raise typer.BadParameter(f"{criterion} needs the column of the labels", param_hint="--label")
    counts = _COUNT[engine](
        file,
        score=score,
        group=group,
        label=label if needs_labels else None,
        weight=weight,
        score_range=parse_range(score_range, "--score-range"),
        epsilons=epsilons,
        criterion=criterion,
        compare=compare,
    )
    found = _with_progress(
        counts,
        resamples * (1 + (interval == "bootstrap")),
        epsilons=epsilons,
        criterion=criterion,
        compare=compare,
        threshold=threshold,
        min_group_size=min_group_size,
        small_groups=small_groups,
        level=level,
        interval=interval,
        n_resamples=resamples,
        random_state=seed,
        n_jobs=jobs,
    )
    passes = None if fail_above is None else found.passes(fail_above, decide_by=decide_by)
    if json:
        typer.echo(found.to_json())
    else:
        show_audit(Console(), found, title=file)
    if passes is not None:
        _tell_verdict(found, fail_above or 0.0, decide_by, passes)
    if passes is False:
        raise typer.Exit(1)


def _with_progress(counts: ScoreCounts, resamples: int, **options: Any) -> Audit:
    """The audit, with a bar on the standard error while it resamples for long."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Resampling", total=resamples)
        return Audit.from_counts(counts, **options, on_resample=lambda: progress.advance(task))


def _tell_verdict(found: Audit, bound: float, decide_by: str, passes: bool) -> None:
    finding = found.findings[0]
    what = {
        "estimate": f"MCDP({finding.epsilon:g}) is {percent(finding.mcdp)}",
        "upper": f"the upper end of MCDP({finding.epsilon:g}) is {percent(finding.interval.high)}",
        "lower": f"the lower end of MCDP({finding.epsilon:g}) is {percent(finding.interval.low)}",
    }[decide_by]
    verdict, relation = ("pass", "within") if passes else ("fail", "above")
    typer.echo(f"{verdict}: {what}, {relation} the bound of {percent(bound)}", err=True)
