"""`localparity audit`: a file of scores in, the disparity between groups out, with a pass or fail."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import typer
from rich.console import Console
from typer import Option

from localparity._io._duckdb import text_of, without_password
from localparity._io._table import Table, as_group_columns, open_table
from localparity._text import p_value_text, percent, visible_lines
from localparity._types import HigherIs, IntervalMethod, Missing, MissingGroups, RangeOption
from localparity._validation import warn_of_unmatched
from localparity.auditing._audit import Audit, DecideBy, read_audit
from localparity.auditing._document import Document
from localparity.auditing._files import AuditColumns, Engine, Scorer, range_in_table
from localparity.auditing._missing import breakdown_of
from localparity.auditing._options import AuditOptions
from localparity.auditing._paired_models import PairedModels
from localparity.auditing._people import range_of_scores
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
    asking,
    check_bound,
    check_file,
    check_labels,
    check_ratio,
    parse_epsilons,
    parse_range,
    typed_options,
)
from localparity.cli._tables import RemoteOption, announce_remote
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.engines._ibis import read_database
from localparity.engines._missing_rows import count_missing, without_missing
from localparity.engines._table import ScoreColumns
from localparity.metrics import ScoringRates, scoring_rates
from localparity.metrics._within import within_bound
from localparity.predictions import Predictions
from localparity.uncertainty import WorstSplit

AuditFormat = Literal["text", "json", "markdown", "junit"]

_DATABASES = ("postgres://", "postgresql://", "duckdb://", "sqlite://")
_NOT_WITH_DATABASE = (
    "model", "target", "split", "person_id", "scoring", "cluster", "control", "missing_groups",
    "missing_values", "missing", "encoding", "decimal", "sheet", "normalise_groups",
)  # fmt: skip
_NOT_WITH_SPLIT = (
    "group", "model", "weight", "cluster", "report", "out", "person_id", "method", "decide_by", "engine",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ScoresAsked:
    """Where the scores are, and the columns of a file by their use."""

    panel: ClassVar[str] = "Scores and columns"

    table: Annotated[
        str | None, Option(help="The table or view, also schema.table, where FILE is a database's address.")
    ] = None
    score: Annotated[str | None, Option(help="The column of the scores, if no --model makes them.")] = None
    group: Annotated[
        list[str] | None, Option(help="The column of the groups; repeat it to compare intersections.")
    ] = None
    label: LabelOption = None
    weight: WeightOption = None
    cluster: Annotated[str | None, Option(help="The column of the person or household of a row.")] = None
    person_id: Annotated[
        str | None,
        Option(
            "--id",
            help="The column of the people's ids. Says whether a file has several rows of a person; several "
            "files of the same people are compared.",
        ),
    ] = None
    model: Annotated[Path | None, Option(help="The folder of a saved model that scores the files.")] = None
    target: Annotated[str | None, Option(help="With --model, the column of the two classes.")] = None
    control: Annotated[
        list[str] | None,
        Option(
            help="A column of strata, such as job or year, within which groups are compared too; repeatable."
        ),
    ] = None
    split: Annotated[
        str | None,
        Option(
            help="Instead of --group, a column of numbers such as age: find its worst cutoff, of those with "
            "at least --min-group-size people on either side."
        ),
    ] = None

    @property
    def columns(self) -> AuditColumns:
        """The columns of an audit of a score, or of a model's."""
        return AuditColumns(
            score=self.score,
            group=self.group or (),
            label=self.label,
            weight=self.weight,
            cluster=self.cluster,
            control=self.control,
            target=self.target,
        )

    def check(self, files: Sequence[str], engine: Engine) -> None:
        """Check that scores are read or made, of groups or a split, and that people can be told apart."""
        if (not self.score) == (self.model is None):
            got = "both" if self.score else "neither"
            raise typer.BadParameter(
                f"must name the column of the scores, or --model a folder that makes them, got {got}",
                param_hint="--score",
            )
        if self.target is not None and self.model is None:
            raise typer.BadParameter("needs --model; use --label with --score", param_hint="--target")
        if self.target is not None and self.label is not None:
            raise typer.BadParameter("cannot be used with --label; give one of them", param_hint="--target")
        if self.model is not None and engine != "duckdb":
            raise typer.BadParameter(f"must be duckdb with --model, got {engine}", param_hint="--engine")
        if self.split is None and not self.group:
            needed = "must name the column of the groups, or --split one of numbers, got neither"
            raise typer.BadParameter(needed, param_hint="--group")
        if self.person_id is not None and len(files) > 1 and self.model is not None:
            raise typer.BadParameter("needs --score; one model gives a person one score", param_hint="--id")


