"""Commands that take each option once, unless it is a list, and whose messages name their options."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from localparity._io._duckdb import without_password
from localparity._io._numbers import Decimal
from localparity._progress import forecasts_to
from localparity._text import visible, visible_lines
from localparity._types import Compare, Criterion
from localparity._validation import as_epsilon, as_fraction
from localparity.counts import Comparison

# The library's messages in the words of a command: "n_resamples must be" is "--resamples must be".


# What the library calls an argument, where the command's own name for it is another.
_ALIASES = {
    "epsilons": "epsilon",
    "n_jobs": "jobs",
    "n_resamples": "resamples",
    "random_state": "seed",
    "sample_weight": "weight",
    "sensitive_features": "group",
    "y": "target",
    "y_score": "score",
    "y_true": "label",
}


def options_of(params: Iterable[Any]) -> dict[str, str]:
    """The options of a command by the names that the library has for them."""
    options = {param.name: param.opts[0] for param in params if param.param_type_name == "option"}
    aliases = {alias: options[name] for alias, name in _ALIASES.items() if name in options}
    return aliases | options


def in_options(message: str, options: Mapping[str, str]) -> str:
    """A message of the library with the options in the place of the arguments.

    A name with an underscore is an argument anywhere; "label" or "group" only where a value follows it, or at
    the start of a message that says what it must be.

    Examples
    --------
    >>> options = {"n_resamples": "--resamples", "confidence": "--confidence", "force": "--force"}
    >>> in_options("n_resamples must be >= 19 with confidence=0.95, got 5", options)
    '--resamples must be >= 19 with --confidence 0.95, got 5'
    >>> in_options("report.html already exists; pass force=True to overwrite", options)
    'report.html already exists; pass --force to overwrite'
    """
    names = "|".join(sorted(options, key=len, reverse=True)) or r"(?!)"
    value = r"=(?:'(?P<text>[^']*)'|(?P<flag>True)\b|(?P<number>[\w.+-]*\w))"
    pattern = rf"(?<![\w'./-])(?P<name>{names})(?:{value}|(?P<bare>)(?![\w'/=-]|\.\w))"

    def option(found: re.Match[str]) -> str:
        name, given = options[found["name"]], found["text"] or found["number"]
        if found["bare"] is None:
            return f"{name} {given}" if given else name
        starts = not found.start() and re.match(r" (must|needs|is|has) ", message[found.end() :])
        return name if starts or "_" in found["name"] else found[0]

    return re.sub(pattern, option, message)


# The options of a command with many of them, in help: by what they are about.


_MANY = 30
_PANELS = {
    "Scores and columns": (
        "table", "score", "group", "label", "weight", "cluster", "person_id", "model", "target", "control",
        "split",
    ),
    "What is compared": (
        "epsilon", "criterion", "compare", "score_range", "scale", "threshold", "higher_is", "min_group_size",
        "small_groups", "disclosure_limit", "missing_groups", "missing_values", "missing", "normalise_groups",
    ),
    "Bounds and rules": ("max_mcdp", "decide_by", "min_ratio", "scoring"),
    "How sure": ("method", "confidence", "resamples", "seed", "jobs"),
    "Reading files": ("engine", "encoding", "decimal", "sheet", "allow_remote"),
    "Output": ("form", "json", "report", "out", "title", "force"),
}  # fmt: skip


def sort_into_panels(params: list[Any]) -> list[Any]:
    """The parameters of a command, each option with its panel where there are many."""
    if len(params) < _MANY:
        return params
    titles = {name: title for title, names in _PANELS.items() for name in names}
    order = list(titles)
    for param in params:
        if param.name in titles:
            param.rich_help_panel = titles[param.name]
    return sorted(params, key=lambda param: order.index(param.name) if param.name in titles else -1)


# What commands print beside their tables: lines about the work, and JSON.
#
# A file's or a group's name may hold anything, so it never reaches a terminal as it is.


def print_line(text: str) -> None:
    """Print a line of the result."""
    typer.echo(visible(text))


def note(text: str) -> None:
    """Print a line on the standard error."""
    typer.echo(visible(text), err=True)


def print_json(found: Any) -> None:
    """Print a result as JSON, in which a value of another kind is text."""
    typer.echo(visible_lines(dumps(found, indent=2, default=str, ensure_ascii=False)))


# Warnings as people read them on a terminal.


@contextmanager
def warnings_in_lines(options: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """A warning is one line on the standard error, as an error is."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        note(f"warning: {in_options(str(message), options)}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


_TYPED = "localparity.typed"
_URL = re.compile(r"[A-Za-z][\w+.-]+:/")


