"""Columns that no model should learn from: those that say who a row is, or nearly say its class."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._io._numbers import is_missing_text
from localparity._io._tables import Table
from localparity._types import FloatArray

_ROWS = 20_000
"""Columns are judged by so many of the first rows."""
_MANY = 50
"""A column with no more values than this is not judged."""
_FEW = 10
"""Nor is what it says of the classes, where one of them has fewer rows than this."""
_DISTINCT, _AUC = 0.95, 0.999


def unfit_features(table: Table, names: Sequence[str], target: str) -> dict[str, str]:
    """The columns that should not be features, each with what is wrong with it.

    A column of texts or whole numbers that differ in nearly all rows is an identifier; one that orders the
    rows of the two classes with an area under the ROC curve above 0.999 was made from the class.
    """
    first: Any = copy(table)
    first.rows = f"(SELECT * FROM {table.rows} LIMIT {_ROWS})"
    columns = first.read(numbers=[], values=[*names, target])
    classes = np.array([str(value) for value in columns[target].tolist()])
    found = {name: _why_unfit(columns[name], classes) for name in names}
    return {name: reason for name, reason in found.items() if reason is not None}


def _why_unfit(column: NDArray[Any], classes: NDArray[Any]) -> str | None:
    known = np.array([not is_missing_text(value) for value in column.tolist()])
    texts, places = np.unique([str(value) for value in column[known].tolist()], return_inverse=True)
    if places.size <= _MANY:
        return None
    numbers = _as_numbers(texts)
    if numbers is not None:
        numbers, again = np.unique(numbers, return_inverse=True)
        places = again[places]
    distinct = int(places.max()) + 1
    is_whole = numbers is None or bool(np.all(numbers == np.round(numbers)))
    if is_whole and distinct >= _DISTINCT * places.size:
        kind = "text" if numbers is None else "whole number"
        every = "every row" if distinct == places.size else "nearly every row"
        return f"has a different {kind} in {every}, as an identifier has"
    names, of_class = np.unique(classes[known], return_inverse=True)
    rows = np.bincount(of_class)
    if names.size != 2 or rows.min() < _FEW or (numbers is None and 10 * distinct > places.size):
        return None
    of_value = np.array([np.bincount(places[of_class == label], minlength=distinct) for label in (0, 1)])
    if numbers is None:  # texts have no order but that of their shares of the second class
        of_value = of_value[:, np.argsort(of_value[1] / of_value.sum(axis=0), kind="stable")]
    below = np.cumsum(of_value[0]) - 0.5 * of_value[0]
    area = float(of_value[1] @ below) / (float(rows[0]) * float(rows[1]))
    return (
        "tells the classes apart in nearly every row, as a score or the class itself does"
        if max(area, 1.0 - area) > _AUC
        else None
    )


def _as_numbers(texts: NDArray[Any]) -> FloatArray | None:
    """Texts as numbers, None where one of them is none."""
    try:
        return texts.astype(np.float64)
    except ValueError:
        return None
