"""Where a disparity sits, and how to say so."""

from __future__ import annotations

import math
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

    Examples
    --------
    >>> import localparity as lp
    >>> curve = lp.gap_curve(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"])
    >>> window = curve.worst_window(0.05)
    >>> window.low, window.high, window.favoured
    (0.4, 0.6, 'b')
    >>> print(window.sentence)
    With a threshold anywhere between 0.4 and 0.6, people in a are at least 100.0 points more likely to be at
    or below it than people in b.
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
        low, high = round_inward(self.low, self.high)
        where = f"{among}with a threshold anywhere between {low} and {high}, "
        points = f"{math.floor(1000.0 * self.gap + 1e-9) / 10.0:.1f} points"
        if self.favoured is None or self.disfavoured is None:
            what = f"{first} and {second} differ by at least {points}, in a direction that changes inside."
        else:
            more, less = (_people(group, self.groups) for group in (self.disfavoured, self.favoured))
            what = f"{more} are at least {points} more likely to be at or below it than {less}."
        return _capitalised(where + what)


def _people(group: Group, compared: tuple[Group, Group]) -> str:
    return "people overall" if group == EVERYONE == compared[1] else f"people in {group_text(group)}"


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def round_inward(low: float, high: float) -> tuple[str, str]:
    """The ends of a run with as few digits as keep them apart, four at the least, and inside it.

    Examples
    --------
    >>> round_inward(0.123449, 0.876551)
    ('0.1235', '0.8765')
    """
    for digits in range(4, 17):
        step = 10.0 ** (math.floor(math.log10(max(abs(low), abs(high)))) + 1 - digits)
        inner_low, inner_high = math.ceil(low / step - 1e-9) * step, math.floor(high / step + 1e-9) * step
        if inner_low < inner_high:
            return f"{inner_low:.{digits}g}", f"{inner_high:.{digits}g}"
    return repr(low), repr(high)
