"""What several commands take: options, lists of numbers, dataclasses of options, and files to train on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import typer
from numpy.typing import NDArray

from localparity._io._duckdb import check_remote, remote_among
from localparity._io._numbers import Decimal
from localparity._io._table import Table, unfit_features
from localparity._text import shown_address
from localparity._types import Compare, Criterion
from localparity._validation import InputError, OutputExistsError, as_epsilon, as_fraction
from localparity.auditing._files import file_sha256, read_features
from localparity.cli._commands import note
from localparity.counts import Comparison

if TYPE_CHECKING:
    from localparity.results import ModelCard


def check_epsilon(epsilon: float) -> float:
    """Check the half-width of windows before anything is read."""
    return as_epsilon(epsilon, "--epsilon")


PeopleArgument = Annotated[str, typer.Argument(metavar="FILE", help="CSV, TSV, Parquet or JSON lines.")]
GroupOption = Annotated[
    list[str], typer.Option(help="The column of the groups; repeat it to compare intersections.")
]
TargetOption = Annotated[str, typer.Option(help="The column of the two classes.")]
WeightOption = Annotated[str | None, typer.Option(help="The column of the weights.")]
MissingValueOption = Annotated[
    list[str] | None,
    typer.Option("--missing-value", help="Text that means no group, like a blank; repeatable."),
]
TextOption = Annotated[list[str] | None, typer.Option(help="A column of numbers to take as texts.")]
EpsilonOption = Annotated[
    float,
    typer.Option(help="The half-width of windows, as a fraction of the score range.", callback=check_epsilon),
]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite what already exists.")]
ConfidenceOption = Annotated[float, typer.Option(help="The probability with which the intervals hold.")]
LabelOption = Annotated[str | None, typer.Option(help="The column of the labels, 0 and 1.")]
CriterionOption = Annotated[Criterion, typer.Option(help="Which people are compared.")]
CompareOption = Annotated[Compare, typer.Option(help="Every pair of groups, or each group with everyone.")]
EncodingOption = Annotated[str | None, typer.Option(help="The encoding of a text file; UTF-8 by default.")]
DecimalOption = Annotated[
    Decimal | None, typer.Option(help="The decimal mark; by default the one that fits a whole column.")
]
SheetOption = Annotated[str | None, typer.Option(help="The sheet of a workbook that has several.")]
NormaliseOption = Annotated[
    bool,
    typer.Option(
        "--normalise-groups", help="Join groups that differ only in case or spaces, such as Male and male."
    ),
]


def check_labels(criterion: Criterion, label: str | None, option: str = "--label") -> None:
    """Check that an option names the column of the labels where a criterion needs it."""
    if Comparison(criterion).needs_labels and label is None:
        raise InputError(f"--criterion {criterion} needs {option}")


def check_bound(max_mcdp: float | None, decide_by: str) -> None:
    """Check --max-mcdp, which --decide-by needs, before anything is read."""
    if max_mcdp is None and decide_by != "estimate":
        raise InputError(f"--decide-by {decide_by} needs --max-mcdp")
    if max_mcdp is not None:
        as_fraction(max_mcdp, "--max-mcdp")


def check_ratio(min_ratio: float | None, criterion: str) -> None:
    """Check the least ratio, which belongs to people of one kind."""
    if min_ratio is not None:
        as_fraction(min_ratio, "--min-ratio")
        if criterion == "equalized_odds":
            message = "needs people of one label; use --criterion equal_opportunity or predictive_equality"
            raise typer.BadParameter(message, param_hint="--min-ratio")


def check_file(path: Path | None, option: str, *, read: Sequence[str] = (), replace: bool = True) -> None:
    """Check that a file can be written, before any work is done; one that is `read` is never replaced."""
    if path is None or not path.exists():
        return
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder, not a file", param_hint=option)
    if any(Path(file).exists() and path.samefile(file) for file in read):
        raise typer.BadParameter(f"{path} is the file that is read", param_hint=option)
    if not replace:
        raise OutputExistsError(path)


def check_folder(path: Path, option: str, *, replace: bool = True) -> None:
    """Check that there can be such a folder, and that what is in it may be replaced."""
    if path.exists() and not path.is_dir():
        raise typer.BadParameter(f"{path} is a file, not a folder", param_hint=option)
    if not replace and path.exists() and any(path.iterdir()):
        raise OutputExistsError(path)


def parse_numbers(text: str, option: str) -> tuple[float, ...]:
    """Numbers with commas between them.

    Examples
    --------
    >>> parse_numbers("0,0.05", "--epsilon")
    (0.0, 0.05)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"must be numbers separated by commas, got {text!r}", param_hint=option
        ) from None


def parse_epsilons(text: str) -> list[float]:
    """Half-widths of windows with commas between them."""
    return [check_epsilon(epsilon) for epsilon in parse_numbers(text, "--epsilon")]


def parse_range(text: str, option: str) -> tuple[float, float]:
    """Two numbers with a comma between them."""
    numbers = parse_numbers(text, option)
    if len(numbers) != 2:
        raise typer.BadParameter(f"must be two numbers LOW,HIGH, got {text!r}", param_hint=option)
    return numbers[0], numbers[1]


