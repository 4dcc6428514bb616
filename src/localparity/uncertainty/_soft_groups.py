"""Groups that are only known as probabilities, from surnames, geography or a model.

Counting every person in each group with their probability is right where groups and scores are independent
among people of the same probabilities. Else the scores of a group among such people may be the lowest of
them, the highest, or anything between: the bounds of Frechet, at every threshold those of one assignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from localparity._text import percent
from localparity._types import ArrayLike, FloatArray, Group, IntArray, ScoreRange, Seed
from localparity._validation import (
    InputError,
    as_epsilons,
    as_groups,
    as_numbers,
    as_probability,
    as_score_range,
    as_scores,
    check_rows,
    group_columns,
)
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import ScoreCounts
from localparity.metrics._gap_curve import Interval, gap_curves, units_of
from localparity.metrics._profile import mcdp_of
from localparity.predictions import Predictions
from localparity.uncertainty._bands import band_radii
from localparity.uncertainty._intervals import band_intervals, measured_pair, worst_intervals
from localparity.uncertainty._resampling import Draws

_SUM = 1e-6
_FEWEST_ALIKE = 5.0


@dataclass(frozen=True, kw_only=True)
class SoftBounds:
    """MCDP(epsilon) of the worst pair of groups that are known as probabilities.

    Attributes
    ----------
    epsilon : float
        The half-width of the windows.
    interval : Interval
        MCDP of the people counted with their probabilities, and an interval for it in the population; both
        assume that the probabilities are right, and that groups and scores are independent among people of
        the same ones.
    low, high : float
        What MCDP of these people lies between without that assumption, whoever is in which group, as long as
        the groups' shares among people of the same probabilities are exactly these.

    Examples
    --------
    >>> import localparity as lp
    >>> scores = [0.1, 0.2, 0.3, 0.4, 0.5] * 4
    >>> half = {"a": [0.5] * 20, "b": [0.5] * 20}
    >>> found = lp.soft_groups(scores, group_probabilities=half, random_state=0).bounds[0]
    >>> found.interval.estimate, found.low, found.high
    (0.0, 0.0, 0.8)
    """

    epsilon: float
    interval: Interval
    low: float
    high: float

    @property
    def sentence(self) -> str:
        """The estimate and the bounds in words."""
        at = f"MCDP({self.epsilon:g})"
        return (
            f"Counted with their probabilities, {at} is {percent(self.interval.estimate)}; between "
            f"{percent(self.low)} and {percent(self.high)} if the probabilities are the groups' shares among "
            "people who are alike."
        )


@dataclass(frozen=True, kw_only=True)
class SoftGroups:
    """Groups that are known as probabilities.

    Attributes
    ----------
    groups : tuple
        The groups.
    shares : tuple of float
        The share of each among the people.
    alike : int
        How many sets of people there are, each of the same probabilities.
    bounds : tuple of SoftBounds
        MCDP at each epsilon.

    Examples
    --------
    >>> import localparity as lp
    >>> scores = [0.1, 0.2, 0.3, 0.4, 0.5] * 4
    >>> likely = {"a": [0.9] * 10 + [0.1] * 10, "b": [0.1] * 10 + [0.9] * 10}
    >>> lp.soft_groups(scores, group_probabilities=likely, random_state=0).alike
    2
    """

    groups: tuple[Group, ...]
    shares: tuple[float, ...]
    alike: int
    bounds: tuple[SoftBounds, ...]


def soft_groups(
    y_score: ArrayLike,
    *,
    group_probabilities: Any,
    proxies: ArrayLike | None = None,
    epsilon: float | Sequence[float] | FloatArray = 0.0,
    score_range: ScoreRange = (0.0, 1.0),
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> SoftGroups:
    """MCDP between groups of which only each person's probabilities are known: an estimate, and bounds.

    The bounds take the probabilities as exact shares of the groups among people of the same ones. The largest
    MCDP is attained, unless so many people share a score that the gap could jump from one sign to the other;
    the smallest is what every threshold by itself says, and may be larger. The interval is that of the
    bootstrap, with everyone counted in each group with their probability. It does not allow for probabilities
    that are wrong: where they are drawn towards one half, groups look closer to each other than they are.

    Parameters
    ----------
    y_score : array-like
        Scores inside `score_range`.
    group_probabilities : array-like of shape (rows, groups), data frame or mapping of columns
        The probability of each group (columns) for each person (rows), which add up to 1.
    proxies : array-like, optional
        What the probabilities were taken from, such as surname and place: the same value for people who are
        alike. By default those with the same probabilities are.
    epsilon : float or sequence of float
        The half-width of the windows, as a fraction of the score range.
    score_range : tuple of float
        The lowest and the highest score there can be.
    confidence : float
        The probability with which the interval holds, in large samples.
    n_resamples : int
        How many resamples of the multiplier bootstrap the interval takes.
    random_state : int, Generator or None
        The same seed gives the same result.
    n_jobs : int, optional
        How many resamples run at a time, -1 for as many as there are cores.

    Returns
    -------
    SoftGroups

    Examples
    --------
    >>> import localparity as lp
    >>> scores = [0.1, 0.2, 0.3, 0.4, 0.5] * 4
    >>> likely = {"a": [0.9] * 10 + [0.1] * 10, "b": [0.1] * 10 + [0.9] * 10}
    >>> found = lp.soft_groups(scores, group_probabilities=likely, random_state=0)
    >>> print(found.bounds[0].sentence)
    Counted with their probabilities, MCDP(0) is 0.00%; between 0.00% and 20.00% if the probabilities are the
    groups' shares among people who are alike.
    """
    score_range = as_score_range(score_range)
    scores, resolution = as_scores(y_score, score_range)
    names, chances = _as_probabilities(group_probabilities, scores.size)
    sets = _alike(chances, proxies)
    people = _SoftPeople(scores.astype(np.float64), chances, sets, score_range, resolution)
    epsilons, confidence = np.atleast_1d(as_epsilons(epsilon)), as_probability(confidence)
    # Everyone is in each group that they may be of, weighing as much as that is likely, as a cluster.
    person, group = np.nonzero(chances)
    rows = Predictions.from_arrays(
        None,
        scores[person],
        sensitive_features=group,
        sample_weight=chances[person, group],
        cluster=person,
        score_range=score_range,
    )
    counts, comparison = ScoreCounts.from_predictions(rows), Comparison()
    pairs = [measured_pair(curve, epsilons) for curve in gap_curves(counts, comparison)]
    draws = Draws(n_resamples, random_state, n_jobs)
    radii = band_radii(counts, comparison, pairs, confidence=confidence, method="bootstrap", draws=draws)
    bounds = []
    intervals = worst_intervals(band_intervals(pairs, radii, confidence))
    for at, interval in zip(epsilons.tolist(), intervals, strict=True):
        ends = [people.ends(pair, at) for pair in combinations(range(len(names)), 2)]
        low, high = map(max, zip(*ends, strict=True))
        bounds.append(SoftBounds(epsilon=at, interval=interval, low=low, high=high))
    shares = tuple(chances.mean(axis=0).tolist())
    return SoftGroups(groups=names, shares=shares, alike=int(sets.max()) + 1, bounds=tuple(bounds))


def _as_probabilities(group_probabilities: Any, rows: int) -> tuple[tuple[Group, ...], FloatArray]:
    """The groups, and the probability of each for each person."""
    name, listed = "group_probabilities", isinstance(group_probabilities, list | tuple)
    columns = group_columns(np.asarray(group_probabilities) if listed else group_probabilities, name)
    if len(columns) < 2:
        raise InputError(f"must have a column for each of two groups or more, got {len(columns)}", name)
    for key, column in columns.items():
        columns[key] = as_numbers(column, f"{name}[{key!r}]")
        check_rows(f"{name}[{key!r}]", columns[key].size, rows)
    chances = np.column_stack(list(columns.values()))
    wrong = np.flatnonzero((chances.min(axis=1) < 0.0) | (np.abs(chances.sum(axis=1) - 1.0) > _SUM))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(f"must be >= 0 and add up to 1, got {chances[row].tolist()} at row {row}", name)
    if not chances.sum(axis=0).all():
        group = list(columns)[int(np.argmin(chances.sum(axis=0)))]
        raise InputError(f"must be > 0 in some row of group {group!r}, got 0 in all of them", name)
    return tuple(columns), chances


def _alike(chances: FloatArray, proxies: ArrayLike | None) -> IntArray:
    """The set of people each person is alike with."""
    if proxies is None:
        sets = np.unique(chances, axis=0, return_inverse=True)[1].ravel()
    else:
        rows = len(chances)
        sets = as_groups(proxies, rows, "proxies", at_least=1, at_most=rows).codes.astype(np.int64)
    if chances.shape[0] < _FEWEST_ALIKE * (sets.max() + 1):
        raise InputError(
            f"has {sets.max() + 1:,} different rows among {len(chances):,}, too many to "
            "say what they leave open; round them, or pass proxies with few values",
            "group_probabilities",
        )
    return np.asarray(sets)


class _SoftPeople:
    """People by score and by the set of those who are alike."""

    def __init__(
        self,
        scores: FloatArray,
        chances: FloatArray,
        sets: IntArray,
        score_range: ScoreRange,
        resolution: float,
    ) -> None:
        distinct, place = np.unique(scores, return_inverse=True)
        n_sets = int(sets.max()) + 1
        rows = np.bincount(sets * distinct.size + place, minlength=n_sets * distinct.size)
        # (sets, scores): how many people of each set have a score at or below each
        self._below = np.cumsum(rows.reshape(n_sets, distinct.size), axis=1).astype(np.float64)
        # for each group, how many people of each set are of it
        self._sizes = [np.bincount(sets, chance, minlength=n_sets) for chance in chances.T]
        self._knots = units_of(distinct, score_range, resolution)
        self._resolution, self._score_range = resolution, score_range

    def ends(self, pair: tuple[int, int], epsilon: float) -> tuple[float, float]:
        """What MCDP of a pair lies between."""
        (high_a, low_a), (high_b, low_b) = map(self._extremes, pair)
        most, least = high_a - low_b, low_a - high_b
        closest = np.maximum(np.maximum(least, -most), 0.0)
        high = max(self._mcdp(np.maximum(most, 0.0), epsilon), self._mcdp(np.maximum(-least, 0.0), epsilon))
        if epsilon > 0.0:
            half = 0.5 * max(map(self._most_at_a_score, pair))
            high = max(high, min(half, self._mcdp(np.maximum(most, -least), epsilon)))
        return self._mcdp(closest, epsilon), high

    def _extremes(self, group: int) -> tuple[FloatArray, FloatArray]:
        """The distribution of a group that has the lowest scores of each set, and with the highest."""
        sizes, above = self._sizes[group], self._below[:, -1:] - self._below
        highest = np.minimum(self._below, sizes[:, None]).sum(axis=0) / sizes.sum()
        return highest, np.maximum(sizes[:, None] - above, 0.0).sum(axis=0) / sizes.sum()

    def _most_at_a_score(self, group: int) -> float:
        """The largest share of a group that could have one score."""
        rows, sizes = np.diff(self._below, axis=1, prepend=0.0), self._sizes[group]
        return float((np.minimum(rows, sizes[:, None]).sum(axis=0) / sizes.sum()).max())

    def _mcdp(self, gap: FloatArray, epsilon: float) -> float:
        at = np.array([epsilon])
        return float(mcdp_of(self._knots, gap, at, self._resolution, self._score_range)[0])
