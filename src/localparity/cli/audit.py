"""`localparity audit`: a file of scores in, the disparity between groups out, with a pass or fail."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import typer
from rich.console import Console
from typer import Option

from localparity._io._duckdb import text_of
from localparity._io._files import private_folder
from localparity._io._table import Table, as_group_columns, open_table
from localparity._text import shown_address, visible_lines
from localparity._types import HigherIs, IntervalMethod, Missing, MissingGroups, RangeOption
from localparity._validation import InputError
from localparity.auditing._answer import DecideBy, NotAssessed
from localparity.auditing._audit import Audit, read_audit
from localparity.auditing._document import Document
from localparity.auditing._files import AuditColumns, Engine, Scorer
from localparity.auditing._missing import breakdown_of, looks_missing
from localparity.auditing._options import AuditOptions
from localparity.auditing._paired_models import PairedModels
from localparity.auditing._people import range_of_scores
from localparity.auditing._policy import Policy, PolicyFile, line_of, read_policy
from localparity.cli._commands import note, typed_command
from localparity.cli._options import (
    CompareOption,
    ConfidenceOption,
    CriterionOption,
    DecimalOption,
    EncodingOption,
    ForceOption,
    LabelOption,
    MissingValueOption,
    NormaliseOption,
    RemoteOption,
    SeedOption,
    SheetOption,
    WeightOption,
    announce_remote,
    asking,
    check_bound,
    check_file,
    check_labels,
    check_ratio,
    parse_epsilons,
    parse_range,
    typed_options,
)
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.engines._ibis import read_database
from localparity.engines._missing_rows import without_missing
from localparity.engines._table import ScoreColumns
from localparity.metrics import ScoringRates, scoring_rates
from localparity.predictions import Predictions
from localparity.uncertainty._bands import check_resamples

AuditFormat = Literal["text", "json", "markdown", "junit"]

_STDIN = "-"
_DATABASES = ("postgres://", "postgresql://", "duckdb://", "sqlite://")
_NOT_WITH_DATABASE = (
    "model", "target", "person_id", "scoring", "cutoff", "decision", "cluster", "control", "missing_groups",
    "missing_values", "missing", "encoding", "decimal", "sheet", "normalise_groups",
)  # fmt: skip
_READING = ("encoding", "decimal", "sheet", "normalise_groups")
_MOST_CHECKED = 2_000_000
"""Files of more rows are not searched for people who are in them several times, unless --id asks for it."""
_ID = re.compile(r"(.*[_ ])?id", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class AuditAsked:
    """The options of the command: those that most people need, then, in help too, the advanced ones."""

    first_advanced: ClassVar[str] = "criterion"

    score: Annotated[str | None, Option(help="The column of the scores; not needed with --model.")] = None
    group: Annotated[
        list[str] | None, Option(help="The column of the groups; repeat it to compare intersections.")
    ] = None
    label: LabelOption = None
    model: Annotated[Path | None, Option(help="The folder of a saved model that scores the files.")] = None
    score_range: Annotated[
        str,
        Option(metavar="LOW,HIGH", help="The lowest and the highest possible score; or data, or rank."),
    ] = "0,1"
    higher_is: Annotated[HigherIs | None, Option(help="Whether higher scores are better or worse.")] = None
    missing_groups: Annotated[
        MissingGroups,
        Option(
            help="Rows without a group: refuse, drop or keep as a group, or bound what they could change."
        ),
    ] = "raise"
    max_mcdp: Annotated[
        float | None, Option(help="Exit with 1 when MCDP at the smallest epsilon is above this.")
    ] = None
    report: Annotated[
        Path | None, Option(help="Write a page with charts here, for all models; it opens offline.")
    ] = None
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False
    verbose: Annotated[
        bool, Option("--verbose", help="Print all tables and assumptions after the answer.")
    ] = False
    pairs: Annotated[
        str | None, Option(metavar="N|all", help="List this many pairs of groups, clear ones first.")
    ] = None

    criterion: CriterionOption = "demographic_parity"
    compare: CompareOption = "between_groups"
    epsilon: Annotated[str, Option(help="Half-widths of windows, as fractions of the score range.")] = (
        "0,0.01,0.05,0.1"
    )
    decide_by: Annotated[
        DecideBy, Option(help="What --max-mcdp compares: the estimate or an end of its interval.")
    ] = "estimate"
    required_groups: Annotated[
        list[str] | None,
        Option(
            "--require-group", help="A group that must be checked against the bound; by default, every group."
        ),
    ] = None
    not_assessed: Annotated[
        NotAssessed, Option(help="Fail, or allow, when a group is too small, missing or unknown.")
    ] = "fail"
    weight: WeightOption = None
    cluster: Annotated[
        str | None, Option(help="The column that says which person or household a row belongs to.")
    ] = None
    person_id: Annotated[
        str | None,
        Option("--id", help="The column of people's ids, to compare several files person by person."),
    ] = None
    control: Annotated[
        list[str] | None, Option(help="A column of strata: also compare groups within each; repeatable.")
    ] = None
    target: Annotated[str | None, Option(help="With --model, the column of the two classes.")] = None
    pos_label: Annotated[
        str | None, Option(help="The label that counts as 1, where labels are not 0 and 1.")
    ] = None
    min_group_size: Annotated[
        int, Option(help="Groups of fewer people are left out of everything, named but not counted.")
    ] = DISCLOSURE_LIMIT
    missing_values: MissingValueOption = None
    missing: Annotated[
        Missing, Option(help="Rows without a score, label or weight: refuse or leave out.")
    ] = "raise"
    min_ratio: Annotated[
        float | None,
        Option(
            help="Find the cutoffs where every group's selection rate is at least this share of the highest."
        ),
    ] = None
    scoring: Annotated[
        bool, Option("--scoring-rates", help="Add the scoring rates that New York City's rule asks for.")
    ] = False
    cutoff: Annotated[
        float | None, Option(help="Add selection rates: people with scores above this are selected.")
    ] = None
    decision: Annotated[
        str | None, Option(help="Add selection rates from a column of decisions, 1 for selected.")
    ] = None
    data_source: Annotated[
        str | None, Option(help="Where the data come from, for the summary of these rates.")
    ] = None
    distribution_date: Annotated[
        str | None, Option(metavar="YYYY-MM-DD", help="When the tool came into use, for the same summary.")
    ] = None
    threshold: Annotated[float | None, Option(help="Threshold of delta-DP; by default mean scores.")] = None
    method: Annotated[
        IntervalMethod | None,
        Option(
            help="How intervals are made; by default finite_sample, or bootstrap with weights or clusters."
        ),
    ] = None
    confidence: ConfidenceOption = 0.95
    resamples: Annotated[int, Option(help="Resamples of the test; 0 skips it.")] = 1000
    seed: SeedOption = 0
    jobs: Annotated[int, Option(help="How many resamples run at a time; -1 for all cores.")] = -1
    table: Annotated[
        str | None, Option(help="The table or view (or schema.table), when FILE is a database's address.")
    ] = None
    engine: Annotated[Engine, Option(help="The engine that reads the files.")] = "duckdb"
    encoding: EncodingOption = None
    decimal: DecimalOption = None
    sheet: SheetOption = None
    normalise_groups: NormaliseOption = False
    allow_remote: RemoteOption = False
    form: Annotated[
        AuditFormat, Option("--format", help="Print the answer, JSON, Markdown, or JUnit XML for a pipeline.")
    ] = "text"
    out: Annotated[
        Path | None,
        Option(help="Write a zip here: the page, JSON, Markdown, a model's card, the command and checksums."),
    ] = None
    policy: Annotated[
        Path | None,
        Option(help="What to check: a TOML file, or tool.localparity in a pyproject.toml."),
    ] = None
    policy_sha256: Annotated[
        str | None, Option(help="Refuse a policy with any other checksum, before scores are read.")
    ] = None
    write_policy: Annotated[
        Path | None, Option(help="Write the options of this command as a policy here.")
    ] = None
    force: ForceOption = False

    @property
    def columns(self) -> AuditColumns:
        """The columns of an audit of a score, or of a model's."""
        uses = ("score", "label", "weight", "cluster", "control", "target")
        return AuditColumns(group=self.group or (), **{use: getattr(self, use) for use in uses})

    @property
    def range(self) -> RangeOption:
        """The score range as the library takes it."""
        if self.score_range == "data":
            return "data"
        return "rank" if self.score_range == "rank" else parse_range(self.score_range, "--score-range")

    @property
    def options(self) -> AuditOptions:
        """The question of an audit."""
        label = self.pos_label
        same = ("criterion", "compare", "threshold", "min_group_size", "missing_groups", "missing", "method")
        return AuditOptions(
            **{name: getattr(self, name) for name in (*same, "confidence", "higher_is")},
            epsilons=parse_epsilons(self.epsilon),
            score_range=self.range,
            # Files have a label as a whole number, or as a text.
            pos_label=int(label) if label and label.removeprefix("-").isdecimal() else label,
            missing_values=self.missing_values or (),
            n_resamples=self.resamples,
            random_state=self.seed,
            n_jobs=self.jobs,
        )

    def check(self, files: Sequence[str]) -> AuditOptions:
        """Check all that can be checked before a file is read; the question."""
        check_bound(self.max_mcdp, self.decide_by)
        check_ratio(self.min_ratio, self.criterion)
        check_file(self.report, "--report", read=files, replace=self.force)
        check_file(self.out, "--out", read=files, replace=self.force)
        check_file(self.write_policy, "--write-policy", read=files, replace=self.force)
        for option, message in _complaints(self, files):
            raise typer.BadParameter(message, param_hint=option)
        check_labels(self.criterion, self.target or self.label, "--target" if self.model else "--label")
        if self.person_id is not None and len(files) > 1:
            check_resamples(self.resamples, self.confidence)
        return self.options

    def to_policy(self, files: Sequence[str]) -> Policy:
        """The options as a policy."""
        names = (field.name for field in fields(Policy) if hasattr(self, field.name))
        values = {name: getattr(self, name) for name in names}
        options = self.options
        for name in ("epsilons", "score_range", "pos_label", "n_resamples", "random_state"):
            values[name] = getattr(options, name)
        listed = {name: tuple(value or ()) for name, value in values.items() if name in _LISTS}
        return Policy(**values | listed, scoring_rates=self.scoring, files=tuple(map(shown_address, files)))

    def under(
        self, ctx: typer.Context, files: Sequence[str]
    ) -> tuple[AuditAsked, list[str], PolicyFile | None]:
        """The same as a policy has it, where there is one, with the files; what was typed must agree."""
        if self.policy is None:
            if self.policy_sha256 is not None:
                raise typer.BadParameter("needs --policy", param_hint="--policy-sha256")
            if not files:
                raise typer.BadParameter(_NO_FILE, param_hint="FILE")
            return self, list(files), None
        file = read_policy(self.policy, self.policy_sha256)
        policy, typed = file.policy, self.to_policy(files)
        values = {}
        for field in fields(Policy):
            option = _option(ctx, _OPTION_NAMES.get(field.name, field.name))
            mine, theirs = getattr(typed, field.name), getattr(policy, field.name)
            is_open = field.name not in file.names and theirs in (None, ())
            if option is None or mine == theirs:
                values[field.name] = theirs
            elif is_open:
                values[field.name] = mine
            else:
                line = line_of(file.text, field.name)
                where = f"line {line} says" if line and field.name in file.names else "its default is"
                raise typer.BadParameter(f"contradicts {self.policy}: {where} {theirs!r}", param_hint=option)
        final = Policy(**values)
        if not final.files:
            raise typer.BadParameter(_NO_FILE, param_hint="FILE")
        asked = self.following(final)
        names_typed = final.files == tuple(map(shown_address, files))
        return asked, list(files if names_typed else final.files), file._replace(policy=final)

    def following(self, policy: Policy) -> AuditAsked:
        """The same with what a policy decides."""
        values = {field.name: getattr(policy, field.name) for field in fields(Policy)}
        ends = policy.score_range
        return replace(
            self,
            **{
                _OPTION_NAMES.get(name, name): value
                for name, value in values.items()
                if name not in _IN_OTHER_FORM
            },
            epsilon=",".join(map(repr, policy.epsilons)),
            score_range=ends if isinstance(ends, str) else ",".join(map(repr, ends)),
            pos_label=None if policy.pos_label is None else str(policy.pos_label),
        )

    def open(self, file: str) -> Any:
        """A file as it is to be read; for Spark, its path."""
        if self.engine != "duckdb":
            return file
        return open_table(file, **{name: getattr(self, name) for name in (*_READING, "allow_remote")})


