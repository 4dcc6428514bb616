"""The group of each row, from one column or from several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import Group, Groups
from localparity._validation._arrays import Column, as_vector, check_rows, place


class Grouping(NamedTuple):
    """The group of each row as a code, and the groups' names in the order of their codes."""

    codes: NDArray[np.uint32]
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
) -> Grouping:
    """The group of each row, from one column or from the intersection of several."""
    groupings = []
    for column_name, column in _columns(sensitive_features, name).items():
        # Lists as objects: numpy would make one text of a missing value, and of 1 and "1".
        listed = isinstance(column, list | tuple)
        values = as_vector(column, column_name, dtype=object if listed else None)
        check_rows(column_name, values.size, rows)
        if values.dtype.kind not in "biuf" and values.size > 10 * at_most:
            # The first rows tell an identifier before all of them are sorted.
            first = values[: 2 * at_most].tolist()
            check_group_count(len({value for value in first if isinstance(value, str)}), column_name, at_most)
        groupings.append(_factorize(values, column_name))
    grouping = groupings[0] if len(groupings) == 1 else _intersect(groupings)
    check_group_count(len(grouping.names), name, at_most)
    if len(grouping.names) < at_least:
        raise ValueError(f"{name} must have at least two groups, got {grouping.names[0]!r} only")
    return grouping


def check_group_count(groups: int, name: str, at_most: int = MOST_GROUPS) -> None:
    """Whether there are so many groups that the column must be an identifier."""
    if groups > at_most:
        raise ValueError(f"{name} has more than {at_most:,} groups; is it an identifier?")


def _columns(sensitive_features: Any, name: str) -> dict[str, Any]:
    """The columns by the name that messages call them."""
    if sensitive_features is None:
        raise ValueError(f"{name} must be the group of each row, got None")
    if isinstance(sensitive_features, Mapping):
        columns = dict(sensitive_features)
    elif hasattr(sensitive_features, "columns"):
        columns = {key: sensitive_features[key] for key in sensitive_features.columns}
    elif getattr(sensitive_features, "ndim", 1) == 2:
        columns = dict(enumerate(np.asarray(sensitive_features).T))
    else:
        return {name: sensitive_features}
    if not columns:
        raise ValueError(f"{name} has no columns")
    if isinstance(name, Column):
        return {Column(f"column {key!r}", name.first_row): column for key, column in columns.items()}
    return {f"{name}[{key!r}]": column for key, column in columns.items()}


def _factorize(values: NDArray[Any], name: str) -> Grouping:
    """Codes of the distinct values, in sorted order where they can be sorted."""
    if values.dtype.kind == "b":
        values = values.view(np.uint8)
        names, codes = _factorize_integers(values)
        return Grouping(codes, tuple(bool(value) for value in names))
    if values.dtype.kind in "iu" and values.max() < 2**62 and int(values.max()) - int(values.min()) < 2**16:
        names, codes = _factorize_integers(values)
        return Grouping(codes, tuple(names))
    if values.dtype.kind == "O":
        return _factorize_objects(values, name)
    if values.dtype.kind in "mM":
        values = values.astype(f"{values.dtype.kind}8[us]")
    distinct, inverse = np.unique(values, return_inverse=True)
    found = tuple(distinct.tolist())
    if is_missing(found[-1]):  # NaN and NaT sort last
        row = int(np.argmax(inverse == len(found) - 1))
        raise ValueError(f"{name} has no value at {place(name, row)}")
    return Grouping(inverse.astype(np.uint32), found)


def _factorize_integers(values: NDArray[Any]) -> tuple[list[int], NDArray[np.uint32]]:
    """By counting, without a sort: the common case of millions of rows in a few groups."""
    lowest = int(values.min())
    shifted = values.astype(np.int64, copy=False)
    if lowest:
        shifted = shifted - lowest
    present = np.flatnonzero(np.bincount(shifted))
    code_of = np.zeros(int(present[-1]) + 1, dtype=np.uint32)
    code_of[present] = np.arange(present.size, dtype=np.uint32)
    return (present + lowest).tolist(), code_of[shifted]


def _factorize_objects(values: NDArray[Any], name: str) -> Grouping:
    """Any hashable values, None and NaN excepted."""
    code_of: dict[Group, int] = {}
    codes = np.empty(values.size, dtype=np.uint32)
    for row, value in enumerate(values.tolist()):
        if is_missing(value):
            raise ValueError(f"{name} has no value at {place(name, row)}")
        try:
            codes[row] = code_of.setdefault(value, len(code_of))
        except TypeError:
            raise ValueError(f"{name} must be hashable, got {value!r} at {place(name, row)}") from None
    names = sort_groups(code_of)
    rank = np.empty(len(names), dtype=np.uint32)
    rank[[code_of[group] for group in names]] = np.arange(len(names), dtype=np.uint32)
    return Grouping(rank[codes], names)


def sort_groups(groups: Iterable[Group]) -> tuple[Group, ...]:
    """In the values' own order, and by their text where they have none."""
    found = list(groups)
    try:
        return tuple(sorted(found))  # type: ignore[type-var]
    except TypeError:
        return tuple(sorted(found, key=str))


def is_missing(value: Any) -> bool:
    """None, NaN and pandas' NA, of which only NaN can be compared."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True


def _intersect(groupings: Sequence[Grouping]) -> Grouping:
    """The combinations of the columns' groups that occur."""
    combined = np.zeros(groupings[0].codes.size, dtype=np.int64)
    for grouping in groupings:
        combined = combined * len(grouping.names) + grouping.codes
    occurring, codes = np.unique(combined, return_inverse=True)
    parts = np.unravel_index(occurring, [len(grouping.names) for grouping in groupings])
    names = tuple(
        tuple(grouping.names[code] for grouping, code in zip(groupings, combination, strict=True))
        for combination in zip(*parts, strict=True)
    )
    return Grouping(codes.astype(np.uint32), names)
