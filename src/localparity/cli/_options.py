"""Options that several commands take, and those that are lists of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from localparity._types import Compare, Criterion
from localparity._validation import as_epsilon
from localparity.counts._comparison import labels_of

PeopleArgument = Annotated[str, typer.Argument(metavar="FILE", help="CSV, TSV, Parquet or JSON lines.")]
GroupOption = Annotated[
    list[str], typer.Option(help="The column of the groups; give it again to compare intersections.")
]
TargetOption = Annotated[str, typer.Option(help="The column of the two classes.")]
WeightOption = Annotated[str | None, typer.Option(help="The column of the weights.")]
DropOption = Annotated[list[str] | None, typer.Option(help="A column that is not a feature.")]
TextOption = Annotated[list[str] | None, typer.Option(help="A column of numbers to take as texts.")]


def check_epsilon(epsilon: float) -> float:
    """Whether windows are narrower than the score range: for wider ones, bounds hold that mean nothing."""
    return as_epsilon(epsilon, "--epsilon")


EpsilonOption = Annotated[
    float,
    typer.Option(help="The half-width of windows, as a fraction of the score range.", callback=check_epsilon),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite what already exists.")]
ConfidenceOption = Annotated[float, typer.Option(help="The probability with which the intervals hold.")]
LabelOption = Annotated[str | None, typer.Option(help="The column of the labels, 0 and 1.")]
CriterionOption = Annotated[Criterion, typer.Option(help="Which people are compared.")]
CompareOption = Annotated[Compare, typer.Option(help="Every pair of groups, or each group with everyone.")]


def check_labels(criterion: Criterion, label: str | None) -> bool:
    """Whether a criterion needs labels, whose column must then be named."""
    needs_labels = labels_of(criterion) != (None,)
    if needs_labels and label is None:
        raise typer.BadParameter(f"{criterion} needs the column of the labels", param_hint="--label")
    return needs_labels


def check_bound(bound: float | None, decide_by: str) -> None:
    """Whether --max-mcdp is a fraction, and is there for --decide-by, before anything is read."""
    if bound is None and decide_by != "estimate":
        raise typer.BadParameter(
            "says what --max-mcdp compares, which is not given", param_hint="--decide-by"
        )
    check_fraction(bound, "--max-mcdp")


def check_fraction(number: float | None, option: str) -> None:
    """Whether a number, where one is given, is a fraction."""
    if number is not None and not 0.0 <= number <= 1.0:
        raise typer.BadParameter(f"must be in [0, 1], got {number:g}", param_hint=option)


def check_file(path: Path | None, option: str, *, read: Sequence[str] = (), replace: bool = True) -> None:
    """Whether a file can be written there, before the work whose result it is to have.

    What is `read` is not written over, whatever may be replaced.
    """
    if path is None or not path.exists():
        return
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder where a file is expected", param_hint=option)
    if any(Path(file).exists() and path.samefile(file) for file in read):
        raise typer.BadParameter(f"{path} is the file that is read", param_hint=option)
    if not replace:
        raise FileExistsError(f"{path} already exists; pass --force to overwrite")


def check_folder(path: Path, option: str, *, replace: bool = True) -> None:
    """Whether there can be such a folder, and whether what is in it may be replaced."""
    if path.exists() and not path.is_dir():
        raise typer.BadParameter(f"{path} is a file where a folder is expected", param_hint=option)
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
            f"{text!r} where numbers with commas between them are expected", param_hint=option
        ) from None


def parse_epsilons(text: str) -> list[float]:
    """Half-widths of windows with commas between them.

    Examples
    --------
    >>> parse_epsilons("0,0.05")
    [0.0, 0.05]
    """
    return [check_epsilon(epsilon) for epsilon in parse_numbers(text, "--epsilon")]


def parse_range(text: str, option: str) -> tuple[float, float]:
    """Two numbers with a comma between them."""
    numbers = parse_numbers(text, option)
    if len(numbers) != 2:
        raise typer.BadParameter(f"{text!r} where two numbers LOW,HIGH are expected", param_hint=option)
    return numbers[0], numbers[1]
