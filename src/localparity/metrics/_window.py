"""Where a disparity sits, and how to say so."""

from __future__ import annotations

from dataclasses import dataclass

from localparity._text import capitalised, group_text, points_text, run_text
from localparity._types import Group, HigherIs
from localparity._validation import as_higher_is
from localparity.counts._comparison import EVERYONE


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
    >>> curve = lp.gap_curve(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"])
    >>> window = curve.worst_window(0.05)
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
