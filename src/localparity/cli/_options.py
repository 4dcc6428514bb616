"""Options that several commands take, and those that are lists of numbers."""

from __future__ import annotations

from typing import Annotated

import typer

from localparity.metrics._criteria import Criterion, labels_of
from localparity.metrics._groups import Compare

LabelOption = Annotated[str | None, typer.Option(help="The column of the labels, 0 and 1.")]
CriterionOption = Annotated[Criterion, typer.Option(help="Which people are compared.")]
CompareOption = Annotated[Compare, typer.Option(help="Every pair of groups, or each group with everyone.")]


def check_labels(criterion: Criterion, label: str | None) -> bool:
    """Whether a criterion needs labels, whose column must then be named."""
    needs_labels = labels_of(criterion) != (None,)
    if needs_labels and label is None:
        raise typer.BadParameter(f"{criterion} needs the column of the labels", param_hint="--label")
    return needs_labels


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


def parse_range(text: str, option: str) -> tuple[float, float]:
    """Two numbers with a comma between them."""
    numbers = parse_numbers(text, option)
    if len(numbers) != 2:
        raise typer.BadParameter(f"{text!r} where two numbers LOW,HIGH are expected", param_hint=option)
    return numbers[0], numbers[1]
