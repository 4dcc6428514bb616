"""People whose group is not known: what MCDP can be whatever it is, and how few could change a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._text import capitalised, percent
from localparity._types import BoolArray, Criterion, FloatArray, IntArray, ScoreRange
from localparity._validation import InputError, as_epsilons, as_fraction, lacks_group
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import Data, ScoreCounts, as_counts, checked_data, strata_of
from localparity.metrics._gap_curve import gap_between, gap_curves, units_of
from localparity.metrics._profile import mcdp_of
from localparity.metrics._within import within_bound

_MOST_TRIED = 2000
_HALVINGS = 60
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Unassigned:
    """Two groups, and people who may be of the one or the other, or, with more groups, of neither.

    How many of each, or how much weight, lie at or below each knot, the knots being fractions of the range.
    """

    knots: FloatArray
    first: NDArray[Any]
    second: NDArray[Any]
    unknown: NDArray[Any]
    neither: bool
    whole: bool
    score_range: ScoreRange
    resolution: float

    @classmethod
    def of(cls, sides: tuple[Atoms, Atoms, Atoms], counts: ScoreCounts, *, neither: bool) -> Unassigned:
        """Put together the scores of two groups and of the unknown."""
        knots = np.unique(np.concatenate([side.scores for side in sides]))
        whole = all(side.units is None for side in sides)
        first, second, unknown = (
            np.asarray(
                side.below()[np.searchsorted(side.scores, knots, side="right")],
                dtype=np.int64 if whole else np.float64,
            )
            for side in sides
        )
        units = units_of(knots, counts.score_range, counts.resolution)
        return cls(units, first, second, unknown, neither, whole, counts.score_range, counts.resolution)

    @cached_property
    def swapped(self) -> Unassigned:
        """The same with the groups in the other order."""
        return replace(self, first=self.second, second=self.first)

    @property
    def known_gap(self) -> float:
        """MCDP(0) of the people whose group is known."""
        return float(np.abs(self.first / self.first[-1] - self.second / self.second[-1]).max())

    def largest(self, epsilons: FloatArray) -> FloatArray:
        """MCDP of the largest absolute gap at each threshold: exact at epsilon 0, and a bound above it."""
        return self._mcdp(np.maximum(self._most, self.swapped._most), epsilons)

    def smallest(self, epsilons: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The smallest MCDP over all assignments, or what it does not fall below, and whether it is exact.

        It is exact at epsilon 0 with two groups and no weights, unless too many assignments would have to be
        tried. Elsewhere it is MCDP of the smallest absolute gap that each threshold by itself allows.
        """
        closest = np.maximum(-self._most, -self.swapped._most)
        lows, at_zero = self._mcdp(np.maximum(closest, 0.0), epsilons), epsilons <= 0.0
        if not at_zero.any() or not self.whole or self.neither:
            return lows, np.zeros(epsilons.size, dtype=bool)
        lows[at_zero], exact = _smallest_gap(self)
        return lows, at_zero & exact

    def _mcdp(self, gap: FloatArray, epsilons: FloatArray) -> FloatArray:
        return mcdp_of(self.knots, gap, epsilons, self.resolution, self.score_range).copy()

    @cached_property
    def _most(self) -> FloatArray:
        """At each knot the largest signed gap: the unknown up to it join the first group, the others not."""
        above = self.unknown[-1] - self.unknown
        shares = (self.first + self.unknown) / (self.first[-1] + self.unknown)
        return np.asarray(shares - self.second / (self.second[-1] + above), dtype=np.float64)


# The smallest MCDP(0) of two groups, where everybody weighs 1.
#
# Where m of the unknown join the first group, the number X of those at or below a threshold sets the gap
# there: alpha X - beta, with alpha and beta that m decides. X rises from 0 to m, by no more than the unknown
# at each score. So any two thresholds say how large the gap must be: half of how far beta falls from the
# first to the second, or rises beyond the unknown between them. What falls gets less with m and what rises
# gets more, so the best m is found by halving; those with a better bound than its value are tried.


def _terms(sides: Unassigned, joined: int) -> tuple[float, FloatArray]:
    """Alpha and beta, of which the gap is made."""
    first = sides.first[-1] + joined
    second = sides.second[-1] + sides.unknown[-1] - joined
    return 1.0 / first + 1.0 / second, (sides.second + sides.unknown) / second - sides.first / first