# Commands whose options are the fields of dataclasses.


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of dataclasses as options, in place of the parameters that take these.

    The options from the field `first_advanced` of a dataclass on are under "Advanced" in help.
    """
    parameters = signature(command, eval_str=True).parameters.values()
    kinds: dict[str, Any] = {one.name: one.annotation for one in parameters if is_dataclass(one.annotation)}
    return expanding(command, {name: (_options_of(kind), kind) for name, kind in kinds.items()})


def expanding(
    command: Callable[..., None], questions: Mapping[str, tuple[list[Parameter], Callable[..., Any]]]
) -> Callable[..., None]:
    """A command that takes several options in place of a parameter, which is made of their values."""
    own = signature(command, eval_str=True)
    parameters = [
        option
        for name, parameter in own.parameters.items()
        for option in (questions[name][0] if name in questions else [parameter])
    ]

    @wraps(command)
    def with_options(**values: Any) -> None:
        asked = {
            name: make(**{option.name: values.pop(option.name) for option in options})
            for name, (options, make) in questions.items()
        }
        command(**values, **asked)

    with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options


def _options_of(question: Any) -> list[Parameter]:
    """The fields of a dataclass as options."""
    annotations = get_type_hints(question, include_extras=True)
    options: list[Parameter] = []
    panel = None
    for field in fields(question):
        kind, option = get_args(annotations[field.name])
        option = copy(option)
        if field.name == getattr(question, "first_advanced", None):
            panel = "Advanced"
        option.rich_help_panel = panel
        annotation: Any = Annotated[kind, option]
        options.append(
            Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=annotation)
        )
    return options


def typed_options(questions: Iterable[Any], *names: str) -> list[str]:
    """Those of some options that differ from their defaults, as they are typed; a choice with its value."""
    typed = {}
    for question in questions:
        annotations = get_type_hints(type(question), include_extras=True)
        for field in fields(question):
            value = getattr(question, field.name)
            if field.name in names and value != field.default and (value or field.default):
                kind, option = get_args(annotations[field.name])
                name = option.param_decls[0] if option.param_decls else f"--{field.name.replace('_', '-')}"
                typed[field.name] = f"{name} {value}" if get_origin(kind) is Literal else name
    return [typed[name] for name in names if name in typed]


# Files on other machines: read where the option allows it, and said to be.


RemoteOption = Annotated[
    bool,
    typer.Option(
        "--allow-remote", help="Read files on other machines, through DuckDB's extensions, or databases."
    ),
]


def announce_remote(files: Sequence[str], *, allow_remote: bool) -> None:
    """Check that files on other machines may be read, and say which of them will be fetched."""
    check_remote(files, allow_remote=allow_remote)
    for file in remote_among(files):
        note(f"fetching {shown_address(file)}; DuckDB installs its extension for that if it has none")


def open_file(file: str, *, allow_remote: bool, **options: Any) -> Table:
    """The rows of a file, wherever it is, with the options of `open_table`."""
    announce_remote([file], allow_remote=allow_remote)
    return Table(file, allow_remote=allow_remote, **options)


class TrainingTable(NamedTuple):
    """The features, the class, the groups by their columns, and the weight, of each row."""

    features: Any
    classes: NDArray[Any]
    groups: dict[str, NDArray[Any]]
    weights: NDArray[Any] | None


@dataclass(frozen=True, kw_only=True)
class PeopleOptions:
    """How the rows of a file are read to train on."""

    weight: WeightOption = None
    drop: Annotated[list[str] | None, typer.Option(help="A column that is not a feature.")] = None
    feature: Annotated[
        list[str] | None,
        typer.Option(help="A column that is a feature although it looks like an identifier or the class."),
    ] = None
    text: TextOption = None
    encoding: EncodingOption = None
    sheet: SheetOption = None
    allow_remote: RemoteOption = False


def read_training_table(
    file: str,
    target: str,
    group: Sequence[str],
    options: PeopleOptions,
    *,
    extra: str,
    keep_group: bool = False,
) -> TrainingTable:
    """The rows of a file; every column without another role is a feature.

    A column that looks like an identifier or the class is an error, unless `feature` names it.
    """
    if target in group:
        raise ValueError(f"column {target!r} must be --target or --group, not both")
    table = open_file(file, encoding=options.encoding, sheet=options.sheet, allow_remote=options.allow_remote)
    drop, text, feature = options.drop or [], options.text or [], options.feature or []
    table.check([*drop, *text, *feature])
    weight = [options.weight] if options.weight else []
    known = table.read(numbers=weight, values=[target], groups=group)
    other_roles = {target, *drop, *weight, *([] if keep_group else group)}
    names = [name for name in table.columns if name not in other_roles]
    features = read_features(table, names, text, extra=extra, advice="use --text {} if it is a text")
    judged = [name for name in names if name not in (*group, *feature)]
    for name, reason in unfit_features(table, judged, target).items():
        raise ValueError(
            f"column {name!r} of {table.name} {reason}; use --drop {name} to leave it out, or "
            f"--feature {name} if it is known when the model is used"
        )
    table.warn({value for name in group for value in known[name].tolist()})
    groups = {name: known[name] for name in group}
    return TrainingTable(features, known[target], groups, known[weight[0]] if weight else None)


# What commands add to a model card, and what they read from one.


IntendedUseOption = Annotated[
    str | None, typer.Option(help="What the model is for, in your words, for its model card.")
]
PromiseOption = Annotated[
    float | None, typer.Option(help="Promise the bound for new people, with this probability.")
]


def complete_card(card: ModelCard, file: str, intended_use: str | None) -> ModelCard:
    """Return a card with the checksum of the file that was read, and what its user says."""
    known = replace(card, file_sha256=file_sha256(file))
    return known if intended_use is None else replace(known, intended_use=intended_use)