@dataclass(frozen=True, kw_only=True)
class PeopleAsked:
    """Who is compared, and what is done with rows and groups that cannot be."""

    panel: ClassVar[str] = "What is compared"

    epsilon: Annotated[str, Option(help="Half-widths of windows, as fractions of the score range.")] = (
        "0,0.01,0.05,0.1"
    )
    criterion: CriterionOption = "demographic_parity"
    compare: CompareOption = "between_groups"
    score_range: Annotated[
        str,
        Option(
            help="The lowest and the highest score there can be; data: those of the scores; rank: windows in "
            "ranks, so that an epsilon is a share of people."
        ),
    ] = "0,1"
    threshold: Annotated[float | None, Option(help="Threshold of delta-DP; by default mean scores.")] = None
    pos_label: Annotated[
        str | None, Option(help="The label that counts as 1, where labels are not 0 and 1.")
    ] = None
    higher_is: Annotated[HigherIs | None, Option(help="Whether higher scores are better or worse.")] = None
    min_group_size: Annotated[
        int, Option(help="Groups of fewer people are left out of everything, named but not counted.")
    ] = DISCLOSURE_LIMIT
    missing_groups: Annotated[
        MissingGroups,
        Option(help="Rows without a group: refuse, leave out, a group, or bounds of what they could change."),
    ] = "raise"
    missing_values: Annotated[
        list[str] | None,
        Option("--missing-value", help="Text that means no group, like a blank; repeatable."),
    ] = None
    missing: Annotated[
        Missing, Option(help="Rows without a score, label or weight: refuse or leave out.")
    ] = "raise"

    @property
    def range(self) -> RangeOption:
        """The score range as the library takes it."""
        if self.score_range == "data":
            return "data"
        return "rank" if self.score_range == "rank" else parse_range(self.score_range, "--score-range")