def _falls_and_rises(sides: Unassigned, joined: int) -> tuple[float, float]:
    """What the largest gap is at least since beta falls, and since it rises."""
    alpha, beta = _terms(sides, joined)
    left = beta - alpha * sides.unknown  # where all of the unknown up to there join
    beta, left = beta[:-1], left[:-1]  # at the last knot the gap is 0
    if not beta.size:
        return 0.0, 0.0
    falls = np.maximum.accumulate(beta)[:-1] - beta[1:]
    rises = left[1:] - np.minimum.accumulate(left)[:-1]
    fall = max(-beta.min(), beta.max() - alpha * joined, 0.5 * falls.max(initial=0.0))
    rise = max(left.max(), -left.min() - alpha * (sides.unknown[-1] - joined), 0.5 * rises.max(initial=0.0))
    return max(float(fall), 0.0), max(float(rise), 0.0)


def _smallest_gap(sides: Unassigned) -> tuple[float, bool]:
    """The smallest MCDP(0) over all assignments; or a bound, not exact, where too many would be tried."""
    everybody = int(sides.unknown[-1])

    def ends(joined: int) -> tuple[float, float]:
        return _falls_and_rises(sides, joined)

    turn = _first(lambda joined: ends(joined)[0] <= ends(joined)[1], everybody)
    bound, start = min((max(ends(joined)), joined) for joined in {max(turn - 1, 0), min(turn, everybody)})
    value = _smallest_gap_of(sides, start)
    lower = _first(lambda joined: ends(joined)[0] < value - _ROUNDING, everybody)
    upper = _first(lambda joined: ends(joined)[1] >= value - _ROUNDING, everybody)
    if upper - lower > _MOST_TRIED:
        return bound, False
    for joined in range(lower, upper):
        if _path(sides, joined, value - _ROUNDING) is not None:
            value = _smallest_gap_of(sides, joined)
    return value, True


def _smallest_gap_of(sides: Unassigned, joined: int) -> float:
    """The smallest MCDP(0) where so many join the first group."""
    low = max(_falls_and_rises(sides, joined))
    high = low + _terms(sides, joined)[0]  # enough to round every number of the best path down
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _path(sides, joined, middle) is not None else (middle, high)
    path = _path(sides, joined, high)
    assert path is not None
    first, second = sides.first + path, sides.second + sides.unknown - path
    return float(np.abs(gap_between(first, second, first[-1], second[-1])).max())


def _path(sides: Unassigned, joined: int, most: float) -> IntArray | None:
    """How many of the unknown up to each knot join so that the gap is nowhere larger; None if none."""
    alpha, beta = _terms(sides, joined)
    unknown = sides.unknown
    least = np.ceil((beta - most) / alpha - 1e-9).astype(np.int64)
    greatest = np.floor((beta + most) / alpha + 1e-9).astype(np.int64)
    least = np.maximum(least, np.maximum(0, joined - (unknown[-1] - unknown)))
    greatest = np.minimum(greatest, np.minimum(unknown, joined))
    reached = np.maximum.accumulate(least)
    if np.any(reached > unknown + np.minimum.accumulate(greatest - unknown)):
        return None
    return np.asarray(unknown + np.maximum.accumulate((reached - unknown)[::-1])[::-1])


def _first(holds: Callable[[int], bool], last: int) -> int:
    """The first number from 0 on for which something holds, as it does for all more; last + 1 if for none."""
    low, high = -1, last + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# How few people, in the wrong group or without one, could change whether MCDP(0) is within a bound.
#
# A threshold and a direction say who must move for the gap there to grow: people at or below it into the
# first group, people above it into the second. The best way to share a number of moves between the two is
# found at an end, or by thirds where the gap is concave.


def _best_shares(sides: Unassigned, moves: int, *, wrong: bool, passes: bool) -> FloatArray:
    """The largest gap at each knot after so many moves, of people in the wrong group or without one."""
    first, second, unknown = sides.first, sides.second, sides.unknown
    below, above = (second, first[-1] - first) if wrong else (unknown, unknown[-1] - unknown)
    total = np.minimum(moves, below + above)

    def gaps(at_or_below: IntArray) -> FloatArray:
        others = total - at_or_below
        in_first, in_second = (
            first[-1] + at_or_below - wrong * others,
            second[-1] + others - wrong * at_or_below,
        )
        gap = (first + at_or_below) / np.maximum(in_first, 1)
        gap = gap - (second - wrong * at_or_below) / np.maximum(in_second, 1)
        # A group that lost everybody exceeds no bound; it may count as within one, which is a bound only.
        return np.where((in_first > 0) & (in_second > 0) | (not passes), gap, -1.0)

    low, high = np.maximum(total - above, 0), np.minimum(total, below)
    best = np.maximum(gaps(low), gaps(high))
    while np.any(high - low > 2):
        third = (high - low) // 3
        rises = gaps(low + third) < gaps(high - third)
        low, high = np.where(rises, low + third, low), np.where(rises, high, high - third)
    for step in range(3):
        best = np.maximum(best, gaps(np.minimum(low + step, high)))
    return best


