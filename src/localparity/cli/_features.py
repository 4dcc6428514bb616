"""The rows of a file to train on: features, classes, groups and weights."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._io._tables import Table
from localparity._validation import require

_MANY = 50


class TrainingTable(NamedTuple):
    """The features, the class, the groups by their columns, and the weight, of each row."""

    features: Any
    classes: NDArray[Any]
    groups: dict[str, NDArray[Any]]
    weights: NDArray[Any] | None

    def with_categories(self) -> TrainingTable:
        """Return the table with its texts as pandas categories, which trees take."""
        texts = self.features.select_dtypes(exclude="number").columns
        return self._replace(features=self.features.astype(dict.fromkeys(texts, "category")))


def read_training_table(
    file: str,
    target: str,
    group: Sequence[str],
    *,
    weight: str | None,
    drop: Sequence[str] | None,
    text: Sequence[str] | None,
    keep_group: bool = False,
) -> TrainingTable:
    """Return the rows of a file; every column without another role is a feature."""
    if target in group:
        raise ValueError(f"column {target!r} must be --target or --group, not both")
    table = Table(file)
    table.check([*(drop or []), *(text or [])])
    known = table.read(numbers=[weight] if weight else [], values=[target, *group])
    left_out = {target, *(drop or []), *([weight] if weight else []), *([] if keep_group else group)}
    names = [name for name in table.columns if name not in left_out]
    if not names:
        raise ValueError(f"{table.name} has no column left for a feature")
    features = read_features(table, names, text or [])
    for name in names:
        if features[name].dtype != np.float64 and features[name].nunique() == len(features) > _MANY:
            raise ValueError(
                f"column {name!r} of {table.name} has a different text in every row, as an identifier has; "
                f"use --drop {name}"
            )
    return TrainingTable(
        features,
        known[target],
        {name: known[name] for name in group},
        known[weight] if weight else None,
    )


def read_features(table: Table, names: Iterable[str], texts: Collection[str] = ()) -> Any:
    """Return columns as a data frame: numbers if every value is one, texts if none is or `texts` has it."""
    values = table.read(numbers=[], values=names)
    columns = {name: _typed(name, column, name in texts, table.name) for name, column in values.items()}
    return require("pandas", extra="train").DataFrame(columns)


def _typed(name: str, column: NDArray[Any], is_text: bool, source: str) -> NDArray[Any]:
    if column.dtype.kind in "biuf" and not is_text:
        return column.astype(np.float64)
    missing = [row for row, value in enumerate(column.tolist()) if value is None]
    if missing:
        raise ValueError(f"column {name!r} of {source} has no value in data row {missing[0] + 1}")
    texts = [str(value) for value in column.tolist()]
    if is_text:
        return np.asarray(texts, dtype=object)
    numbers = [number for text in texts if (number := _number(text)) is not None]
    if len(numbers) == len(texts):
        return np.asarray(numbers, dtype=np.float64)
    if numbers:
        odd = next(row for row, text in enumerate(texts) if _number(text) is None)
        raise ValueError(
            f"column {name!r} of {source} has {texts[odd]!r} in data row {odd + 1} and numbers in "
            f"{len(numbers)} of {len(texts)} rows; use --text {name} if it is a text"
        )
    return np.asarray(texts, dtype=object)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
