"""Rows without a group: which values stand for none, and the group that such rows are of."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import BoolArray, Group
from localparity._validation._codes import missing_among


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

    Of a text that no row has, there is a warning, unless this is `quiet`.
    """

    texts: tuple[str, ...] = ()
    kept: bool = False
    quiet: bool = False

    def among(self, values: NDArray[Any]) -> BoolArray:
        """Which values stand for no group."""
        found = missing_among(values)
        if self.texts:
            found |= np.array([self._names(value) for value in values.tolist()], dtype=bool)
        return found

    def unmatched(self, columns: Iterable[NDArray[Any]]) -> tuple[str, ...]:
        """The texts that no value of some columns has."""
        found = [] if self.quiet else [Blanks((text,)) for text in self.texts]
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
