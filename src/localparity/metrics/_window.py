"""Where a disparity sits, and how to say so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from localparity._types import Group, HigherIs
from localparity._validation import as_higher_is
from localparity.counts._comparison import EVERYONE, group_text


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
    higher, lower : hashable or None
        The group more likely to score above a threshold of the run, and the group more likely to score at
        or below it; None where the gap is 0, or where it changes its sign inside the run. Which of them is
        better off depends on what a high score means; `sentence_for` says so.
    groups : tuple
        The pair that is compared.
    label : int or None
        The label of the people compared, None for everyone.
    whole : bool
        Whether the scores are whole numbers, such as deciles, on a range wider than 1.

    Examples
    --------
    >>> import localparity as lp
    >>> groups = ["a", "a", "b", "b"]
    >>> rows = lp.Predictions.from_arrays(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=groups)
    >>> window = lp.gap_curve(rows).worst_window(0.05)
    >>> window.low, window.high, window.higher
    (0.4, 0.6, 'b')
    >>> print(window.sentence)
    With a threshold from 0.4 up to, but not including, 0.6, people in a are at least 100.0 points more likely
    to be at or below it than people in b.
    """

    low: float
    high: float
    gap: float
    higher: Group | None
    lower: Group | None
    groups: tuple[Group, Group]
    label: int | None = None
    whole: bool = False

    @property
    def sentence(self) -> str:
        """The window in words that a reader can check against the data, whatever a high score means."""
        return self.sentence_for()

    def sentence_for(self, higher_is: HigherIs | None = None) -> str:
        """The window in words that say which group has the better or the worse outcome.

        Parameters
        ----------
        higher_is : {"better", "worse"}, optional
            What a score above the threshold means for the person scored; None does not say.

        Returns
        -------
        str

        Examples
        --------
        >>> window = Window(2.0, 6.0, 0.25, "m", "f", ("f", "m"), whole=True)
        >>> print(window.sentence_for("better"))
        With a threshold from 2 to 5, people in f are at least 25.0 points less likely than people in m to
        score above it, which is the better outcome.
        >>> print(window.sentence_for("worse"))
        With a threshold from 2 to 5, people in m are at least 25.0 points more likely than people in f to
        score above it, which is the worse outcome.
        """
        higher_is = as_higher_is(higher_is)
        among = "" if self.label is None else f"among people with label {self.label}, "
        if self.gap == 0.0:
            first, second = (group_text(group) for group in self.groups)
            return capitalised(f"{among}no window of this width has a gap between {first} and {second}.")
        where = f"{among}with a threshold {run_text(self.low, self.high, self.whole)}, "
        return capitalised(where + self._difference(higher_is))

    def _difference(self, higher_is: HigherIs | None) -> str:
        """How the groups differ at the thresholds of the run; whoever fares worse is named first."""
        points = points_text(self.gap)
        if self.higher is None or self.lower is None:
            first, second = (group_text(group) for group in self.groups)
            return f"{first} and {second} differ by {points}, in a direction that changes inside."
        higher, lower = (_people(group, self.groups) for group in (self.higher, self.lower))
        if higher_is is None:
            return f"{lower} are {points} more likely to be at or below it than {higher}."
        if higher_is == "better":
            compared = f"{lower} are {points} less likely than {higher}"
        else:
            compared = f"{higher} are {points} more likely than {lower}"
        return f"{compared} to score above it, which is the {higher_is} outcome."


def _people(group: Group, compared: tuple[Group, Group]) -> str:
    return "people overall" if group == EVERYONE == compared[1] else f"people in {group_text(group)}"


def capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def points_text(gap: float) -> str:
    """A gap that is not 0 in percentage points, rounded down, to the first digit that is not 0.

    Examples
    --------
    >>> points_text(0.27349), points_text(0.00047), points_text(1e-12)
    ('at least 27.3 points', 'at least 0.04 points', 'more than 0 points')
    """
    for decimals in range(1, 7):
        steps = math.floor((gap + 1e-12) * 10.0 ** (2 + decimals))
        if steps:
            return f"at least {steps / 10.0**decimals:.{decimals}f} points"
    return "more than 0 points"


def run_text(low: float, high: float, whole: bool) -> str:
    """The thresholds of a run, whose high end is not one of them.

    Examples
    --------
    >>> run_text(2.0, 6.0, whole=True), run_text(2.0, 3.0, whole=True)
    ('from 2 to 5', 'of 2')
    >>> run_text(0.4, 0.6, whole=False)
    'from 0.4 up to, but not including, 0.6'
    """
    if not whole:
        return "from {} up to, but not including, {}".format(*round_inward(low, high))
    first, last = number_text(low), number_text(high - 1.0)
    return f"of {first}" if first == last else f"from {first} to {last}"


def round_inward(low: float, high: float) -> tuple[str, str]:
    """The ends of a run with as few digits as keep them apart, four at the least, and inside it.

    Examples
    --------
    >>> round_inward(0.123449, 0.876551)
    ('0.1235', '0.8765')
    """
    for digits in range(4, 17):
        step = 10.0 ** (math.floor(math.log10(max(abs(low), abs(high)))) + 1 - digits)
        if step == 0.0:  # smaller than any float
            break
        inner_low, inner_high = math.ceil(low / step - 1e-9) * step, math.floor(high / step + 1e-9) * step
        if inner_low < inner_high:
            return number_text(inner_low, digits), number_text(inner_high, digits)
    return number_text(low), number_text(high)


def percent(fraction: float) -> str:
    """A fraction as people read it.

    Examples
    --------
    >>> percent(0.29984)
    '29.98%'
    """
    return f"{100.0 * fraction:.2f}%"


def number_text(number: float, digits: int | None = None) -> str:
    """A number as people write it, to so many significant digits or to all that it has.

    Examples
    --------
    >>> number_text(11490.0), number_text(0.00012), number_text(1.5e-9), number_text(2 / 3, 4)
    ('11,490', '0.00012', '1.5e-9', '0.6667')
    """
    text = repr(number) if digits is None else f"{number:.{digits}g}"
    exact = Decimal(text).normalize()
    if number != 0.0 and not 1e-6 <= abs(number) < 1e15:
        mantissa, exponent = f"{exact:e}".split("e")
        return f"{mantissa}e{int(exponent):+d}"
    return f"{exact:,f}"
