"""The library's messages in the words of a command: "n_resamples must be" is "--resamples must be"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

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