def fewest_moves(sides: Unassigned, max_mcdp: float, *, wrong: bool, passes: bool) -> float:
    """The fewest moves that take MCDP(0) of a pair above a bound, or, at the least, within it.

    To exceed a bound, one threshold is enough. To come within it, every threshold must: each says how many
    moves it takes there, and all together may take more. Infinite where there are not enough people to move.
    """

    def fewest(way: Unassigned) -> float:
        def changes(moves: int) -> bool:
            best = _best_shares(way, moves, wrong=wrong, passes=passes)
            return not within_bound(best.max(), max_mcdp) if passes else within_bound(-best.min(), max_mcdp)

        most = int((way.second + way.first[-1] - way.first).max() if wrong else way.unknown[-1])
        moves = _first(changes, most)
        return moves if moves <= most else np.inf

    return (min if passes else max)(fewest(way) for way in (sides, sides.swapped))


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
        What MCDP lies between, whichever way the others are assigned.
    low_exact, high_exact : bool
        Whether an assignment attains it; else it is a bound that holds, and the true one may lie inside.

    Examples
    --------
    >>> ends = {"low": 0.5, "low_exact": True, "high": 0.75, "high_exact": False}
    >>> print(GroupBounds(epsilon=0.1, estimate=0.6, **ends).sentence)
    Whatever the unknown groups are, MCDP(0.1) is at least 50.00% and at most 75.00%.
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
    exact : bool
        Whether so many are enough, as they are where the verdict passes; else at least so many are needed.

    Examples
    --------
    >>> change = {"wrong": 1, "known": 5, "added": None, "unknown": 0}
    >>> print(*Breakdown(max_mcdp=0.5, passes=True, exact=True, **change).sentences)
    1 wrong group among the 5 known ones (20.00%) could change the verdict.
    """

    max_mcdp: float
    passes: bool
    wrong: int | None
    known: int
    added: int | None
    unknown: int
    exact: bool

    @property
    def sentences(self) -> tuple[str, ...]:
        """The breakdown point in words."""
        sentences = []
        if self.unknown:
            how = f"not even all {self.unknown:,} people without a group could change that"
            if self.added is not None:
                few = f"{self.added:,} of the {self.unknown:,} people without a group"
                how = self._change("that", few, self.added / self.unknown)
            verdict = "within" if self.passes else "above"
            sentences.append(f"MCDP(0) of the known groups is {verdict} {percent(self.max_mcdp)}; {how}.")
        if self.wrong is not None:
            few = f"{self.wrong:,} wrong group{'s' * (self.wrong != 1)} among the {self.known:,} known ones"
            sentences.append(f"{capitalised(self._change('the verdict', few, self.wrong / self.known))}.")
        return tuple(sentences)

    def _change(self, what: str, few: str, share: float) -> str:
        """How few groups change the verdict, in words."""
        needed = f"{few} ({percent(share)})"
        if self.exact:
            return f"{needed} could change {what}"
        return f"it would take at least {needed} to change {what}"


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
    >>> UnknownGroups(unknown=1, known=5, bounds=(), sides=())
    UnknownGroups(unknown=1, known=5, bounds=())
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
        bound = as_fraction(max_mcdp, "max_mcdp")
        pairs = [pair for stratum in self.sides for pair in stratum]
        if not all(pair.whole for pair in pairs):
            raise ValueError("the breakdown point needs rows that all weigh 1")
        two = all(len(stratum) == 1 for stratum in self.sides)
        passes = all(within_bound(pair.known_gap, bound) for pair in pairs)

        def fewest(*, wrong: bool) -> int | None:
            # To pass, every label must come within the bound; of its pairs, the worst.
            moves = [
                [fewest_moves(pair, bound, wrong=wrong, passes=passes) for pair in stratum]
                for stratum in self.sides
            ]
            number = min(map(min, moves)) if passes else sum(map(max, moves))
            return int(number) if np.isfinite(number) else None

        return Breakdown(
            max_mcdp=bound,
            passes=passes,
            wrong=fewest(wrong=True) if two else None,
            known=self.known,
            added=fewest(wrong=False),
            unknown=self.unknown,
            exact=passes,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the bounds as plain dictionaries and lists."""
        return {
            "unknown": self.unknown,
            "known": self.known,
            "bounds": [vars(bounds) | {"sentence": bounds.sentence} for bounds in self.bounds],
        }


