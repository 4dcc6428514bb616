"""What goes wrong with input, as data: the argument, the column, the file, the row and the reason.

A message names the library's arguments as Python does, ``force=True``; a command shows the same message with
its own options, ``--force``. So messages mark their arguments by `setting`, and nobody matches their text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

from localparity._text import without_secrets

_SETTING = re.compile("\x02(.*?)(?:=(.*?))?\x03")
_LONGEST = 2000
"""The most characters of a message: what it quotes may be a whole file."""

_PYTHON: Mapping[str, str] = MappingProxyType({})


class FileColumn(NamedTuple):
    """A column of a file in place of an argument; its rows count from `first_row`, None without an order."""

    name: str
    first_row: int | None = 1

    def __str__(self) -> str:
        return f"column {self.name!r}"


Argument = str | FileColumn
"""An argument by its name, or the column of a file in its place."""


def at_row(argument: Argument, row: int) -> str:
    """Where a value is: arrays count from 0, and the rows of a file from 1."""
    if isinstance(argument, str):
        return f"at row {row}"
    return "at some row" if argument.first_row is None else f"at data row {row + argument.first_row}"


def setting(*names: str, **values: Any) -> str:
    """Mark an argument in a message, by its name or with a value.

    Examples
    --------
    >>> error = InputError(f"must be >= 19 with {setting(confidence=0.95)}, got 5", "n_resamples")
    >>> print(error)
    n_resamples must be >= 19 with confidence=0.95, got 5
    >>> print(error.in_words({"n_resamples": "--resamples", "confidence": "--confidence"}))
    --resamples must be >= 19 with --confidence 0.95, got 5
    """
    marked = list(names)
    for name, value in values.items():
        marked.append(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value!r}")
    return " and ".join(f"\x02{text}\x03" for text in marked)


class Worded(Exception):  # noqa: N818
    """An error or a warning whose message marks the library's arguments; it shows no secret of an address."""

    def __str__(self) -> str:
        return self.in_words(_PYTHON)

    def in_words(self, options: Mapping[str, str]) -> str:
        """The message with a command's options, by the names of the arguments that they stand for."""

        def word(mark: re.Match[str]) -> str:
            name, value = mark.groups()
            if name not in options:
                return name if value is None else f"{name}={value}"
            return options[name] if value in (None, "True") else f"{options[name]} {value.strip(chr(39))}"

        text = without_secrets(_SETTING.sub(word, self._marked()))
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text):,} characters)"

    def _marked(self) -> str:
        return str(self.args[0])


class InputError(Worded, ValueError):
    """An argument or a file that cannot be used.

    Callers read its fields: the `reason`, a predicate such as "must be >= 0, got -1.0"; the `argument`, or
    the `column` of a file in its place; the `file`, as messages call it; and the `row`, counted from 0.

    Examples
    --------
    >>> error = InputError("must be >= 0, got -1.0", "epsilon")
    >>> print(error, error.argument, sep=", ")
    epsilon must be >= 0, got -1.0, epsilon
    >>> print(InputError("must be numbers", column="p", file="scores.csv"))
    column 'p' of scores.csv must be numbers
    """

    def __init__(
        self,
        reason: str,
        argument: Argument = "",
        *,
        column: str = "",
        file: object = "",
        row: int | None = None,
    ) -> None:
        super().__init__(reason)
        if isinstance(argument, FileColumn):
            column, argument = argument.name, ""
        self.reason, self.argument, self.row = reason, argument, row
        self.column, self.file = column, str(file)

    def _marked(self) -> str:
        subject = f"\x02{self.argument}\x03" if self.argument else self.file
        if self.column:
            subject = f"column {self.column!r}" + f" of {self.file}" * bool(self.file)
        return f"{subject} {self.reason}".lstrip()


class MissingValueError(InputError):
    """A row that has no value where one is needed."""


class OutputExistsError(Worded, FileExistsError):
    """A file or a folder, given by its path, that would be overwritten."""

    def _marked(self) -> str:
        return f"{self.args[0]} already exists; pass {setting(force=True)} to overwrite"


class InputWarning(Worded, UserWarning):
    """Something about the input that is probably not meant."""


for _class in (InputError, MissingValueError, OutputExistsError, InputWarning):
    _class.__module__ = "localparity._validation"  # as tracebacks show it


def unknown_name(kind: str, name: object, known: Iterable[object]) -> InputError:
    """The error for a name that does not exist, with the nearest that do."""
    by_text = {str(candidate): candidate for candidate in known}
    folded = {text.casefold(): text for text in by_text}
    nearest = difflib.get_close_matches(str(name).casefold(), folded, n=3, cutoff=0.5)
    if nearest:
        hint = "; did you mean " + " or ".join(repr(by_text[folded[text]]) for text in nearest) + "?"
    else:
        hint = "; there is " + ", ".join(repr(candidate) for candidate in list(by_text.values())[:12])
    return InputError(f"there is no {kind} {name!r}{hint}")


def require(module: str, *, extra: str) -> Any:
    """Import an optional `module`, or raise an ImportError that says which extra of localparity brings it.

    Examples
    --------
    >>> require("math", extra="data").sqrt(4.0)
    2.0
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is needed here and cannot be imported ({error}); "
            f"install it with: pip install 'localparity[{extra}]'"
        ) from error
