"""Which people are compared: everyone, those with one label, or either label in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from localparity._validation import Group, as_choice, as_count

Criterion = Literal["demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds"]

CRITERIA: tuple[str, ...] = get_args(Criterion)

_LABELS: dict[str, tuple[int | None, ...]] = {
    "demographic_parity": (None,),
    "equal_opportunity": (1,),
    "predictive_equality": (0,),
    "equalized_odds": (0, 1),
}


def labels_of(criterion: str) -> tuple[int | None, ...]:
    """The labels whose people are compared one after the other; None stands for everyone.

    Examples
    --------
    >>> labels_of("equalized_odds")
    (0, 1)
    """
    return _LABELS[as_choice(criterion, "criterion", CRITERIA)]


def check_group_sizes(
    groups: Sequence[Group], rows: Sequence[int], label: int | None, min_group_size: int
) -> None:
    """Every group has as many of the people compared as the least size asks, and at least one."""
    min_group_size = as_count(min_group_size, "min_group_size")
    for group, size in zip(groups, rows, strict=True):
        among = "" if label is None else f" with y_true = {label}"
        if size == 0:
            raise ValueError(f"group {group!r} has no rows{among}, so there is nobody to compare")
        if size < min_group_size:
            raise ValueError(
                f"group {group!r} has {size} rows{among} where min_group_size is {min_group_size}; "
                "leave the group out or join it to another"
            )
