"""One description for each parameter that many functions take.

A docstring describes what is its function's own; `documented` adds what it shares with others, in the order
of the signature, so that ``help`` shows every parameter and no text stands twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import indent
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_PARAMETERS = {
    "y_true": ("array-like or None", "Labels 0 and 1; None where the criterion does not need them."),
    "y_score": ("array-like", "Scores inside `score_range`."),
    "sensitive_features": (
        "array-like, data frame or mapping of columns",
        "The group of each row. Of several columns, the groups are the combinations that occur.",
    ),
    "epsilon": ("float", "The half-width of the windows, as a fraction of the score range."),
    "criterion": (
        "str",
        'Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),\n'
        '"predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).',
    ),
    "compare": (
        "str",
        '"between_groups" takes the worst pair, "to_overall" compares each group with everyone.',
    ),
    "sample_weight": ("array-like, optional", "Weights that are not negative."),
    "cluster": (
        "array-like, optional",
        "The person or household that each row belongs to; rows are assumed independent without it.",
    ),
    "score_range": ("tuple of float", "The lowest and the highest score there can be."),
    "min_groups": ("int", "The fewest groups there may be: 2, or 1 for a part of a larger whole."),
    "min_group_size": ("int", "A group with fewer rows among the people compared is an error."),
    "random_state": ("int, Generator or None", "The same seed gives the same result."),
    "n_jobs": ("int, optional", "How many resamples run at a time, -1 for as many as there are cores."),
    "score": ("str", "The column of the scores."),
    "group": (
        "str or sequence of str",
        "The column of the groups; of several, the groups are the combinations that occur.",
    ),
    "label": ("str, optional", "The column of the labels, 0 and 1."),
    "weight": ("str, optional", "The column of the weights."),
    "epsilons": ("sequence of float", "The epsilons at which MCDP comes out exact also on a grid."),
    "max_scores": (
        "int",
        "The most distinct scores, those of each group and label apart, that are counted as they are.",
    ),
    "level": ("int", "The grid has ``2**level`` cells."),
    "counts": ("ScoreCounts", "The counts."),
    "groups": ("tuple, optional", "The pair; the worst one without it."),
    "ax": ("matplotlib.axes.Axes, optional", "Where to draw."),
    "cache": ("bool", "Whether a download is kept for the next time."),
    "data_home": ("path, optional", "The cache folder, in place of the user's own."),
    "as_frame": (
        "bool",
        "Whether `data` is a pandas data frame (text columns are categorical) or a plain dictionary of\n"
        "columns.",
    ),
    "store": ("Store", "The runs."),
    "out": ("path", "The folder to write to."),
    "people": ("Scored", "Scores with their groups."),
    "study": ("AlgorithmStudy", "What was measured."),
    "title": ("str", "What stands above."),
    "return_X_y": ("bool", "Whether to return only `data` and `target`."),
}

_SECTION = "Parameters\n----------\n"


def documented(function: F) -> F:
    r"""Complete a docstring's parameters; one that neither it nor the table describes is an error.

    Examples
    --------
    >>> @documented
    ... def widen(epsilon, by):
    ...     '''Add to a half-width.
    ...
    ...     Parameters
    ...     ----------
    ...     by : float
    ...         How much.
    ...     '''
    >>> print(*widen.__doc__.splitlines()[-4:], sep="\n")
    epsilon : float
        The half-width of the windows, as a fraction of the score range.
    by : float
        How much.
    """
    if function.__doc__ is None:  # Python runs without docstrings
        return function
    code = function.__code__
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    with_default = len(function.__defaults__ or ())
    optional = {*named[code.co_argcount - with_default : code.co_argcount], *(function.__kwdefaults__ or ())}
    before, own, after = _parts(_dedented(function.__doc__))
    entries: list[str] = []
    for name in named:
        if name not in ("self", "cls"):
            entry = own[name] if name in own else _entry(name, *_PARAMETERS[name], name in optional)
            if entry not in entries:
                entries.append(entry)
    entries += [entry for name, entry in own.items() if name.startswith("*")]
    function.__doc__ = (before + _SECTION + "".join(entries) + after).rstrip() + "\n"
    return function


def _entry(name: str, kind: str, text: str, optional: bool) -> str:
    kind = kind if optional else kind.removesuffix(", optional")
    return f"{name} : {kind}\n{indent(text, '    ')}\n"


def _dedented(doc: str) -> str:
    """A docstring without the indentation of its function's body."""
    first, _, rest = doc.partition("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest.splitlines() if line.strip()), default=0)
    return "\n".join([first, *(line[margin:] for line in rest.splitlines())]) + ("\n" if rest else "")


def _parts(doc: str) -> tuple[str, dict[str, str], str]:
    """What stands before the parameters, the entries by the names in them, and what stands behind."""
    before, found, rest = doc.partition(_SECTION)
    if not found:
        place = re.search(r"^(Returns|Yields|Examples)\n-+\n", doc, re.MULTILINE)
        at = place.start() if place else len(doc)
        return doc[:at].rstrip() + "\n\n", {}, "\n" + doc[at:]
    section, blank, after = rest.partition("\n\n")
    own: dict[str, str] = {}
    for entry in re.findall(r"^\S[^\n]*\n(?:[ ]+[^\n]*\n)*", section + "\n", re.MULTILINE):
        names = entry.partition("\n")[0].partition(" :")[0]
        own |= dict.fromkeys(re.split(r",\s*", names), entry)
    return before, own, blank[1:] + after
