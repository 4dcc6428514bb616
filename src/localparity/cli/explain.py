"""`localparity explain`: scores and features in, which features carry the gap out."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from textwrap import fill, indent
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import localparity as lp
from localparity._text import outward_points, points, visible
from localparity._validation import FileColumn, as_groups
from localparity.auditing._audit import read_audit
from localparity.auditing._explain import LEAST_GROUP
from localparity.auditing._files import AuditColumns, Scorer, read_features
from localparity.auditing._options import AuditOptions
from localparity.cli._commands import note, print_json, typed_command
from localparity.cli._options import (
    ConfidenceOption,
    CriterionOption,
    EncodingOption,
    ForceOption,
    GroupOption,
    LabelOption,
    PeopleArgument,
    RemoteOption,
    SeedOption,
    SheetOption,
    TextOption,
    WeightOption,
    check_file,
    check_labels,
    open_file,
    parse_range,
)
from localparity.results import ExplainedGap, Explanation, ModelCard

_MOST_LINES = 12
_BAR = 20
_NAME = 24


def explain(
    ctx: typer.Context,
    file: PeopleArgument,
    group: GroupOption,
    score: Annotated[str | None, typer.Option(help="The column of the scores; --model makes them.")] = None,
    features: Annotated[
        str | None,
        typer.Option(help="The columns to explain by, separated by commas; all others, or the model's."),
    ] = None,
    allow: Annotated[
        str | None,
        typer.Option(help="Columns that you consider a good reason for a gap, separated by commas."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="The folder of a saved model: also say what the model uses.")
    ] = None,
    label: LabelOption = None,
    weight: WeightOption = None,
    cluster: Annotated[
        str | None, typer.Option(help="The column that rows of one person or household share.")
    ] = None,
    criterion: CriterionOption = "demographic_parity",
    text: TextOption = None,
    score_range: Annotated[str, typer.Option(help="The lowest and the highest score.")] = "0,1",
    confidence: ConfidenceOption = 0.95,
    seed: SeedOption = 0,
    report: Annotated[
        Path | None, typer.Option(help="Write the audit's page here, with what carries the gap.")
    ] = None,
    force: ForceOption = False,
    record: Annotated[bool, typer.Option(help="Write what was found to the card of --model.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    encoding: EncodingOption = None,
    sheet: SheetOption = None,
    allow_remote: RemoteOption = False,
) -> None:
    """Say which features carry the gap: what remains of it among people who are alike in them.

    Explained is an association, not a cause. Which features are a good reason is for you to decide (--allow).

    Exit codes: 0 when it is done, 2 for bad usage or input.
    """
    check_labels(criterion, label)
    check_file(report, "--report", read=[file], replace=force)
    ends = parse_range(score_range, "--score-range")
    if (score is None) == (model is None):
        raise typer.BadParameter("give --score or --model, one of them", param_hint="--score")
    if record and model is None:
        raise typer.BadParameter("needs --model, whose card it is", param_hint="--record")
    columns = AuditColumns(score=score, group=group, label=label, weight=weight, cluster=cluster)
    allowed = allow.split(",") if allow else []
    table = open_file(file, encoding=encoding, sheet=sheet, allow_remote=allow_remote)
    roles = [name for name in (score, label, weight, cluster, *group) if name is not None]
    scorer = None if model is None else Scorer.load(model)
    others = [name for name in table.columns if name not in roles] if scorer is None else scorer.features
    names = features.split(",") if features else others
    table.check([*names, *allowed])
    numbers = [name for name in (score, label, weight) if name is not None]
    known = table.read(numbers=numbers, values=[] if cluster is None else [cluster], groups=group)
    groups = {name: known[name] for name in group}
    as_groups(groups, len(known[group[0]]), FileColumn(table.name), at_least=1)  # which names column and row
    people = read_features(table, names, text or [], extra="data", advice="use --text {} if it is a text")
    explanation = lp.explain(
        known[str(score)] if scorer is None else scorer.score(table, group),
        people,
        sensitive_features=groups,
        y_true=None if label is None else known[label],
        sample_weight=None if weight is None else known[weight],
        cluster=None if cluster is None else known[cluster],
        criterion=criterion,
        allow=allowed,
        model=None if scorer is None else scorer.classifier,
        score_range=ends,
        confidence=confidence,
        random_state=seed,
    )
    if record and scorer is not None:
        _record(explanation, scorer)
    if report is not None:
        options = AuditOptions(
            criterion=criterion,
            confidence=confidence,
            score_range=ends,
            random_state=seed,
            min_group_size=LEAST_GROUP,
        )
        audit = read_audit(table, columns, options, call=typed_command(ctx), scorer=scorer)
        title = f"Local disparity by {', '.join(group)}"
        lp.report.write_page(report, {file: audit}, title=title, explanation=explanation, force=force)
        note(f"report: {report}")
    if json:
        print_json(explanation.to_dict())
    else:
        _show(explanation, f"{table.name}  {explanation.rows:,} people  by {' x '.join(group)}")


def _record(explanation: Explanation, scorer: Scorer) -> None:
    """Write what was found to a model's card."""
    said = (*explanation.sentences, *explanation.notes)
    scorer.classifier.save(scorer.folder, replace(ModelCard.read(scorer.folder), explained=said))
    note(f"recorded in the card of {scorer.folder}")


def _show(explanation: Explanation, about: str) -> None:
    console = Console(width=max(80, Console().width))
    lines, margin = [visible(about), ""], 8 * " "
    for start, sentence in zip_longest(("WHY",), explanation.sentences, fillvalue=""):
        first = f"  {start:<6}"
        lines.append(fill(visible(sentence), console.width, initial_indent=first, subsequent_indent=margin))
    balanced = [gap for gap in explanation.features if gap.remaining is not None]
    confidence = f"{100 * explanation.confidence:g}%"
    if balanced:
        lines += ["", f"  {'alike in':<{_NAME}} remaining {confidence:>8}  {'':<{_BAR}}  group AUC"]
    lines += [_line(gap, explanation.total.estimate) for gap in balanced[:_MOST_LINES]]
    lines += [f"  ... {len(balanced) - _MOST_LINES} more"] if len(balanced) > _MOST_LINES else []
    together = [gap for gap in explanation.sets if gap.remaining is not None]
    if together:
        lines += ["", f"  added to {visible(together[0].features[0])}:"]
        lines += [_line(gap, explanation.total.estimate) for gap in together]
    notes = [visible(note) for note in explanation.notes]
    notes[-1] += "" if explanation.allowed else " --allow a,b names what may explain."
    lines += ["", *(indent(fill(note, console.width - 2), "  ") for note in notes)]
    console.print(Text("\n".join(lines)))


def _line(gap: ExplainedGap, total: float) -> str:
    """A feature or a set of them, what remains as a bar, and how well it tells the group."""
    assert gap.remaining is not None
    several = len(gap.features) > 1 and gap.short_name == gap.name
    names = visible(f"+ {gap.features[-1]}" if several else gap.short_name)
    names = names if len(names) <= _NAME else names[: _NAME - 3] + "..."
    size = points(gap.remaining.estimate).partition(" ")[0]
    interval = outward_points(gap.remaining.low, gap.remaining.high, unit=False)
    bar = "#" * round(_BAR * min(gap.remaining.estimate / total, 1.0)) if total else ""
    return f"  {names:<{_NAME}} {size:>9} {interval:>8}  {bar:<{_BAR}}  {gap.group_auc.estimate:.2f}"