@dataclass(frozen=True, kw_only=True)
class BoundsAsked:
    """What decides between pass and fail."""

    panel: ClassVar[str] = "Bounds and rules"

    max_mcdp: Annotated[
        float | None, Option(help="Exit with 1 when MCDP at the smallest epsilon is above this.")
    ] = None
    decide_by: Annotated[
        DecideBy, Option(help="What --max-mcdp compares: the estimate or an end of its interval.")
    ] = "estimate"
    min_ratio: Annotated[
        float | None,
        Option(help="Find the cutoffs that keep every group's selection rate at this share of the highest."),
    ] = None
    scoring: Annotated[
        bool,
        Option("--scoring-rates", help="Add the table of scoring rates that New York City's rule asks for."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class SurenessAsked:
    """How sure the answer must be."""

    panel: ClassVar[str] = "How sure"

    method: Annotated[
        IntervalMethod | None,
        Option(help="How intervals are made; finite_sample, or bootstrap with weights or clusters."),
    ] = None
    confidence: ConfidenceOption = 0.95
    resamples: Annotated[int, Option(help="Resamples of the test; 0 leaves it out.")] = 1000
    seed: SeedOption = 0
    jobs: Annotated[int, Option(help="How many resamples run at a time; -1 for all cores.")] = -1

    def options(self, people: PeopleAsked) -> AuditOptions:
        """The question of an audit."""
        return AuditOptions(
            epsilons=parse_epsilons(people.epsilon),
            criterion=people.criterion,
            compare=people.compare,
            score_range=people.range,
            threshold=people.threshold,
            pos_label=None if people.pos_label is None else _label(people.pos_label),
            min_group_size=people.min_group_size,
            missing_groups=people.missing_groups,
            missing_values=people.missing_values or (),
            missing=people.missing,
            confidence=self.confidence,
            method=self.method,
            n_resamples=self.resamples,
            random_state=self.seed,
            n_jobs=self.jobs,
            higher_is=people.higher_is,
        )


def _label(text: str) -> str | int:
    """A label as files have it: a whole number, or a text."""
    return int(text) if text.removeprefix("-").isdecimal() else text


@dataclass(frozen=True, kw_only=True)
class ReadingAsked:
    """How files are read."""

    panel: ClassVar[str] = "Reading files"

    engine: Annotated[Engine, Option(help="The engine that reads the files.")] = "duckdb"
    encoding: EncodingOption = None
    decimal: DecimalOption = None
    sheet: SheetOption = None
    normalise_groups: NormaliseOption = False
    allow_remote: RemoteOption = False

    def open(self, file: str) -> Any:
        """A file as it is to be read; for Spark, its path."""
        if self.engine == "duckdb":
            return open_table(
                file,
                encoding=self.encoding,
                decimal=self.decimal,
                sheet=self.sheet,
                normalise_groups=self.normalise_groups,
                allow_remote=self.allow_remote,
            )
        for option in typed_options([self], "encoding", "decimal", "sheet", "normalise_groups"):
            raise typer.BadParameter(f"needs --engine duckdb, got {self.engine}", param_hint=option)
        return file


@dataclass(frozen=True, kw_only=True)
class OutputAsked:
    """What is printed and written."""

    panel: ClassVar[str] = "Output"

    form: Annotated[
        AuditFormat,
        Option(
            "--format", help="Print tables, JSON, Markdown for a pull request, or JUnit XML for a pipeline."
        ),
    ] = "text"
    json: Annotated[bool, Option("--json", help="The same as --format json.")] = False
    verbose: Annotated[
        bool,
        Option("--verbose", help="Print all tables after the answer, what is assumed and the checksums."),
    ] = False
    pairs: Annotated[
        str | None, Option(metavar="N|all", help="List so many pairs of groups, whatever is known of them.")
    ] = None
    report: Annotated[
        Path | None, Option(help="Write a page with charts here, all models on it; opens offline.")
    ] = None
    out: Annotated[
        Path | None,
        Option(help="Write a zip here: the page, JSON, Markdown, a model's card, the command and checksums."),
    ] = None
    force: ForceOption = False

    @property
    def listed(self) -> int | None:
        """How many pairs are listed; None lists the clear ones that there is room for."""
        return None if self.pairs is None else sys.maxsize if self.pairs == "all" else int(self.pairs)

    @property
    def printed(self) -> AuditFormat:
        """The form to print, of which --json is a short name."""
        return "json" if self.json else self.form

    def check(self, files: Sequence[str], max_mcdp: float | None) -> None:
        """Check that files can be written, and that test cases have a bound."""
        check_file(self.report, "--report", read=files, replace=self.force)
        check_file(self.out, "--out", read=files, replace=self.force)
        if self.pairs is not None and self.pairs != "all" and not self.pairs.isdecimal():
            raise typer.BadParameter(f"must be a number or all, got {self.pairs!r}", param_hint="--pairs")
        if self.json and self.form not in ("text", "json"):
            raise typer.BadParameter(f"must be json with --json, got {self.form}", param_hint="--format")
        if self.form == "junit" and max_mcdp is None:
            message = "junit needs --max-mcdp, which its test cases decide"
            raise typer.BadParameter(message, param_hint="--format")


FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="CSV, TSV, Parquet, JSON lines or a workbook, a model each; a glob in quotes is one model; "
        "or with --table a database's address.",
    ),
]


