"""Messages of the library in a command's words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

_RENAMED = {
    "n_resamples": "--resamples",
    "random_state": "--seed",
    "sensitive_features": "--group",
    "y": "--target",
}


@contextmanager
def naming_options(names: Collection[str]) -> Iterator[None]:
    """Let a ValueError that starts with a parameter's name start with that of the command's option.

    Examples
    --------
    >>> with naming_options(["max_mcdp"]):
    ...     raise ValueError("max_mcdp must be between 0 and 1, got 2")
    Traceback (most recent call last):
    ValueError: --max-mcdp must be between 0 and 1, got 2
    """
    try:
        yield
    except ValueError as error:
        options = {name: f"--{name.replace('_', '-')}" for name in names} | _RENAMED
        words = "|".join(options)
        named = re.sub(rf"^({words})(?=[ =])", lambda found: options[found[1]], str(error))
        named = re.sub(r"\bmax_mcdp\b", "--max-mcdp", named)
        raise ValueError(re.sub(r"^(--[a-z-]+)=", r"\1 ", named)) from error
