"""The rows of a file to train on: features, classes, groups and weights."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._io._numbers import is_missing_text
from localparity._io._tables import Table
from localparity._io._unfit import unfit_features
from localparity._types import FloatArray
from localparity._validation import require
from localparity.cli._remote import open_file


class TrainingTable(NamedTuple):
    """The features, the class, the groups by their columns, and the weight, of each row."""

    features: Any
    classes: NDArray[Any]
    groups: dict[str, NDArray[Any]]
    weights: NDArray[Any] | None


def read_training_table(
    file: str,
    target: str,
    group: Sequence[str],
    *,
    weight: str | None,
    drop: Sequence[str] | None,
    text: Sequence[str] | None,
    feature: Sequence[str] | None,
    extra: str,
    keep_group: bool = False,
    **reading: Any,
) -> TrainingTable:
    """Return the rows of a file, opened with `reading`; every column without another role is a feature.

    A column that looks like an identifier or the class is an error, unless `feature` names it. `extra` brings
    the data frame, and what the rows are then trained with.
    """
    if target in group:
        raise ValueError(f"column {target!r} must be --target or --group, not both")
    table = open_file(file, **reading)
    table.check([*(drop or []), *(text or []), *(feature or [])])
    known = table.read(numbers=[weight] if weight else [], values=[target], groups=group)
    left_out = {target, *(drop or []), *([weight] if weight else []), *([] if keep_group else group)}
    names = [name for name in table.columns if name not in left_out]
    if not names:
        raise ValueError(f"{table.name} has no column left for a feature")
    features = read_features(table, names, text or [], extra=extra, advice="use --text {} if it is a text")
    judged = [name for name in names if name not in (*group, *(feature or []))]
    for name, reason in unfit_features(table, judged, target).items():
        raise ValueError(
            f"column {name!r} of {table.name} {reason}; use --drop {name} to leave it out, or "
            f"--feature {name} if it is known when the model is used"
        )
    table.warn({value for name in group for value in known[name].tolist()})
    return TrainingTable(
        features,
        known[target],
        {name: known[name] for name in group},
        known[weight] if weight else None,
    )


def read_features(
    table: Table, names: Iterable[str], texts: Collection[str], *, extra: str, advice: str
) -> Any:
    """Return columns as a data frame: numbers if every value is one, texts if none is or `texts` has it.

    A missing value is NaN among numbers and None among texts. `extra` brings the data frame, `advice` ends
    the message about a column that has both, with the column's name for {}.
    """
    pandas = require("pandas", extra=extra)
    columns = table.read(numbers=[], values=names)
    for name, column in columns.items():
        if column.dtype.kind in "biuf" and name not in texts:
            columns[name] = column.astype(np.float64)
            continue
        values = [None if is_missing_text(value) else value for value in column.tolist()]
        numbers = None
        if name not in texts:
            numbers = _numbers(values, f"column {name!r} of {table.name}", advice.format(name))
        columns[name] = _texts(values) if numbers is None else numbers
    return pandas.DataFrame(columns)


def _texts(values: Sequence[Any]) -> NDArray[Any]:
    """Return values as texts, None where missing."""
    return np.array([None if value is None else str(value) for value in values], dtype=object)


def _numbers(values: Sequence[Any], source: str, advice: str) -> FloatArray | None:
    """Return values as numbers, NaN where missing, or None if none of them is a number."""
    found = np.array([_number(value) for value in values], dtype=np.float64)
    odd = [row for row, value in enumerate(values) if value is not None and np.isnan(found[row])]
    if odd and len(odd) + values.count(None) == len(values):
        return None
    if odd:
        raise ValueError(
            f"{source} has {str(values[odd[0]])!r} in data row {odd[0] + 1} and numbers in "
            f"{np.count_nonzero(~np.isnan(found)):,} of {len(values):,} rows; {advice}"
        )
    return found


def _number(value: Any) -> float:
    """Return a value of a file as a number, NaN if it is none."""
    try:
        return float("nan" if value is None else value)
    except (TypeError, ValueError):
        return float("nan")