@asking
def audit(
    *,
    ctx: typer.Context,
    files: FilesArgument,
    scores: ScoresAsked,
    people: PeopleAsked,
    bounds: BoundsAsked,
    sureness: SurenessAsked,
    reading: ReadingAsked,
    output: OutputAsked,
) -> None:
    """Find where two groups are treated most differently by the scores in a file, or by a model's.

    Exit codes: 0 when it passes, 1 when MCDP is above the bound, 2 for wrong usage or input.
    """
    check_bound(bounds.max_mcdp, bounds.decide_by)
    check_ratio(bounds.min_ratio, people.criterion)
    output.check(files, bounds.max_mcdp)
    asked = (scores, people, bounds, sureness, reading, output)
    engine = _engine_of(files, scores.table, reading.engine, asked)
    scores.check(files, engine)
    _check_together(files, scores, asked)
    check_labels(people.criterion, scores.target or scores.label, "--target" if scores.model else "--label")
    options = sureness.options(people)
    tables = _open_all(ctx, _each_once(files), scores.table, reading)
    if scores.split is not None:
        split = {file: _worst_split(table, scores, options) for file, table in tables.items()}
        if not _tell_splits(split, scores.split, options, bounds.max_mcdp, json=output.printed == "json"):
            raise typer.Exit(1)
        return
    scorer = None if scores.model is None else Scorer.load(scores.model)
    with _resampling_bar(options.n_resamples) as advance:
        audits = {
            file: read_audit(
                table,
                scores.columns,
                replace(options, on_resample=advance),
                call=typed_command(ctx),
                engine=engine,
                scorer=scorer,
                allow_remote=reading.allow_remote,
            )
            for file, table in tables.items()
        }
    document = Document(
        audits=audits,
        title=f"Local disparity by {', '.join(scores.group or [])}",
        paired=_same_people(audits, list(tables.values()), scores, options),
        max_mcdp=bounds.max_mcdp,
        decide_by=bounds.decide_by,
        min_group_size=people.min_group_size,
        min_ratio=bounds.min_ratio,
        scoring=_scoring_rates(tables, scores, options) if bounds.scoring else {},
    )
    _show(document, output)
    passed = _tell_verdicts(document)
    _write(document, output, scores.model)
    if not passed:
        raise typer.Exit(1)


def _engine_of(files: Sequence[str], table: str | None, engine: Engine, asked: Sequence[object]) -> Engine:
    """The engine that counts, which for a table of a database is Ibis."""
    if table is None:
        if engine == "ibis" or any(file.startswith(_DATABASES) for file in files):
            raise typer.BadParameter("must name the table of a database's address", param_hint="--table")
        return engine
    for option in typed_options(asked, *_NOT_WITH_DATABASE):
        raise typer.BadParameter("cannot be used with --table", param_hint=option.split()[0])
    if engine == "spark":
        raise typer.BadParameter("cannot be used with --table", param_hint="--engine spark")
    return "ibis"


def _check_together(files: Sequence[str], scores: ScoresAsked, asked: Sequence[Any]) -> None:
    """Check that scoring rates, splits and ids come with nothing that they have no use for."""
    _, people, bounds, *_, output = asked
    unused: dict[str, list[str]] = {}
    if bounds.scoring:
        unused["--scoring-rates"] = typed_options(asked, "model", "weight", "cluster", "split", "engine")
    if scores.split is not None:
        unused["--split"] = typed_options(asked, *_NOT_WITH_SPLIT)
        unused["--split"] += [f"--format {output.form}"] if output.form in ("markdown", "junit") else []
    if scores.person_id is not None:
        several = ("missing_groups", "missing") if len(files) > 1 else ()
        unused["--id"] = typed_options(asked, "table", "engine", *several)
    for option, others in unused.items():
        if people.score_range == "rank" and (option != "--id" or len(files) > 1):
            others.append("--score-range rank")
        if others:
            raise typer.BadParameter(f"cannot be used with {others[0]}", param_hint=option)


def _each_once(files: list[str]) -> list[str]:
    repeated = next((file for file in files if files.count(file) > 1), None)
    if repeated is not None:
        raise typer.BadParameter(f"{repeated} is named twice", param_hint="FILE")
    return files


def _open_all(
    ctx: typer.Context, files: list[str], name: str | None, reading: ReadingAsked
) -> dict[str, Any]:
    """What is read, by the names that it is shown under, which have no password."""
    if name is None:
        announce_remote(files, allow_remote=reading.allow_remote)
        return {without_password(file): reading.open(file) for file in files}
    tables = {}
    for address in files:
        shown = without_password(address)
        opened = read_database(address, name, allow_remote=reading.allow_remote)
        ctx.call_on_close(opened.get_backend().disconnect)
        tables[f"{name} ({shown})"] = opened
        note(f"counting in {shown}")
    return tables


