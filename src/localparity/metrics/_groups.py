"""Which groups are compared: every pair of them, or each with everyone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal, get_args

from localparity._validation import Group, as_choice

Compare = Literal["between_groups", "to_overall"]

COMPARISONS: tuple[str, ...] = get_args(Compare)

EVERYONE = "everyone"
"""The name under which all groups together stand in a pair."""


def pairs_of(groups: Sequence[Group], compare: str) -> list[tuple[Group, Group]]:
    """The pairs that are compared.

    Examples
    --------
    >>> pairs_of(["a", "b", "c"], "between_groups")
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    >>> pairs_of(["a", "b", "c"], "to_overall")
    [('a', 'everyone'), ('b', 'everyone'), ('c', 'everyone')]
    """
    if as_choice(compare, "compare", COMPARISONS) == "between_groups":
        return list(combinations(groups, 2))
    return [(group, EVERYONE) for group in groups]


def group_text(group: Group) -> str:
    """A group as people read it, the parts of an intersection joined.

    Examples
    --------
    >>> group_text(("Female", "Asian"))
    'Female × Asian'
    """
    return " × ".join(map(str, group)) if isinstance(group, tuple) else str(group)
