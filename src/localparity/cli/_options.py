"""Options that are lists of numbers."""

from __future__ import annotations

import typer


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