@contextmanager
def _resampling_bar(resamples: int) -> Iterator[Callable[[], object] | None]:
    """What is called after each resample: a bar on a terminal, which starts anew where there are more."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Resampling", total=resamples)

        def advance() -> None:
            if progress.finished:
                progress.reset(task)
            progress.advance(task)

        yield advance


# What is printed and written.


def _show(document: Document, output: OutputAsked) -> None:
    """Print a document."""
    form = output.printed
    if form == "json":
        typer.echo(visible_lines(document.to_json()))
    elif form == "markdown":
        from localparity.report._markdown import to_markdown

        typer.echo(to_markdown(document), nl=False)
    elif form == "junit":
        from localparity.report._bundle import to_junit

        typer.echo(to_junit(document), nl=False)
    else:
        from localparity.report._terminal import TerminalDocument

        Console().print(TerminalDocument(document, output.verbose, output.listed))


def _tell_verdicts(document: Document) -> bool:
    """Say of each file whether it is within the bound; whether all are."""
    answers = {name: document.answer(name) for name in document.audits}
    for name, answer in answers.items():
        bound = answer.bound
        if bound is not None:
            whose = f"{name}: " if len(answers) > 1 else ""
            advice = ""
            if bound.could_be_chance:
                advice = " --decide-by lower fails only what chance does not explain."
            note(f"{'pass' if bound.within else 'fail'}: {whose}{answer.verdict}{advice}")
            breakdown = breakdown_of(document.audits[name], bound.max_mcdp)
            for sentence in () if breakdown is None else breakdown.sentences:
                note(sentence)
    return all(answer.bound is None or answer.bound.within for answer in answers.values())


def _write(document: Document, output: OutputAsked, model: Path | None) -> None:
    """Write the page and the bundle where they are asked for."""
    if output.report is None and output.out is None:
        return
    from localparity._io._files import write_new
    from localparity.report._bundle import bundle
    from localparity.report.page._page import render_page

    page = render_page(document)
    if output.report is not None:
        write_new(output.report, page.encode(), force=output.force)
        note(f"report: {output.report}")
    if output.out is not None:
        write_new(output.out, bundle(document, model, page=page), force=output.force)
        note(f"bundle: {output.out}")


# `--scoring-rates`: the categories of a file, those that are not known among them.


def _scoring_rates(
    tables: Mapping[str, Table], scores: ScoresAsked, options: AuditOptions
) -> dict[str, ScoringRates]:
    """The scoring rates of files, in which rows without a category count as unknown."""
    score = scores.score or ""
    names = as_group_columns(score, scores.group or [])
    rates = {}
    for file, table in tables.items():
        columns = ScoreColumns(score, names)
        scored = without_missing(table, columns, groups="raise", missing=options.missing, texts=())
        values = scored.read(numbers=[score], groups=names)
        given = options.score_range
        rows = Predictions.from_arrays(
            None,
            values[score],
            sensitive_features={name: values[name] for name in names},
            score_range=range_of_scores(values[score]) if isinstance(given, str) else given,
            min_groups=1,
            missing_values=table.as_joined(options.policy.texts),
        )
        rates[file] = scoring_rates(
            rows,
            columns=names,
            min_group_size=options.min_group_size,
            higher_is=options.higher_is or "better",
        )
    return rates


# `--split`: the cutoff of a number, such as age, with the largest disparity.


def _worst_split(table: Table, scores: ScoresAsked, options: AuditOptions) -> WorstSplit:
    from localparity.uncertainty import worst_split  # which imports numba

    score = scores.score or ""
    feature, label = str(scores.split), scores.label
    score_range = range_in_table(table, score, options)
    table.check([score, feature])
    columns = ScoreColumns(score, (feature,), label, None, score_range)
    texts = options.policy.texts
    if texts:
        warn_of_unmatched(count_missing(table, columns, texts).unmatched)
    groups: MissingGroups = "drop" if options.missing_groups == "drop" else "raise"
    complete = without_missing(table, columns, texts=texts, missing=options.missing, groups=groups)
    rows = complete.read(numbers=[score, feature, *([label] if label else [])])
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
        criterion=options.criterion,
        min_group_size=options.min_group_size,
        n_resamples=options.n_resamples,
        random_state=options.random_state,
        n_jobs=options.n_jobs,
    )


def _tell_splits(
    splits: Mapping[str, WorstSplit],
    feature: str,
    options: AuditOptions,
    max_mcdp: float | None,
    *,
    json: bool,
) -> bool:
    """Print the worst split of each file; whether all are within the bound."""
    if json:
        print_json({file: _plain_split(split, feature, options) for file, split in splits.items()})
    else:
        for file, split in splits.items():
            for line in _split_lines(split, file, feature, options):
                print_line(line)
    if max_mcdp is None:
        return True
    passed = True
    for file, split in splits.items():
        within = within_bound(split.mcdp, max_mcdp)
        verdict, relation = ("pass", "within") if within else ("fail", "above")
        whose = f"{file}: " if len(splits) > 1 else ""
        value = percent(split.mcdp)
        note(f"{verdict}: {whose}MCDP(0) is {value}, {relation} the bound of {percent(max_mcdp)}")
        passed = passed and within
    return passed


def _plain_split(split: WorstSplit, feature: str, options: AuditOptions) -> dict[str, Any]:
    return {
        "feature": feature,
        "split": split.split,
        "rows": list(split.sizes),
        "mcdp": split.mcdp,
        "p_value": None if split.test is None else split.p_value,
        "least_rows": split.least,
        "clearest": None if split.clearest is None else _plain_split(split.clearest, feature, options),
        "at_this_split": [{"epsilon": one, "mcdp": split.curve.mcdp(one)} for one in options.epsilons],
        "sentence": split.window.sentence,
    }


def _split_lines(split: WorstSplit, file: str, feature: str, options: AuditOptions) -> list[str]:
    """The worst split of a file in sentences."""
    at = [f"MCDP({one:g}) {percent(split.curve.mcdp(one))}" for one in options.epsilons if one > 0.0]
    lines = [
        f"{file}: of all splits of {feature} with at least {split.least:,} people on either side, that at "
        f"{_split_numbers(split, 'has the largest MCDP(0),', options.n_resamples)}.",
        split.window.sentence,
        *([f"At this split: {', '.join(at)}."] if at else []),
    ]
    if split.clearest is not None:
        lines.append(
            "The clearest split, which stands out most from chance, is that at "
            f"{_split_numbers(split.clearest, 'with an MCDP(0) of', options.n_resamples)}."
        )
    if split.test is not None:
        lines.append(
            f"P-values allow for the search over all splits; without a disparity it would find "
            f"{percent(split.test.null_mean)} on average."
        )
    return [*lines, "Rows are assumed to be independent: one row for each person."]


def _split_numbers(split: WorstSplit, has: str, n_resamples: int) -> str:
    """Where a split is, its MCDP, its people and its p-value."""
    low, high = split.sizes
    p_value = p_value_text(split.p_value, 1.0 / (1 + n_resamples)) if split.test is not None else ""
    test = f"; p-value {p_value}" if p_value else ""
    return f"{split.split:g} {has} {percent(split.mcdp)}: {low:,} people at or below it, {high:,} above{test}"


# `--id`: people who are in several rows, or in several files.


def _same_people(
    audits: Mapping[str, Audit], tables: Sequence[Table], scores: ScoresAsked, options: AuditOptions
) -> PairedModels | None:
    """The models compared on the same people, where several files have ids; one file's are checked."""
    if scores.person_id is None:
        return None
    if len(tables) == 1:
        _note_repeated(tables[0], scores.person_id, clustered=scores.cluster is not None)
        return None
    first, score_range = next(iter(audits.values())), options.score_range
    if isinstance(score_range, str):
        lows, highs = zip(*(audit.score_range for audit in audits.values()), strict=True)
        score_range = (min(lows), max(highs))
    return PairedModels.read(
        tables,
        id=scores.person_id,
        score=scores.score or "",
        group=scores.group or [],
        label=scores.label,
        weight=scores.weight,
        cluster=scores.cluster,
        left_out=[left.group for left in first.left_out],
        epsilons=options.epsilons,
        score_range=score_range,
        criterion=options.criterion,
        compare=options.compare,
        confidence=options.confidence,
        n_resamples=options.n_resamples,
        random_state=options.random_state,
        n_jobs=options.n_jobs,
    )


def _note_repeated(table: Table, person_id: str, *, clustered: bool) -> None:
    """Say whether a file has several rows of a person, which an audit takes for several people."""
    table.check([person_id])
    text = text_of(person_id)
    query = f"SELECT count(DISTINCT {text}) AS people, count({text}) AS named FROM {table.rows}"
    counted = {name: int(values[0]) for name, values in table.fetch(query).items()}
    if counted["named"] == counted["people"]:
        note(f"no person of column {person_id!r} has several rows")
        return
    advice = "" if clustered else f"; pass --cluster {person_id} to take them for one person each"
    note(f"the {counted['named']:,} rows are of {counted['people']:,} people by column {person_id!r}{advice}")
