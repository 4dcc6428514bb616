"""The group of each row, from one column or from several."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import BoolArray, Group, Groups
from localparity._validation._codes import (
    Coded,
    as_column,
    as_frame,
    column_values,
    encode,
    encode_column,
    example_rows,
    missing_among,
    recode,
    smallest_dtype,
    sort_groups,
)
from localparity._validation._rows import Column, as_vector, check_rows, place

# Rows without a group: which values stand for none, and the group that such rows are of.


class UnknownGroup(Enum):
    """The group of rows that have none: behind all others, and equal to no value of a column."""

    UNKNOWN = "(unknown)"

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return self.value


UNKNOWN = UnknownGroup.UNKNOWN


class Blanks(NamedTuple):
    """What stands for no group beside None and NaN, and whether rows without one are kept, as `UNKNOWN`.

    A text that no row has is warned of. Of several columns, a row that lacks one value is of the group
    `UNKNOWN`, or, `by_column`, of a group that has `UNKNOWN` for that part.
    """

    texts: tuple[str, ...] = ()
    kept: bool = False
    by_column: bool = False

    def among(self, values: NDArray[Any]) -> BoolArray:
        """Which values stand for no group."""
        found = missing_among(values)
        if self.texts:
            found |= np.array([self._names(value) for value in values.tolist()], dtype=bool)
        return found

    def unmatched(self, columns: Iterable[NDArray[Any]]) -> tuple[str, ...]:
        """The texts that no value of some columns has."""
        found = [Blanks((text,)) for text in self.texts]
        values = [value for column in columns for value in column.tolist()] if found else []
        return tuple(each.texts[0] for each in found if not any(map(each._names, values)))

    def _names(self, value: Any) -> bool:
        """Whether one of the texts is a value's; a column of 3 and NaN has 3.0."""
        return str(value) in self.texts or (isinstance(value, float) and f"{value:g}" in self.texts)


NO_BLANKS = Blanks()


def warn_of_unmatched(texts: Iterable[str]) -> None:
    """Warn of each text that was to stand for no group, and that no row has."""
    for text in texts:
        warnings.warn(f"missing_values has {text!r}, which is in no row", stacklevel=2)


def is_unknown(group: Group) -> bool:
    """Whether a group, or a part of one, is nothing or blank."""
    parts = group if isinstance(group, tuple) else (group,)
    return any(part is UNKNOWN or (isinstance(part, str) and not part.strip()) for part in parts)


def has_unknown(group: Group) -> bool:
    """Whether a group, or a part of one, is `UNKNOWN`."""
    return group is UNKNOWN or (isinstance(group, tuple) and UNKNOWN in group)


def as_texts(texts: str | Sequence[Any], name: str) -> tuple[str, ...]:
    """Values by their texts, from one or several.

    Examples
    --------
    >>> as_texts("NA", "missing_values"), as_texts([8, "unknown"], "missing_values")
    (('NA',), ('8', 'unknown'))
    """
    if isinstance(texts, str):
        return (texts,)
    try:
        return tuple(map(str, texts))
    except TypeError:
        raise ValueError(f"{name} must be a text or several, got {texts!r}") from None


class Grouping(NamedTuple):
    """The group of each row as a code, and the groups' names in the order of their codes.

    The codes' dtype is the smallest unsigned one that holds as many as there are groups.
    """

    codes: NDArray[np.unsignedinteger[Any]]
    names: tuple[Group, ...]


MOST_GROUPS = 10_000
"""More groups than this are a sign that the column names people, not groups."""


def as_groups(
    sensitive_features: Groups,
    rows: int,
    name: str = "sensitive_features",
    *,
    at_least: int = 2,
    at_most: int = MOST_GROUPS,
    blanks: Blanks = NO_BLANKS,
) -> Grouping:
    """The group of each row, from one column or from the intersection of several."""
    columns = _columns(sensitive_features, name).items()
    coded = {key: _coded(column, rows, key, at_most) for key, column in columns}
    warn_of_unmatched(blanks.unmatched(each.values for each in coded.values()))
    groupings = [_as_grouping(each, key, blanks) for key, each in coded.items()]
    grouping = groupings[0] if len(groupings) == 1 else _intersect(groupings, by_column=blanks.by_column)
    check_group_count(len(grouping.names), name, at_most)
    if len(grouping.names) < at_least:
        if is_unknown(grouping.names[0]):
            raise ValueError(f"{name} has no value in any of its {rows:,} rows")
        raise ValueError(f"{name} must have at least two groups, got {grouping.names[0]!r} only")
    return grouping


def check_group_count(groups: int, name: str, at_most: int = MOST_GROUPS) -> None:
    """Whether there are so many groups that the column must be an identifier."""
    if groups > at_most:
        raise ValueError(f"{name} has more than {at_most:,} groups; is it an identifier?")


