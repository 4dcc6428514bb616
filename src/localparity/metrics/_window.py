"""Where a disparity sits, and how to say so."""

from __future__ import annotations

from dataclasses import dataclass

from localparity._validation import Group
from localparity.metrics._groups import EVERYONE, group_text


@dataclass(frozen=True)
class Window:
    """Where the gap stays large: the run of thresholds on which it is nowhere below `gap`.

    Attributes
    ----------
    low, high : float
        The run's ends in the scores' own units: the gap is at least `gap` from `low` up to, but not at,
        `high`. It holds a whole window of the half-width that was asked for.
    gap : float
        The least absolute gap in the run, which is MCDP at that half-width.
    favoured, disfavoured : hashable or None
        The group less and the group more likely to score at or below a threshold of the run; None where
        the gap is 0, or where it changes its sign inside the run.
    groups : tuple
        The pair that is compared.
    label : int or None
        The label of the people compared, None for everyone.
    """

    low: float
    high: float
    gap: float
    favoured: Group | None
    disfavoured: Group | None
    groups: tuple[Group, Group]
    label: int | None = None

    @property
    def sentence(self) -> str:
        """The window in words that a reader can check against the data."""
        among = "" if self.label is None else f"among people with label {self.label}, "
        first, second = (group_text(group) for group in self.groups)
        if self.gap == 0.0:
            return _capitalised(f"{among}no window of this width has a gap between {first} and {second}.")
        low, high = _format_ends(self.low, self.high)
        where = f"{among}with a threshold anywhere between {low} and {high}, "
        points = f"{100.0 * self.gap:.1f} points"
        if self.favoured is None or self.disfavoured is None:
            what = f"{first} and {second} differ by at least {points}, in a direction that changes inside."
        else:
            more, less = _people(self.disfavoured), _people(self.favoured)
            what = f"{more} are at least {points} more likely to be at or below it than {less}."
        return _capitalised(where + what)


def _people(group: Group) -> str:
    return "people overall" if group == EVERYONE else f"people in {group_text(group)}"


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def _format_ends(low: float, high: float) -> tuple[str, str]:
    """Two different numbers with as few digits as tell them apart, four at the least."""
    digits = 4
    while f"{low:.{digits}g}" == f"{high:.{digits}g}":
        digits += 1
    return f"{low:.{digits}g}", f"{high:.{digits}g}"