def local_path(path: Path, param: Any) -> Path:
    """A path on this machine, with the home folder for ~, which a shell leaves in --out=~/scores.csv."""
    if _URL.match(path.as_posix()):
        raise typer.BadParameter(f"must be a path on this machine, got {str(path)!r}", param=param)
    try:
        return path.expanduser()
    except RuntimeError as error:  # there is no such user
        raise typer.BadParameter(f"{str(path)!r} cannot be used: {error}", param=param) from error


def typed_command(ctx: typer.Context) -> str:
    """The command that is running, as it was typed."""
    return str(ctx.meta[_TYPED])


class Command(TyperCommand):
    """A command to which a second value of an option is an error, where the parser would keep the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words that were typed."""
        ctx.meta[_TYPED] = shlex.join(["localparity", str(self.name), *map(without_password, args)])
        parsed: Any = self.make_parser(ctx).parse_args(args=list(args))
        for word in args:
            if word.encode(errors="ignore").decode() != word:
                ctx.fail(f"{word!r} must be UTF-8; rename the file if it is one")
        given = parsed[2]  # in the order in which they were typed, and as often
        if not any(param.is_eager for param in given):  # --help is about no value
            for param in given:
                times = sum(other is param for other in given)
                if times > 1 and param.param_type_name == "option" and not param.multiple:
                    limit = "it can be given once" if param.is_flag else "it takes one value"
                    ctx.fail(f"{param.opts[0]} was given {times} times; {limit}")
        rest = super().parse_args(ctx, args)
        for param in self.params:
            if isinstance(ctx.params.get(param.name), Path):
                ctx.params[param.name] = local_path(ctx.params[param.name], param)
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with many options in panels."""
        self.params = sort_into_panels(self.params)
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run, with what the library complains of in the command's own words."""
        options = options_of(self.params)
        try:
            with warnings_in_lines(options), forecasts_to(note):
                return super().invoke(ctx)
        except (ValueError, ImportError, OSError) as error:
            ctx.fail(in_options(str(error), options) or type(error).__name__)


class Commands(typer.Typer):
    """An application all of whose commands are such."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Add a command, as `typer.Typer.command` does."""
        return super().command(name, **{"cls": Command, **options})


# Options that several commands take, and those that are lists of numbers.


def check_epsilon(epsilon: float) -> float:
    """Check the half-width of windows before anything is read."""
    return as_epsilon(epsilon, "--epsilon")


PeopleArgument = Annotated[str, typer.Argument(metavar="FILE", help="CSV, TSV, Parquet or JSON lines.")]
GroupOption = Annotated[
    list[str], typer.Option(help="The column of the groups; repeat it to compare intersections.")
]
TargetOption = Annotated[str, typer.Option(help="The column of the two classes.")]
WeightOption = Annotated[str | None, typer.Option(help="The column of the weights.")]
DropOption = Annotated[list[str] | None, typer.Option(help="A column that is not a feature.")]
FeatureOption = Annotated[
    list[str] | None,
    typer.Option(help="A column that is a feature although it looks like an identifier or the class."),
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
    Decimal | None, typer.Option(help="What stands before decimals; by default what fits a whole column.")
]
SheetOption = Annotated[str | None, typer.Option(help="The sheet of a workbook that has several.")]
NormaliseOption = Annotated[
    bool,
    typer.Option("--normalise-groups", help="Join groups that differ in case or spaces, as Male and male."),
]


def check_labels(criterion: Criterion, label: str | None, option: str = "--label") -> None:
    """Check that an option names the column of the labels where a criterion needs it."""
    if Comparison(criterion).needs_labels and label is None:
        raise ValueError(f"--criterion {criterion} needs {option}, got None")


def check_bound(max_mcdp: float | None, decide_by: str) -> None:
    """Check --max-mcdp, which --decide-by needs, before anything is read."""
    if max_mcdp is None and decide_by != "estimate":
        raise ValueError(f"--decide-by {decide_by} needs --max-mcdp")
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
    """Check that a file can be written, before the work whose result it is to have.

    A file that is `read` is not written over, whatever may be replaced.
    """
    if path is None or not path.exists():
        return
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder, not a file", param_hint=option)
    if any(Path(file).exists() and path.samefile(file) for file in read):
        raise typer.BadParameter(f"{path} is the file that is read", param_hint=option)
    if not replace:
        raise FileExistsError(f"{path} already exists; pass --force to overwrite")


def check_folder(path: Path, option: str, *, replace: bool = True) -> None:
    """Check that there can be such a folder, and that what is in it may be replaced."""
    if path.exists() and not path.is_dir():
        raise typer.BadParameter(f"{path} is a file, not a folder", param_hint=option)
    if not replace and path.exists() and any(path.iterdir()):
        raise FileExistsError(f"{path} already exists; pass --force to overwrite")


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
