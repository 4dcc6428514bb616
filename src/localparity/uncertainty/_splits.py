"""A sensitive feature that is a number: the worst split of it, and whether chance could have made it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from localparity._types import ArrayLike, Criterion, FloatArray, IntArray, ScoreRange, Seed
from localparity._validation import InputError, as_count, as_numbers, check_rows, setting
from localparity.counts import Comparison
from localparity.counts._rows import places_of, sort_rows
from localparity.counts._score_counts import checked_data
from localparity.metrics._gap_curve import GapCurve, gap_curve
from localparity.metrics._profile import Window
from localparity.predictions import Predictions, check_predictions
from localparity.uncertainty._kernels import widest_split
from localparity.uncertainty._permutation import TestResult, p_value_of, summarise_null
from localparity.uncertainty._resampling import Draws, repeat


class OrderedPeople:
    """The people of a label, or everyone, in the order of a feature; splits have `least` on either side."""

    def __init__(
        self, scores: NDArray[np.floating], feature: FloatArray, least: int, label: int | None = None
    ) -> None:
        self.scores, self.feature, self.least, self.label = scores, feature, least, label
        places, _, rows = places_of(scores)
        _, self.places = sort_rows(feature, places)  # among the distinct scores, in the order of the feature
        self.totals = np.cumsum(rows)  # how many people are at or below each distinct score
        _, self.values, with_value = places_of(feature)
        self.ends = np.cumsum(with_value)  # how many people are at or below each distinct value

    @property
    def splits(self) -> FloatArray:
        """The values of the feature with enough people at or below, and enough above."""
        enough = (self.ends >= self.least) & (self.places.size - self.ends >= self.least)
        return np.asarray(self.values[enough])

    def worst_split(self, order: IntArray | None = None) -> tuple[int, float]:
        """How many people the worst split has on its low side, and MCDP(0), the scores dealt in an order."""
        return self._search(order, 1.0)

    def clearest_split(self, order: IntArray | None = None) -> tuple[int, float]:
        """The same for the largest MCDP(0) studentised by the sizes of the sides."""
        size, gap = self._search(order, 0.5)
        return size, gap / math.sqrt(self.places.size)

    def _search(self, order: IntArray | None, power: float) -> tuple[int, float]:
        places = self.places if order is None else self.places[order]
        enough_above = self.ends <= self.places.size - self.least
        size, gap = widest_split(places, self.totals, self.ends[enough_above], self.least, power)
        return int(size), float(gap)

    def split_at(self, size: int, score_range: ScoreRange, null: FloatArray | None) -> WorstSplit:
        """The split into the `size` people lowest in the feature and the others.

        `null` has, for each resample, the largest gap of all splits, and the largest studentised.
        """
        split, people = float(self.values[np.searchsorted(self.ends, size)]), self.places.size
        number = f"{split:g}"
        if float(number) != split:
            number = repr(split).removesuffix(".0")
        low, high = f"<= {number}", f"> {number}"
        sides = np.where(self.feature <= split, low, high)
        rows = check_predictions(None, self.scores, sides, score_range=score_range)
        curve = replace(gap_curve(rows, groups=(low, high)), label=self.label)
        mcdp, test = curve.mcdp(), None
        if null is not None:
            studentised = float(mcdp * np.sqrt(size * (people - size) / people))
            test = summarise_null(mcdp, p_value_of(studentised, null[:, 1]), null[:, 0])
        return WorstSplit(split, mcdp, (size, people - size), curve.worst_window(), curve, test, self.least)


@dataclass(frozen=True)
class WorstSplit:
    """Where a split of a sensitive feature parts two groups of people whose scores differ most.

    Attributes
    ----------
    split : float
        People at or below this value of the feature are compared with those above it.
    mcdp : float
        MCDP(0) between the two.
    sizes : tuple of int
        How many people are at or below, and how many above.
    window : Window
        Where the disparity sits, and for whom.
    curve : GapCurve
        The gap between the two: `curve.mcdp(epsilon)`, `curve.profile()`.
    test : TestResult or None
        The test against independence of the score and the feature, which allows for the search for
        the split; None without resamples.
    least : int
        How many people a split had to leave on either side to be searched.
    clearest : WorstSplit or None
        The split whose MCDP(0) stands out most from chance, studentised by the sizes of its sides; None where
        it is this one.

    Examples
    --------
    >>> import localparity as lp
    >>> age, score = [20, 25, 30, 40, 50, 60], [0.3, 0.1, 0.2, 0.7, 0.6, 0.8]
    >>> rows = lp.Predictions.from_arrays(None, score, sensitive_features=age)
    >>> worst = lp.worst_split(rows, min_group_size=2, n_resamples=0)
    >>> worst.split, worst.mcdp, worst.sizes
    (30.0, 1.0, (3, 3))
    >>> worst.curve.mcdp(0.1)
    1.0
    """

    split: float
    mcdp: float
    sizes: tuple[int, int]
    window: Window
    curve: GapCurve
    test: TestResult | None
    least: int
    clearest: WorstSplit | None = None

    @property
    def p_value(self) -> float:
        """How often independence would give some split as large a studentised gap; nan without a test."""
        return math.nan if self.test is None else self.test.p_value


def worst_split(
    data: Predictions,
    feature: ArrayLike | None = None,
    *,
    criterion: Criterion = "demographic_parity",
    min_group_size: int = 10,
    n_resamples: int = 1000,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> WorstSplit:
    """The split of a sensitive feature that is a number, such as age, with the largest MCDP(0).

    All splits into people at or below a value and people above it that leave enough people on either side are
    searched, exactly and at the cost of a few dozen sorts of the scores. The p-value counts in the search:
    the feature is dealt to the people at random, among those of one label where the criterion looks at
    labels, and all splits are searched for the largest studentised gap. A side of few people has a large MCDP
    by chance: see `clearest`. For windows of half-width epsilon, see `curve` of the result.

    Parameters
    ----------
    data : Predictions
        The people, as `Predictions.from_arrays` makes them, without weights.
    feature : array-like of shape (n_samples,), optional
        Numbers, such as ages; by default the groups of `data`, which are numbers then.
    criterion : str
        Which people are compared, as in `mcdp`; with "equalized_odds" the worse of the two labels.
    min_group_size : int
        The fewest of the people compared on either side.
    n_resamples : int
        How many permutations the test draws; 0 leaves it out.
    random_state : int, Generator or None
        The same seed gives the same result.
    n_jobs : int, optional
        How many permutations run at a time, -1 for as many as there are cores.

    Returns
    -------
    WorstSplit
        The split, its MCDP(0), its window and its test.

    Examples
    --------
    >>> import numpy as np
    >>> import localparity as lp
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(18, 80, 2000)
    >>> score = rng.beta(2, 4, 2000) * np.where(age < 35, 0.5, 1.0)
    >>> rows = lp.Predictions.from_arrays(None, score, sensitive_features=age)
    >>> worst = lp.worst_split(rows, min_group_size=100, n_resamples=99, random_state=0)
    >>> worst.split, worst.p_value, worst.clearest is None
    (34.0, 0.01, True)
    >>> print(worst.window.sentence)
    At a cutoff of 0.28041, people of group > 34 are at least 48 points more likely than people of group <= 34
    to score above it.
    """
    comparison = Comparison(criterion, min_group_size=min_group_size)
    if not isinstance(data, Predictions):
        raise InputError(f"must be Predictions, got {type(data).__name__}", argument="data")
    if data.weights is not None:
        raise InputError("must have rows of equal weight, got weights", argument="data")
    checked_data(data, comparison)
    if feature is None:
        numbers = as_numbers(np.asarray(data.groups)[data.group_codes], "sensitive_features")
    else:
        numbers = as_numbers(feature, "feature")
        check_rows("feature", numbers.size, len(data))
    strata = _strata(data, numbers, comparison)
    worst = [people.worst_split() for people in strata]
    clearest = [people.clearest_split() for people in strata]
    null = None
    if as_count(n_resamples, "n_resamples", at_least=0):

        def deal(stream: np.random.Generator) -> FloatArray:
            orders = [stream.permutation(people.places.size) for people in strata]
            gaps = [
                (people.worst_split(order)[1], people.clearest_split(order)[1])
                for people, order in zip(strata, orders, strict=True)
            ]
            return np.asarray(np.max(gaps, axis=0))

        null = repeat(deal, Draws(n_resamples, random_state, n_jobs), 2)
    index = int(np.argmax([gap for _, gap in worst]))
    split = strata[index].split_at(worst[index][0], data.score_range, null)
    surest = int(np.argmax([gap for _, gap in clearest]))
    if (surest, clearest[surest][0]) == (index, worst[index][0]):
        return split
    return replace(split, clearest=strata[surest].split_at(clearest[surest][0], data.score_range, null))


def _strata(data: Predictions, feature: FloatArray, comparison: Comparison) -> list[OrderedPeople]:
    """The people of each label that is compared, in the order of the feature."""
    strata, least = [], comparison.min_group_size
    for label in comparison.labels:
        who = "" if label is None else f" with y_true = {label}"
        among = np.ones(len(data), dtype=bool) if label is None else np.asarray(data.labels == label)
        if not among.any():
            raise InputError(f"must have a row of each label compared, got no rows{who}", "y_true")
        people = OrderedPeople(data.scores[among], feature[among], least, label)
        if not people.splits.size:
            raise InputError(
                f"no split of the feature leaves {least} of {np.count_nonzero(among)} rows{who} on either "
                f"side; lower {setting('min_group_size')}"
            )
        strata.append(people)
    return strata