def _columns(sensitive_features: Any, name: str) -> dict[str, Any]:
    """The columns by the name that messages call them."""
    columns = group_columns(sensitive_features, name)
    if columns.keys() == {None}:
        return {name: columns[None]}
    if isinstance(name, Column):
        return {Column(f"column {key!r}", name.first_row): column for key, column in columns.items()}
    return {f"{name}[{key!r}]": column for key, column in columns.items()}


def group_columns(sensitive_features: Any, name: str = "sensitive_features") -> dict[Any, Any]:
    """The columns by their names; one that has none is under None."""
    if sensitive_features is None:
        raise ValueError(f"{name} must be the group of each row, got None")
    try:
        frame: Any = as_frame(sensitive_features)
    except ValueError as error:  # as where two columns have the same name
        raise ValueError(f"{name} cannot be read: {' '.join(str(error).split())}") from error
    if isinstance(sensitive_features, Mapping):
        columns = dict(sensitive_features)
    elif hasattr(frame, "columns"):
        columns = {key: frame.get_column(key) for key in frame.columns}
    elif frame is None and getattr(sensitive_features, "ndim", 1) == 2:
        columns = dict(enumerate(np.asarray(sensitive_features).T))
    else:
        return {None: sensitive_features if frame is None else frame}
    if not columns:
        raise ValueError(f"{name} has no columns")
    return columns


def _coded(column: Any, rows: int, name: str, at_most: int) -> Coded:
    """The codes of a column that must have so many rows."""
    frame_column = as_column(column, name)
    if frame_column is not None:
        check_rows(name, len(frame_column), rows)
        first = encode_column(frame_column.head(2 * at_most)) if rows > 100 * at_most else None
        if first is not None:
            # The first rows tell an identifier before all of them are read.
            check_group_count(len(set(first.values.tolist())), name, at_most)
        coded = encode_column(frame_column)
        if coded is not None:
            return coded
        column = column_values(frame_column)
    # Lists as objects: numpy would make one text of a missing value, and of 1 and "1".
    values = as_vector(column, name, dtype=object if isinstance(column, list | tuple) else None)
    check_rows(name, values.size, rows)
    if values.dtype.kind not in "biuf" and rows > 100 * at_most:
        texts = {value for value in values[: 2 * at_most].tolist() if isinstance(value, str)}
        check_group_count(len(texts), name, at_most)
    try:
        return encode(values)
    except TypeError:
        row = next(row for row, value in enumerate(values.tolist()) if not _is_hashable(value))
        raise ValueError(f"{name} must be hashable, got {values[row]!r} at {place(name, row)}") from None


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _as_grouping(coded: Coded, name: str, blanks: Blanks) -> Grouping:
    """The groups that occur, sorted where they can be, and the place of each row's among them."""
    codes, values = coded
    occurs = example_rows(codes, values.size) >= 0
    missing = blanks.among(values) & occurs
    if missing.any() and not blanks.kept:
        raise ValueError(f"{name} has no value at {place(name, int(np.argmax(missing[codes])))}")
    listed = zip(values[occurs].tolist(), missing[occurs].tolist(), strict=True)
    found = [UNKNOWN if lacks else value for value, lacks in listed]
    names = sort_groups(dict.fromkeys(found))
    place_of = {group: number for number, group in enumerate(names)}
    new = np.zeros(values.size, dtype=smallest_dtype(len(names)))
    new[occurs] = [place_of[group] for group in found]
    return Grouping(recode(codes, new), names)


def _intersect(groupings: Sequence[Grouping], *, by_column: bool) -> Grouping:
    """The combinations of the columns' groups that occur."""
    first, *others = groupings
    codes, combinations = first.codes, [(group,) for group in first.names]
    for grouping in others:
        width = len(grouping.names)
        dtype = smallest_dtype(len(combinations) * width + 1)
        both, numbers = encode(codes.astype(dtype) * dtype.type(width) + grouping.codes)
        occurs = example_rows(both, numbers.size) >= 0
        pairs = [divmod(number, width) for number in numbers[occurs].tolist()]
        combinations = [(*combinations[one], grouping.names[other]) for one, other in pairs]
        codes = recode(both, (np.cumsum(occurs) - 1).astype(smallest_dtype(len(pairs))))
    known = [group for group in combinations if UNKNOWN not in group]
    if by_column or len(known) == len(combinations):
        return Grouping(codes, tuple(combinations))
    # Of a row that has no value in one of the columns, the group is not known.
    place_of = {group: number for number, group in enumerate(known)}
    new = [place_of.get(group, len(known)) for group in combinations]
    return Grouping(recode(codes, np.array(new, dtype=smallest_dtype(len(known) + 1))), (*known, UNKNOWN))