_NO_FILE = "must name a file of scores, or --policy a policy that does"
_OPTION_NAMES = {
    "epsilons": "epsilon", "n_resamples": "resamples", "random_state": "seed", "scoring_rates": "scoring",
}  # fmt: skip
_IN_OTHER_FORM = ("files", "epsilons", "score_range", "pos_label", "alarm_rate")
_LISTS = ("group", "control", "missing_values", "required_groups")


def _option(ctx: typer.Context, name: str) -> str | None:
    """How an option is typed, where it was."""
    source = ctx.get_parameter_source(name)
    # Click 8.2 takes an argument of which there is none for one that was typed.
    if source is None or source.name != "COMMANDLINE" or ctx.params[name] in (None, ()):
        return None
    (param,) = (param for param in ctx.command.params if param.name == name)
    return "FILE" if param.param_type_name == "argument" else str(param.opts[0])


def _complaints(asked: AuditAsked, files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What does not go together, each option with the reason."""
    database = asked.engine == "ibis" or any(file.lower().startswith(_DATABASES) for file in files)
    repeated = next((file for file in files if files.count(file) > 1), "")
    several, engine, form = len(files) > 1, asked.engine, asked.form
    model, target, bound = (value is not None for value in (asked.model, asked.target, asked.max_mcdp))
    pairs = asked.pairs is None or asked.pairs == "all" or asked.pairs.isdecimal()
    got = "neither" if asked.score is None else "both"
    rates = asked.scoring or asked.cutoff is not None or asked.decision is not None
    scores = f"must name the column of the scores, or --model a folder that makes them; got {got}"
    wrong = (
        (repeated, "FILE", f"{repeated} is named twice"),
        (not pairs, "--pairs", f"must be a number or all, got {asked.pairs!r}"),
        (asked.json and form not in ("text", "json"), "--format", f"must be json with --json, got {form}"),
        (form == "junit" and not bound, "--format", "junit needs --max-mcdp, which its test cases decide"),
        (asked.table is None and database, "--table", "must name the table of a database's address"),
        (asked.table is not None and engine == "spark", "--engine spark", "cannot be used with --table"),
        ((asked.score is None) != model, "--score", scores),
        (target and not model, "--target", "needs --model; use --label with --score"),
        (target and asked.label is not None, "--target", "cannot be used with --label; give one of them"),
        (model and engine != "duckdb", "--engine", f"must be duckdb with --model, got {engine}"),
        (not asked.group, "--group", "must name the column of the groups"),
        (asked.decision and asked.cutoff is not None, "--decision", "cannot be used with --cutoff"),
        *(
            (given and not rates, option, "needs --scoring-rates, --cutoff or --decision")
            for option, given in _given(asked, "data_source", "distribution_date").items()
        ),
        (asked.person_id and several and model, "--id", "needs --score; one model gives a person one score"),
    )
    yield from ((option, message) for is_wrong, option, message in wrong if is_wrong)
    for option in () if asked.table is None else typed_options([asked], *_NOT_WITH_DATABASE):
        yield option.split()[0], "cannot be used with --table"
    for option in () if engine == "duckdb" else typed_options([asked], *_READING):
        yield option, f"needs --engine duckdb, got {engine}"
    tables = {"--scoring-rates": asked.scoring, **_given(asked, "cutoff", "decision")}
    unused = {name: ("model", "weight", "cluster", "engine") for name, given in tables.items() if given}
    if asked.person_id is not None:
        unused["--id"] = ("table", "engine", *(("missing_groups", "missing") if several else ()))
    for option, names in unused.items():
        ranks = asked.score_range == "rank" and (option != "--id" or several)
        for other in [*typed_options([asked], *names), *(["--score-range rank"] if ranks else [])]:
            yield option, f"cannot be used with {other}"


def _given(asked: AuditAsked, *names: str) -> dict[str, bool]:
    """Options, each with whether it has a value."""
    return {f"--{name.replace('_', '-')}": getattr(asked, name) is not None for name in names}


FilesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE...",
        help="CSV, TSV, Parquet, JSON lines or a workbook, one file per model; a quoted glob is one model, - "
        "is standard input, and with --table FILE is a database's address.",
    ),
]


@asking
def audit(*, ctx: typer.Context, files: FilesArgument = None, asked: AuditAsked) -> None:
    """Find where scores in a file, or those of a model, treat two groups most differently.

    Exit codes: 0 when it passes, 1 when MCDP is above the bound or a group was not assessed, 2 for bad input.
    """
    asked, files, policy = asked.under(ctx, files or [])
    options = asked.check(files)
    policy = policy or PolicyFile.of(asked.to_policy(files))
    tables = _open_all(ctx, files, asked)
    document = document_of(tables, asked, options, call=typed_command(ctx), policy=policy)
    if _STDIN in files:  # what was read is gone when the command ends, so no command goes on from it
        audits = {name: replace(audit, file=None) for name, audit in document.audits.items()}
        document = replace(document, audits=audits)
    _hint(document.audits, tables, asked)
    _show(document, asked)
    on_screen = len(files) == 1 and asked.form == "text" and not asked.json
    passed = _tell_verdicts(document, read=on_screen and sys.stdout.isatty() and sys.stderr.isatty())
    _write(document, asked)
    if not passed:
        raise typer.Exit(1)


def document_of(
    tables: Mapping[str, Any], asked: AuditAsked, options: AuditOptions, *, call: str, policy: PolicyFile
) -> Document:
    """The audits of what was opened, as the options have it."""
    scorer = None if asked.model is None else Scorer.load(asked.model)
    audits = {
        file: read_audit(
            table,
            asked.columns,
            options,
            call=call,
            engine="ibis" if asked.table is not None else asked.engine,
            scorer=scorer,
            allow_remote=asked.allow_remote,
        )
        for file, table in tables.items()
    }
    return Document(
        audits=audits,
        title=f"Local disparity by {', '.join(asked.group or [])}",
        paired=_same_people(audits, list(tables.values()), asked, options),
        max_mcdp=asked.max_mcdp,
        decide_by=asked.decide_by,
        required_groups=asked.required_groups or (),
        not_assessed=asked.not_assessed,
        min_group_size=asked.min_group_size,
        min_ratio=asked.min_ratio,
        scoring=_rates(tables, asked, options, str(asked.score)) if asked.scoring else {},
        selection=_selection_rates(tables, asked, options),
        policy=policy,
    )


def _open_all(ctx: typer.Context, files: Sequence[str], asked: AuditAsked) -> dict[str, Any]:
    """What is read, by the names that it is shown under, which have no password."""
    if asked.table is None:
        paths = [_from_stdin(ctx) if file == _STDIN else file for file in files]
        announce_remote(paths, allow_remote=asked.allow_remote)
        return {shown_address(path): asked.open(path) for path in paths}
    tables = {}
    for address in files:
        shown = shown_address(address)
        opened = read_database(address, asked.table, allow_remote=asked.allow_remote)
        ctx.call_on_close(opened.get_backend().disconnect)
        tables[f"{asked.table} ({shown})"] = opened
        note(f"counting in {shown}")
    return tables


def _from_stdin(ctx: typer.Context) -> str:
    """A file with what the standard input has: Parquet, JSON lines, or rows of text."""
    folder = TemporaryDirectory(dir=private_folder() or None)
    ctx.call_on_close(folder.cleanup)
    content = sys.stdin.buffer.read()
    ending = {b"PA": "parquet", b'{"': "jsonl"}.get(content[:2], "csv")
    path = Path(folder.name) / f"stdin.{ending}"
    path.write_bytes(content)
    return str(path)


# What is printed and written.


def _show(document: Document, asked: AuditAsked) -> None:
    """Print a document."""
    form = "json" if asked.json else asked.form
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

        listed = None if asked.pairs is None else sys.maxsize if asked.pairs == "all" else int(asked.pairs)
        Console().print(TerminalDocument(document, asked.verbose, listed))


def _tell_verdicts(document: Document, *, read: bool) -> bool:
    """Say of each file whether it is within the bound, unless that was read just above; whether all are."""
    passed = True
    for name in document.audits:
        answer = document.answer(name)
        bound = answer.bound
        if bound is None:
            continue
        passed = passed and bound.passes
        whose = f"{name}: " if len(document.audits) > 1 else ""
        said = "" if read else f"{'pass' if bound.passes else 'fail'}: {whose}{answer.verdict}"
        lower = "--decide-by lower fails only what chance does not explain."
        if line := " ".join(filter(None, (said, lower if bound.could_be_chance else ""))):
            note(line)
        breakdown = breakdown_of(document.audits[name], bound.max_mcdp)
        for sentence in () if breakdown is None else breakdown.sentences:
            note(sentence)
    return passed


def _write(document: Document, asked: AuditAsked) -> None:
    """Write the policy, the page and the bundle where they are asked for."""
    from localparity._io._files import write_new

    if asked.write_policy is not None and document.policy is not None:
        write_new(asked.write_policy, document.policy.policy.to_toml().encode(), force=asked.force)
        note(f"policy: {asked.write_policy}")
    if asked.report is None and asked.out is None:
        return
    from localparity.report._bundle import bundle
    from localparity.report.page._page import render_page

    page = render_page(document)
    if asked.report is not None:
        write_new(asked.report, page.encode(), force=asked.force)
        note(f"report: {asked.report}")
    if asked.out is not None:
        write_new(asked.out, bundle(document, asked.model, page=page), force=asked.force)
        note(f"bundle: {asked.out}")


def _selection_rates(
    tables: Mapping[str, Table], asked: AuditAsked, options: AuditOptions
) -> dict[str, ScoringRates]:
    """The selection rates of files by a cutoff or by a column of decisions, where they are asked for."""
    if asked.decision is None:
        score = str(asked.score)
        return {} if asked.cutoff is None else _rates(tables, asked, options, score, cutoff=asked.cutoff)
    decided = replace(options, score_range=(0.0, 1.0), higher_is="better")
    return _rates(tables, asked, decided, asked.decision, cutoff=0.5)


def _rates(
    tables: Mapping[str, Table],
    asked: AuditAsked,
    options: AuditOptions,
    column: str,
    *,
    cutoff: float | None = None,
) -> dict[str, ScoringRates]:
    """The rates of files by a column, in which rows without a category count as unknown."""
    names = as_group_columns(column, asked.group or [])
    limits, size, higher_is = options.score_range, options.min_group_size, options.higher_is or "better"
    decision = asked.decision if cutoff is not None else None
    rates = {}
    for file, table in tables.items():
        scored = without_missing(
            table, ScoreColumns(column, names), groups="raise", missing=options.missing, texts=()
        )
        values = scored.read(numbers=[column], groups=names)
        if decision is not None and not np.isin(values[column], (0, 1)).all():
            raise InputError("must have decisions 0 and 1", column=decision, file=file)
        rows = Predictions.from_arrays(
            None,
            values[column],
            sensitive_features={name: values[name] for name in names},
            score_range=range_of_scores(values[column]) if isinstance(limits, str) else limits,
            min_groups=1,
            missing_values=table.as_joined(options.policy.texts),
        )
        found = scoring_rates(rows, columns=names, min_group_size=size, higher_is=higher_is, cutoff=cutoff)
        source, since = asked.data_source, asked.distribution_date
        rates[file] = replace(found, decision=decision, data_source=source, distribution_date=since)
    return rates


# People who are in several rows or files, and groups that stand for none.


def _hint(audits: Mapping[str, Audit], tables: Mapping[str, Any], asked: AuditAsked) -> None:
    """Say what looks as if it was not meant: groups of people without one, and people in several rows."""
    groups = {group.group for audit in audits.values() for group in audit.groups}
    for name in sorted({name for group in groups for name in looks_missing(group)}):
        option = shlex.join(["--missing-value", name])
        note(f"hint: the group {name!r} may stand for no group: --missing-groups bound {option}")
    table = next(iter(tables.values()))
    known = len(tables) == 1 and asked.cluster is None and isinstance(table, Table)
    if asked.person_id is not None and len(tables) == 1:
        _note_repeated(table, asked.person_id, hint="", clustered=asked.cluster is not None)
    elif known and next(iter(audits.values())).rows <= _MOST_CHECKED:
        for name in (name for name in table.columns if _ID.fullmatch(name)):
            _note_repeated(table, name, hint="hint: ", clustered=False)


def _note_repeated(table: Table, person_id: str, *, hint: str, clustered: bool) -> None:
    """Say whether a file has several rows of a person, which an audit takes for several people."""
    table.check([person_id])
    text = text_of(person_id)
    query = f"SELECT count(DISTINCT {text}) AS people, count({text}) AS named FROM {table.rows}"
    counted = table.fetch(query)
    people, rows = int(counted["people"][0]), int(counted["named"][0])
    if rows == people:
        if not hint:
            note(f"no person of column {person_id!r} has several rows")
        return
    advice = "" if clustered else f"; pass --cluster {person_id} to take them for one person each"
    note(f"{hint}the {rows:,} rows are of {people:,} people by column {person_id!r}{advice}")


def _same_people(
    audits: Mapping[str, Audit], tables: Sequence[Table], asked: AuditAsked, options: AuditOptions
) -> PairedModels | None:
    """The models compared on the same people, where several files have ids."""
    if asked.person_id is None or len(tables) == 1:
        return None
    first, score_range = next(iter(audits.values())), options.score_range
    if isinstance(score_range, str):
        lows, highs = zip(*(audit.score_range for audit in audits.values()), strict=True)
        score_range = (min(lows), max(highs))
    return PairedModels.read(
        tables,
        id=asked.person_id,
        score=str(asked.score),
        group=asked.group or [],
        label=asked.label,
        weight=asked.weight,
        cluster=asked.cluster,
        left_out=[left.group for left in first.left_out],
        **asdict(replace(options, score_range=score_range)),
    )
