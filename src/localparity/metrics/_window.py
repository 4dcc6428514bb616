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
        run, points = run_text(self.low, self.high, self.whole), points_text(self.gap)
        return "".join(sentence_parts(self, as_higher_is(higher_is), run, points))


def sentence_parts(window: Window, higher_is: HigherIs | None, run: str, points: str) -> list[str]:
    """The sentence about a window: texts, with the name of a group after each but the last.

    Whoever fares worse is named first.
    """
    among = "" if window.label is None else f"among people with label {window.label}, "
    first, second = (group_text(group) for group in window.groups)
    if window.gap == 0.0:
        start = capitalised(f"{among}no window of this width has a gap between ")
        return [start, first, " and ", second, "."]
    where = capitalised(f"{among}with a threshold {run}, ")
    if window.higher is None or window.lower is None:
        return [where, first, " and ", second, f" differ by {points}, in a direction that changes inside."]
    (higher, higher_name), (lower, lower_name) = (
        _people(group, window.groups) for group in (window.higher, window.lower)
    )
    if higher_is is None:
        than = f" are {points} more likely to be at or below it than {higher}"
        return [where + lower, lower_name, than, higher_name, "."]
    ending = f" to score above it, which is the {higher_is} outcome."
    if higher_is == "better":
        return [where + lower, lower_name, f" are {points} less likely than {higher}", higher_name, ending]
    return [where + higher, higher_name, f" are {points} more likely than {lower}", lower_name, ending]


def _people(group: Group, compared: tuple[Group, Group]) -> tuple[str, str]:
    """People of a group: a text, and the name that follows it."""
    return ("people overall", "") if group == EVERYONE == compared[1] else ("people in ", group_text(group))
