"""People whose group is not known: what MCDP can be whatever it is, and how few could change a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from localparity._types import ArrayLike, Criterion, FloatArray, Groups, ScoreRange
from localparity._validation import UNKNOWN, Blanks, as_epsilons, as_fraction, as_texts
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import Comparison
from localparity.counts._inputs import Data, input_counts
from localparity.counts._score_counts import ScoreCounts, strata_of
from localparity.metrics._assignments import End, Unassigned, largest_mcdp
from localparity.metrics._breakdown import (
    Moves,
    added_to_exceed,
    added_to_keep,
    wrong_to_exceed,
    wrong_to_keep,
)
from localparity.metrics._every_assignment import every_assignment, is_small
from localparity.metrics._gap_curves import gap_curves
from localparity.metrics._least_assignment import smallest_mcdp
from localparity.metrics._window import percent
from localparity.metrics._within import within_bound


@dataclass(frozen=True, kw_only=True)
class GroupBounds:
    """What MCDP(epsilon) can be, whatever the unknown groups are.

    Attributes
    ----------
    epsilon : float
        The half-width of the windows.
    estimate : float
        MCDP of the people whose group is known; the bounds need not hold it, since it leaves the others out.
    low, high : float
        The smallest and the largest MCDP over all ways to assign the others.
    low_exact, high_exact : bool
        Whether an assignment attains it; else it is a bound that holds, and the true one may lie inside.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", None]
    >>> bounds = lp.unknown_groups(None, scores, sensitive_features=sex).bounds[0]
    >>> bounds.low, round(bounds.high, 3), bounds.high_exact
    (0.5, 0.667, True)
    """

    epsilon: float
    estimate: float
    low: float
    high: float
    low_exact: bool
    high_exact: bool

    @property
    def sentence(self) -> str:
        """The bounds in words."""
        ends = f"between {percent(self.low)} and {percent(self.high)}"
        if not (self.low_exact and self.high_exact):
            ends = f"at least {percent(self.low)} and at most {percent(self.high)}"
        return f"Whatever the unknown groups are, MCDP({self.epsilon:g}) is {ends}."


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """How few groups would have to be other than they are known, or unknown, to change a verdict on MCDP(0).

    Attributes
    ----------
    max_mcdp : float
        The most that MCDP(0) may be.
    passes : bool
        Whether the people whose group is known are within it.
    wrong, known : int or None, int
        The fewest people in the wrong one of two groups that would change the verdict, and how many people
        are known; None where there is no such number, or where there are more than two groups.
    added, unknown : int or None, int
        The fewest of the people of unknown group that would change it, in groups that suit and the others
        left out, and how many there are; None where not even all of them would.
    added_exact : bool
        Whether so many are enough; else at least so many are needed.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", None]
    >>> found = lp.unknown_groups(None, scores, sensitive_features=sex).breakdown(0.5)
    >>> found.passes, found.wrong, found.added
    (False, 1, 1)
    """

    max_mcdp: float
    passes: bool
    wrong: int | None
    known: int
    added: int | None
    unknown: int
    added_exact: bool

    @property
    def wrong_share(self) -> float:
        """The share of the known groups that would have to be wrong; NaN where there is no such number."""
        return float("nan") if self.wrong is None else self.wrong / self.known

    @property
    def added_share(self) -> float:
        """The share of the unknown groups that would change the verdict; NaN where none would."""
        return float("nan") if self.added is None else self.added / max(self.unknown, 1)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The breakdown point in words."""
        verdict = "within" if self.passes else "above"
        found = []
        if self.unknown:
            how = f"not even all {self.unknown:,} unknown groups could change that"
            if self.added is not None:
                needed = (
                    f"{self.added:,} of the {self.unknown:,} unknown groups ({percent(self.added_share)})"
                )
                how = f"{needed} could change that"
                if not self.added_exact:
                    how = f"at least {needed} are needed to change that"
            found.append(f"MCDP(0) of the known groups is {verdict} {percent(self.max_mcdp)}; {how}.")
        if self.wrong is not None:
            wrong = f"{self.wrong:,} wrong ones of the {self.known:,} known groups"
            found.append(f"The verdict could change with {wrong} ({percent(self.wrong_share)}).")
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class UnknownGroups:
    """What is known of MCDP where some people's group is not.

    Attributes
    ----------
    unknown, known : int
        How many of the people compared have no group, and how many have one.
    bounds : tuple of GroupBounds
        The bounds of MCDP at each epsilon.
    sides : tuple
        The people of each pair and label, for the breakdown point; no part of what is written out.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", None]
    >>> found = lp.unknown_groups(None, scores, sensitive_features=sex, epsilon=[0, 0.1])
    >>> found.unknown, [(bounds.epsilon, round(bounds.high, 3)) for bounds in found.bounds]
    (1, [(0.0, 0.667), (0.1, 0.333)])
    """

    unknown: int
    known: int
    bounds: tuple[GroupBounds, ...]
    sides: tuple[tuple[Unassigned, ...], ...] = field(repr=False, compare=False)

    def breakdown(self, max_mcdp: float) -> Breakdown:
        """Return how few groups, wrong or unknown, could change the verdict on MCDP(0).

        Parameters
        ----------
        max_mcdp : float
            The most that MCDP(0) may be, a fraction in [0, 1].

        Returns
        -------
        Breakdown
        """
        max_mcdp = as_fraction(max_mcdp, "max_mcdp")
        pairs = [pair for stratum in self.sides for pair in stratum]
        if not all(pair.whole for pair in pairs):
            raise ValueError("the breakdown point needs rows that all weigh 1")
        two = all(len(stratum) == 1 for stratum in self.sides)
        passes = all(within_bound(_gap_of(pair), max_mcdp) for pair in pairs)
        added: Moves | None
        if passes:
            wrong = _least([wrong_to_exceed(pair, max_mcdp) for pair in pairs]) if two else None
            fewest = _least([added_to_exceed(pair, max_mcdp) for pair in pairs])
            added = None if fewest is None else Moves(fewest, exact=True)
        else:
            # Every label whose people are above the bound must come within it; of its pairs, the worst.
            above = [
                [pair for pair in stratum if not within_bound(_gap_of(pair), max_mcdp)]
                for stratum in self.sides
            ]
            wrong = _sum([wrong_to_keep(pair, max_mcdp) for each in above for pair in each]) if two else None
            added = _worst_added([[added_to_keep(pair, max_mcdp) for pair in each] for each in above if each])
        return Breakdown(
            max_mcdp=max_mcdp,
            passes=passes,
            wrong=wrong,
            known=self.known,
            added=None if added is None else added.people,
            unknown=self.unknown,
            added_exact=added is None or added.exact,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the bounds as plain dictionaries and lists."""
        return {
            "unknown": self.unknown,
            "known": self.known,
            "bounds": [vars(bounds) | {"sentence": bounds.sentence} for bounds in self.bounds],
        }


def unknown_groups(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    epsilon: float | Sequence[float] | FloatArray = 0.0,
    missing_values: str | Sequence[Any] = (),
    criterion: Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
) -> UnknownGroups:
    """The smallest and the largest MCDP(epsilon) over all ways to assign people whose group is not known.

    Nothing is assumed of the people without a group. Between two groups, and where every row weighs 1, both
    ends are exact at epsilon 0. At other epsilons they are for few rows; for many, the largest is exact
    unless so many people share a score that the gap could jump from one sign to the other there, and the
    smallest is a bound from any two windows. With weights parts of a row are assigned, and with more than two
    groups an unknown person may be of neither of a pair: the smallest is a bound then, and with weights the
    largest too at epsilons above 0.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1; None where the criterion does not need them. Predictions or ScoreCounts stand for all
        of the arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row, None or NaN where it is not known.
    epsilon : float or sequence of float
        The half-width of the windows, as a fraction of the score range.
    missing_values : str or sequence
        What stands for no group, beside None and NaN.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    sample_weight : array-like, optional
        Weights that are not negative.
    score_range : tuple of float
        The lowest and the highest score there can be.
    min_group_size : int
        A group with fewer rows among the people compared is an error.

    Returns
    -------
    UnknownGroups
        The bounds at each epsilon, and the breakdown point of a bound.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", None]
    >>> print(lp.unknown_groups(None, scores, sensitive_features=sex).bounds[0].sentence)
    Whatever the unknown groups are, MCDP(0) is between 50.00% and 66.67%.
    """
    comparison = Comparison(criterion, min_group_size=min_group_size)
    blanks = Blanks(as_texts(missing_values, "missing_values"), kept=True)
    arrays: dict[str, Any] = {"sample_weight": sample_weight, "score_range": score_range, "blanks": blanks}
    counts = input_counts(comparison, y_true, y_score, sensitive_features, **arrays)
    return bounds_of(counts, comparison, np.atleast_1d(as_epsilons(epsilon)))


def bounds_of(counts: ScoreCounts, comparison: Comparison, epsilons: FloatArray) -> UnknownGroups:
    """The bounds of counts in which the people without a group are `UNKNOWN`."""
    if counts.rank_error > 0.0:
        raise ValueError(
            "what unknown groups could change needs counts of every score, which these are not; "
            "there are too many distinct scores: round them"
        )
    known = counts.without([UNKNOWN])
    curves = gap_curves(known, comparison)
    estimates = np.max([curve.mcdp_at(epsilons) for curve in curves], axis=0)
    sides, people = [], [0, 0]
    for label, stratum in strata_of(known, comparison).items():
        unknown = Atoms.join(
            found for (group, of), found in counts.atoms.items() if group is UNKNOWN and label in (None, of)
        )
        options: dict[str, Any] = {"score_range": counts.score_range, "resolution": counts.resolution}
        pairs = combinations(stratum.values(), 2)
        neither = len(stratum) > 2
        sides.append(tuple(Unassigned.of((a, b, unknown), neither=neither, **options) for a, b in pairs))
        people[0] += unknown.size
        people[1] += sum(atoms.size for atoms in stratum.values())
    bounds = []
    for epsilon, estimate in zip(epsilons.tolist(), estimates.tolist(), strict=True):
        ends = [_ends(pair, epsilon) for stratum in sides for pair in stratum]
        lows, highs = zip(*ends, strict=True)
        low, high = max(end.value for end in lows), max(highs)
        bounds.append(
            GroupBounds(
                epsilon=epsilon,
                estimate=estimate,
                low=low,
                high=high.value,
                low_exact=all(end.exact for end in lows),  # a bound may hide a pair that is worse
                high_exact=high.exact,
            )
        )
    return UnknownGroups(unknown=people[0], known=people[1], bounds=tuple(bounds), sides=tuple(sides))


def _ends(sides: Unassigned, epsilon: float) -> tuple[End, End]:
    """The smallest and the largest MCDP of a pair."""
    if epsilon > 0.0 and is_small(sides):
        return every_assignment(sides, epsilon)
    return smallest_mcdp(sides, epsilon), largest_mcdp(sides, epsilon)


def _gap_of(sides: Unassigned) -> float:
    """MCDP(0) of the people whose group is known."""
    return float(np.abs(sides.first / sides.first[-1] - sides.second / sides.second[-1]).max())


def _least(moves: Sequence[int | None]) -> int | None:
    return min((each for each in moves if each is not None), default=None)


def _sum(moves: Sequence[int | None]) -> int | None:
    found = [each for each in moves if each is not None]
    return sum(found) if len(found) == len(moves) else None


def _worst_added(strata: Sequence[Sequence[Moves | None]]) -> Moves | None:
    """Of each label the pair that takes most, and of all labels together."""
    found = [[each for each in stratum if each is not None] for stratum in strata]
    if sum(map(len, found)) < sum(map(len, strata)):
        return None
    exact = all(each.exact for stratum in found for each in stratum)
    return Moves(sum(max(each.people for each in stratum) for stratum in found), exact)