def unknown_groups(
    data: Data,
    *,
    epsilon: float | Sequence[float] | FloatArray = 0.0,
    criterion: Criterion = "demographic_parity",
    min_group_size: int = 1,
) -> UnknownGroups:
    """What MCDP(epsilon) lies between, over all ways to assign people whose group is not known.

    Nothing is assumed of the people without a group. The largest MCDP is exact at epsilon 0; so is the
    smallest between two groups where every row weighs 1. With weights parts of a row are assigned, and with
    more than two groups an unknown person may be of neither of a pair: the smallest is a bound then. Above
    epsilon 0 both ends are bounds that hold for every assignment, from what each threshold by itself allows.
    `low_exact` and `high_exact` say which.

    Parameters
    ----------
    data : Predictions or ScoreCounts
        The people; ``Predictions.from_arrays(..., missing_values=())`` keeps those without a group.
    epsilon : float or sequence of float
        The half-width of the windows, as a fraction of the score range.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
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
    >>> rows = lp.Predictions.from_arrays(None, scores, sensitive_features=sex, missing_values=())
    >>> result = lp.unknown_groups(rows)
    >>> print(result.bounds[0].sentence)
    Whatever the unknown groups are, MCDP(0) is between 50.00% and 66.67%.
    >>> breakdown = result.breakdown(0.5)
    >>> breakdown.passes, breakdown.wrong, breakdown.added
    (False, 1, 1)
    """
    comparison = Comparison(criterion, min_group_size=min_group_size)
    counts = as_counts(checked_data(data, comparison, unknown=True))
    return bounds_of(counts, comparison, np.atleast_1d(as_epsilons(epsilon)))


def bounds_of(counts: ScoreCounts, comparison: Comparison, epsilons: FloatArray) -> UnknownGroups:
    """The bounds of counts, some of whose people are of unknown group."""
    if counts.rank_error > 0.0:
        raise InputError(
            "must have every score for what unknown groups could change; there are too many distinct "
            "scores: round them",
            argument="data",
        )
    known = counts.without([group for group in counts.groups if lacks_group(group)])
    estimates = np.max([curve.mcdp_at(epsilons) for curve in gap_curves(known, comparison)], axis=0)
    sides, n_unknown, n_known = [], 0, 0
    for label, stratum in strata_of(known, comparison).items():
        unknown = Atoms.join(
            atoms for (group, of), atoms in counts.atoms.items() if lacks_group(group) and label in (None, of)
        )
        neither = len(stratum) > 2
        pairs = combinations(stratum.values(), 2)
        sides.append(tuple(Unassigned.of((a, b, unknown), counts, neither=neither) for a, b in pairs))
        n_unknown += unknown.size
        n_known += sum(atoms.size for atoms in stratum.values())
    of_all = [pair for stratum in sides for pair in stratum]
    smallest, exact = (
        np.stack(parts) for parts in zip(*(pair.smallest(epsilons) for pair in of_all), strict=True)
    )
    lows, highs = smallest.max(axis=0), np.max([pair.largest(epsilons) for pair in of_all], axis=0)
    # Where a bound is not exact it may hide a pair that is worse.
    low_exact, high_exact = exact.all(axis=0) | (lows == highs), (epsilons <= 0.0) | (lows == highs)
    bounds = tuple(
        GroupBounds(
            epsilon=float(epsilon),
            estimate=float(estimates[at]),
            low=float(lows[at]),
            high=float(highs[at]),
            low_exact=bool(low_exact[at]),
            high_exact=bool(high_exact[at]),
        )
        for at, epsilon in enumerate(epsilons)
    )
    return UnknownGroups(unknown=n_unknown, known=n_known, bounds=bounds, sides=tuple(sides))
