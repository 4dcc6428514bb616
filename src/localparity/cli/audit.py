"""`localparity audit`: a file of scores in, the disparity between groups out, with a pass or fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from typer import Option

import localparity as lp
from localparity._io._duckdb import text_of, without_password
from localparity._io._table import Table, as_group_columns, open_table
from localparity._text import brief, visible, visible_lines
from localparity._types import HigherIs, IntervalMethod, Missing, MissingGroups, Scale
from localparity._validation import warn_of_unmatched
from localparity.auditing._audit import Audit, DecideBy
from localparity.auditing._auditing import SmallGroups
from localparity.auditing._classes import ClassAudits, class_confidence
from localparity.auditing._document import Document
from localparity.auditing._files import Engine
from localparity.auditing._missing import breakdown_of
from localparity.auditing._paired_models import PairedModels
from localparity.auditing._scale import ScoreScale, as_data_range
from localparity.auditing._steps import AuditedFile
from localparity.cli._commands import note, print_json, print_line, typed_command
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
from localparity.cli._tables import RemoteOption, announce_remote, warn_of_training_file
from localparity.cli.predict import Scorer
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.engines._ibis import read_database
from localparity.engines._missing_rows import count_missing, without_missing
from localparity.engines._table import ScoreColumns
from localparity.metrics import ScoringRates, scoring_rates
from localparity.metrics._window import percent
from localparity.metrics._within import within_bound
from localparity.predictions import Predictions
from localparity.report._terminal import paired_parts, ratio_parts, terminal_parts
from localparity.uncertainty import WorstSplit

# What `localparity audit` prints and writes.


AuditFormat = Literal["text", "json", "markdown", "junit"]


def check_format(form: AuditFormat, json: bool, max_mcdp: float | None) -> AuditFormat:
    """The form to print, of which --json is a short name; test cases need a bound."""
    if json and form not in ("text", "json"):
        raise typer.BadParameter(f"must be json with --json, got {form}", param_hint="--format")
    if form == "junit" and max_mcdp is None:
        raise typer.BadParameter("junit needs --max-mcdp, which its test cases decide", param_hint="--format")
    return "json" if json else form


def show(document: Document, form: AuditFormat) -> None:
    """Print a document."""
    if form == "json":
        typer.echo(visible_lines(document.to_json()))
    elif form == "markdown":
        from localparity.report._markdown import to_markdown

        typer.echo(to_markdown(document), nl=False)
    elif form == "junit":
        from localparity.report._bundle import to_junit

        typer.echo(to_junit(document), nl=False)
    else:
        console = Console()
        for file, audit in document.audits.items():
            console.print(*terminal_parts(audit, title=visible(file)), sep="\n")
            console.print(*ratio_parts(document.ratios(file), document.scoring.get(file)), sep="\n")
        if document.paired is not None:
            console.print(*paired_parts(document.paired), sep="\n")


def tell_verdicts(document: Document) -> bool:
    """Say of each file whether it is within the bound; whether all are."""
    bounds = {name: document.answers(name).bound for name in document.audits}
    for name, bound in bounds.items():
        if bound is not None:
            whose = f"{name}: " if len(bounds) > 1 else ""
            note(f"{'pass' if bound.within else 'fail'}: {whose}{bound.sentence}")
            if bound.could_be_chance:
                note(
                    "--decide-by lower fails only what chance does not explain; --min-group-size and "
                    "--small-groups drop leave small groups out"
                )
            breakdown = breakdown_of(document.audits[name], bound.max_mcdp)
            for sentence in () if breakdown is None else breakdown.sentences:
                note(sentence)
    return all(bound is None or bound.within for bound in bounds.values())


def write_report(document: Document, path: Path, *, force: bool) -> None:
    """Write the page."""
    from localparity._io._files import write_new
    from localparity.report.page._page import render_page

    write_new(path, render_page(document).encode(), force=force)
    note(f"report: {path}")


def write_out(document: Document, path: Path, *, model: Path | None, force: bool) -> None:
    """Write the bundle."""
    from localparity._io._files import write_new
    from localparity.report._bundle import bundle

    write_new(path, bundle(document, model), force=force)
    note(f"bundle: {path}")


# `localparity audit ADDRESS --table NAME`: scores in a database, which counts them itself.


TableOption = Annotated[
    str | None, Option(help="The table or view, also schema.table, where FILE is a database's address.")
]

_DATABASES = ("postgres://", "postgresql://", "duckdb://", "sqlite://")
_NOT_WITH_DATABASE = (
    "model", "target", "split", "person_id", "scoring", "cluster", "control", "missing_groups",
    "missing_values", "missing", "encoding", "decimal", "sheet", "normalise_groups",
)  # fmt: skip


def engine_of(ctx: Any) -> Engine:
    """The engine that was asked for, which for a table of a database is Ibis."""
    table, engine = ctx.params["table"], ctx.params["engine"]
    if table is None:
        named = next((file for file in ctx.params["files"] if file.startswith(_DATABASES)), None)
        if engine == "ibis" or named is not None:
            raise typer.BadParameter("must name the table of a database's address", param_hint="--table")
        return engine  # type: ignore[no-any-return]
    typed = {param.name: param.opts[0] for param in ctx.command.params if param.name in _NOT_WITH_DATABASE}
    for name, option in typed.items():
        if ctx.get_parameter_source(name).name != "DEFAULT":
            raise typer.BadParameter("cannot be used with --table", param_hint=option)
    if engine == "spark":
        raise typer.BadParameter("cannot be used with --table", param_hint="--engine spark")
    return "ibis"


def open_databases(ctx: Any, addresses: Sequence[str], table: str, *, allow_remote: bool) -> dict[str, Any]:
    """A table of each database, by a name that has no password; connections are closed at the end."""
    found = {}
    for address in addresses:
        shown = without_password(address)
        opened = read_database(address, table, allow_remote=allow_remote)
        ctx.call_on_close(opened.get_backend().disconnect)
        found[f"{table} ({shown})"] = opened
        note(f"counting in {shown}")
    return found


# An audit of the scores that a saved model gives the people in a file.


class ModelAudit(NamedTuple):
    """A saved model, and the column of the two classes that it tells apart."""

    folder: Path
    scorer: Scorer
    target: str | None

    @classmethod
    def load(cls, folder: Path, target: str | None) -> ModelAudit:
        """Return the model of a folder, ready to score."""
        return cls(folder, Scorer.load(folder), target)

    def read(
        self,
        table: Table,
        *,
        group: Sequence[str],
        label: str | None,
        weight: str | None,
        cluster: str | None,
        control: Sequence[str] | None = None,
        missing_values: Sequence[str] = (),
        **options: Any,
    ) -> lp.Audit:
        """Score the people in a file and audit the scores."""
        numbers = [name for name in (label, weight) if name]
        values = [name for name in (self.target, cluster) if name]
        known = table.read(numbers=numbers, values=values, groups=[*group, *(control or ())])
        labels = known[label] if label else None
        if self.target:
            labels = self._labels(known[self.target], table.name)
        table.warn({value for name in group for value in known[name].tolist()})
        warn_of_training_file(self.folder, table.name)
        found = lp.audit(
            labels,
            self.scorer.score(table, group),
            sensitive_features={name: known[name] for name in group},
            sample_weight=known[weight] if weight else None,
            cluster=known[cluster] if cluster else None,
            control_features={name: known[name] for name in control} if control else None,
            missing_values=table.as_joined(missing_values),
            **options,
        )
        columns = {
            "group": group,
            "target": self.target,
            "label": label,
            "weight": weight,
            "cluster": cluster,
        }
        seed = options.get("random_state")
        provenance = lp.results.Provenance.now("", source=table, columns=columns, seed=seed)
        told = {**options, "missing_values": missing_values, "score_range": (0.0, 1.0)}
        return replace(found, provenance=provenance, file=AuditedFile.of(table, provenance, told))

    def _labels(self, classes: NDArray[Any], source: str) -> NDArray[np.int64]:
        """Return 1 for the class whose probability is the score; a file may write a class as a text."""
        negative, positive = map(str, self.scorer.classifier.classes_)
        texts = [str(value) for value in classes.tolist()]
        for row, text in enumerate(texts):
            if text not in (negative, positive):
                raise ValueError(
                    f"column {self.target!r} of {source} must be {negative!r} or {positive!r}, as the "
                    f"model's classes, got {brief(text)} at data row {row + 1}"
                )
        return np.asarray([text == positive for text in texts], dtype=np.int64)


# `localparity audit --scoring-rates`: the categories of a file, those that are not known among them.


def check_scoring(given: Mapping[str, Any]) -> None:
    """Check that nothing is asked for that scoring rates do not have."""
    options = {f"--{name}": given[name] for name in ("model", "weight", "cluster", "split")}
    options |= {"--engine spark": given["engine"] == "spark", "--scale rank": given["scale"] == "rank"}
    options["several --score"] = len(given["score"] or []) > 1
    for option, value in options.items():
        if given["scoring"] and value:
            raise typer.BadParameter(f"cannot be used with {option}", param_hint="--scoring-rates")


def scoring_rates_of(
    tables: Mapping[str, Table], columns: Mapping[str, Any], asked: Mapping[str, Any]
) -> dict[str, ScoringRates]:
    """The scoring rates of files, in which rows without a category count as unknown."""
    score = columns["score"]
    names = as_group_columns(score, columns["group"])
    options = {"min_group_size": asked["disclosure_limit"], "higher_is": asked["higher_is"] or "better"}
    scale = ScoreScale.of(asked["scale"], asked["score_range"])
    found = {}
    for file, table in tables.items():
        named = ScoreColumns(score, names)
        scored = without_missing(table, named, groups="raise", missing=asked["missing"], texts=())
        values = scored.read(numbers=[score], groups=names)
        categories = {name: values[name] for name in names}
        rows = Predictions.from_arrays(
            None,
            values[score],
            sensitive_features=categories,
            score_range=scale.range_of(None, values[score]),
            min_groups=1,
            missing_values=table.as_joined(asked["missing_values"]),
        )
        found[file] = scoring_rates(rows, columns=names, **options)
    return found


# `localparity audit --split`: the cutoff of a number, such as age, with the largest disparity.


_NOT_WITH_SPLIT = ("group", "model", "weight", "cluster", "report", "out", "person_id", "method")
_NEEDED = {"scale": "score", "decide_by": "estimate", "engine": "duckdb"}


def check_split_and_classes(given: Mapping[str, Any]) -> None:
    """Check the options of an audit that say what is compared."""
    _check_split(given)
    _check_classes(given)


def _check_split(given: Mapping[str, Any]) -> None:
    """Check that there are groups or a number to split, and no options that a split has no use for."""
    if given["split"] is None:
        if not given["group"]:
            needed = "must name the column of the groups, or --split one of numbers, got neither"
            raise typer.BadParameter(needed, param_hint="--group")
        return
    unused = [f"--{_option(name)}" for name in _NOT_WITH_SPLIT if given[name]]
    unused += [f"--{_option(name)} {given[name]}" for name, need in _NEEDED.items() if given[name] != need]
    if given["form"] in ("markdown", "junit"):
        unused.append(f"--format {given['form']}")
    if unused:
        raise typer.BadParameter(f"cannot be used with {unused[0]}", param_hint="--split")


def _check_classes(given: Mapping[str, Any]) -> None:
    """Check that several scores are those of classes in one file, of which no labels say which is right."""
    score = given["score"] or []
    if len(score) < 2:
        return
    repeated = next((name for name in score if score.count(name) > 1), None)
    if repeated is not None:
        raise typer.BadParameter(f"{repeated!r} is named twice", param_hint="--score")
    others = [f"--{_option(name)}" for name in ("label", "person_id", "split") if given[name]]
    others += ["several files"] if len(given["files"]) > 1 else []
    if others:
        raise typer.BadParameter(
            f"must be one column with {others[0]}, got {len(score)}", param_hint="--score"
        )


def _option(name: str) -> str:
    return "id" if name == "person_id" else name.replace("_", "-")


def audit_splits(
    tables: Mapping[str, Table],
    feature: str,
    score: str,
    asked: Mapping[str, Any],
    *,
    json: bool,
) -> bool:
    """Print the worst split of each file; whether all are within the bound."""
    found = {file: _worst_split(table, feature, score, asked) for file, table in tables.items()}
    epsilons, max_mcdp = asked["epsilons"], asked["max_mcdp"]
    if json:
        print_json({file: _plain(split, feature, epsilons) for file, split in found.items()})
    else:
        for file, split in found.items():
            for line in _told(split, file, feature, epsilons, asked["n_resamples"]):
                print_line(line)
    for file, split in found.items():
        if max_mcdp is not None:
            verdict, relation = (
                ("pass", "within") if within_bound(split.mcdp, max_mcdp) else ("fail", "above")
            )
            whose = f"{file}: " if len(found) > 1 else ""
            value = percent(split.mcdp)
            note(f"{verdict}: {whose}MCDP(0) is {value}, {relation} the bound of {percent(max_mcdp)}")
    return max_mcdp is None or all(within_bound(split.mcdp, max_mcdp) for split in found.values())


def _worst_split(table: Table, feature: str, score: str, asked: Mapping[str, Any]) -> WorstSplit:
    from localparity.uncertainty import worst_split  # which imports numba

    score_range, label = asked["score_range"], asked["label"]
    if score_range == "data":
        score_range = as_data_range(*table.range_of(score), f"column {score!r}")
    table.check([score, feature])
    columns = ScoreColumns(score, (feature,), label, None, score_range)
    drop = {"missing": asked["missing"], "groups": "drop" if asked["missing_groups"] == "drop" else "raise"}
    texts = tuple(asked["missing_values"])
    if texts:
        warn_of_unmatched(count_missing(table, columns, texts).unmatched)
    kept = without_missing(table, columns, texts=texts, **drop)
    rows = kept.read(numbers=[score, feature, *([label] if label else [])])
    table.warn()
    people = Predictions.from_arrays(
        rows[label] if label else None,
        rows[score],
        sensitive_features=np.zeros(len(rows[score]), dtype=np.uint8),
        score_range=score_range,
        min_groups=1,
    )
    return worst_split(
        people,
        rows[feature],
        criterion=asked["criterion"],
        min_group_size=max(asked["min_group_size"], asked["disclosure_limit"]),
        n_resamples=asked["n_resamples"],
        random_state=asked["random_state"],
        n_jobs=asked["n_jobs"],
    )


def _plain(found: WorstSplit, feature: str, epsilons: list[float]) -> dict[str, Any]:
    return {
        "feature": feature,
        "split": found.split,
        "rows": list(found.sizes),
        "mcdp": found.mcdp,
        "p_value": None if found.test is None else found.p_value,
        "least_rows": found.least,
        "clearest": None if found.clearest is None else _plain(found.clearest, feature, epsilons),
        "at_this_split": [{"epsilon": each, "mcdp": found.curve.mcdp(each)} for each in epsilons],
        "sentence": found.window.sentence,
    }


def _told(found: WorstSplit, file: str, feature: str, epsilons: list[float], n_resamples: int) -> list[str]:
    others = ", ".join(f"MCDP({each:g}) {percent(found.curve.mcdp(each))}" for each in epsilons if each > 0.0)
    lines = [
        f"{file}: of all splits of {feature} with at least {found.least:,} people on either side, that at "
        f"{_numbers(found, 'has the largest MCDP(0),', n_resamples)}.",
        found.window.sentence,
        *([f"At this split: {others}."] if others else []),
    ]
    if found.clearest is not None:
        lines.append(
            "The clearest split, which stands out most from chance, is that at "
            f"{_numbers(found.clearest, 'with an MCDP(0) of', n_resamples)}."
        )
    if found.test is not None:
        lines.append(
            f"P-values allow for the search over all splits; without a disparity it would find "
            f"{percent(found.test.null_mean)} on average."
        )
    return [*lines, "Rows are assumed to be independent: one row for each person."]


def _numbers(found: WorstSplit, has: str, n_resamples: int) -> str:
    """Where a split is, its MCDP, its people and its p-value."""
    from localparity.uncertainty._permutation import least_p_value, p_value_text

    low, high = found.sizes
    least = least_p_value(n_resamples)
    test = "" if found.test is None else f"; p-value {p_value_text(found.p_value, least)}"
    return f"{found.split:g} {has} {percent(found.mcdp)}: {low:,} people at or below it, {high:,} above{test}"


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
