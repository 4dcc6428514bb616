"""Who is compared with whom: a criterion, how groups are paired, and the minimum group size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, get_args

import numpy as np

from localparity._types import Compare, Criterion, Group, IntArray
from localparity._validation import InputError, as_choice, as_count, setting

CRITERIA: tuple[Criterion, ...] = get_args(Criterion)

_LABELS: dict[str, tuple[int | None, ...]] = {
    "demographic_parity": (None,),
    "equal_opportunity": (1,),
    "predictive_equality": (0,),
    "equalized_odds": (0, 1),
}


class _Everyone(str):
    """A name that a group's, which may read the same, is not."""

    __slots__ = ()


EVERYONE = _Everyone("everyone")
"""The name of all groups together in a pair."""


def labels_of(criterion: str) -> tuple[int | None, ...]:
    """The labels whose people are compared, one after the other; None stands for everyone."""
    return _LABELS[as_choice(criterion, "criterion", CRITERIA)]


@dataclass(frozen=True)
class Comparison:
    """Who is compared with whom.

    Parameters
    ----------
    criterion : str
        The people compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" compares every pair of groups, "to_overall" each group with everyone.
    min_group_size : int
        The fewest rows that a group may have among the people compared.

    Examples
    --------
    >>> Comparison("equalized_odds").labels
    (0, 1)
    >>> Comparison(compare="to_overall").pairs(["a", "b", "c"])
    [('a', 'everyone'), ('b', 'everyone'), ('c', 'everyone')]
    """

    criterion: Criterion = "demographic_parity"
    compare: Compare = "between_groups"
    min_group_size: int = 1

    def __post_init__(self) -> None:
        labels_of(self.criterion)
        as_choice(self.compare, "compare", get_args(Compare))
        object.__setattr__(self, "min_group_size", as_count(self.min_group_size, "min_group_size"))

    @property
    def labels(self) -> tuple[int | None, ...]:
        """The labels whose people are compared, one after the other; None stands for everyone."""
        return labels_of(self.criterion)

    @property
    def needs_labels(self) -> bool:
        """Whether people are compared by label."""
        return self.labels != (None,)

    def pairs(self, groups: Sequence[Group]) -> list[tuple[Group, Group]]:
        """Return the pairs that are compared.

        Parameters
        ----------
        groups : sequence
            The groups.

        Returns
        -------
        list of tuple
        """
        if self.compare == "between_groups":
            return list(combinations(groups, 2))
        return [(group, EVERYONE) for group in groups]

    def pair_places(self, groups: Sequence[Group]) -> IntArray:
        """Return the pairs that are compared, as places among the groups, with everyone after the last.

        Parameters
        ----------
        groups : sequence
            The groups.

        Returns
        -------
        ndarray of shape (pairs, 2)
        """
        if self.compare == "to_overall":
            check_names(groups)
        places = range(len(groups))
        pairs = [(a, len(groups) if b == EVERYONE else b) for a, b in self.pairs(places)]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def check_names(groups: Iterable[Group]) -> None:
    """Raise a ValueError where a group has the name of all groups together."""
    if EVERYONE in groups:
        raise ValueError(f"{EVERYONE!r} names all groups together; rename the group of that name")


def require_labels(comparison: Comparison, y_true: Any) -> None:
    """Raise a ValueError where the criterion needs labels and there are none."""
    if comparison.needs_labels and y_true is None:
        raise InputError(f"{setting(criterion=comparison.criterion)} needs {setting('y_true')}, got None")


def check_sizes(
    comparison: Comparison, groups: Sequence[Group], rows: Sequence[int], label: int | None
) -> None:
    """Raise a ValueError where a group has fewer than `min_group_size` of the people compared."""
    among = "" if label is None else f" with y_true = {label}"
    for group, size in zip(groups, rows, strict=True):
        if size == 0:
            raise ValueError(f"group {group!r} has no rows{among}")
        if size < comparison.min_group_size:
            raise InputError(
                f"group {group!r} has {size} rows{among}, {setting('min_group_size')} is "
                f"{comparison.min_group_size}; leave the group out or merge it with another"
            )
