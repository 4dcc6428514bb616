"""A sensitive feature that is a number: the worst split of it, and whether chance could have made it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from localparity._types import Criterion, FloatArray
from localparity._validation import (
    as_count,
    as_labels,
    as_number,
    as_numbers,
    as_score_range,
    as_scores,
    check_indexes,
    check_rows,
)
from localparity.counts._comparison import labels_of
from localparity.metrics._gap_curve import GapCurve
from localparity.metrics._gap_curves import gap_curve
from localparity.metrics._window import Window
from localparity.uncertainty._permutation import TestResult, p_value_of, summarise_null
from localparity.uncertainty._resampling import Draws, repeat
from localparity.uncertainty._splits import OrderedPeople


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
        The test against independence of the score and the feature, which counts in that the split was
        searched for; None without resamples.

    Examples
    --------
    >>> import localparity as lp
    >>> age, score = [20, 25, 30, 40, 50, 60], [0.3, 0.1, 0.2, 0.7, 0.6, 0.8]
    >>> found = lp.worst_split(None, score, sensitive_features=age, n_resamples=0)
    >>> found.split, found.mcdp, found.sizes
    (30.0, 1.0, (3, 3))
    >>> found.curve.mcdp(0.1)
    1.0
    """

    split: float
    mcdp: float
    sizes: tuple[int, int]
    window: Window
    curve: GapCurve
    test: TestResult | None

    @property
    def p_value(self) -> float:
        """How often independence would measure as much or more; nan where no test was made."""
        return math.nan if self.test is None else self.test.p_value


def worst_split(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    min_share: float = 0.1,
    criterion: Criterion = "demographic_parity",
    score_range: tuple[float, float] = (0.0, 1.0),
    n_resamples: int = 1000,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> WorstSplit:
    """The split of a sensitive feature that is a number, such as age, with the largest MCDP(0).

    All splits into people at or below a value and people above it are searched that leave enough people on
    either side, exactly and at the cost of a few dozen sorts of the scores. The p-value counts in the search:
    the feature is dealt to the people at random, among those of one label where the criterion looks at
    labels, and all splits are searched each time. For windows of half-width epsilon, see `curve` of the
    result, the gap at the worst split.

    Parameters
    ----------
    y_true : array-like or None
        Labels 0 and 1; None where the criterion does not need them.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like
        One number a row.
    min_share : float
        The least share of the people compared on either side, above 0 and at most one half.
    criterion : str
        Which people are compared, as in `mcdp`; with "equalized_odds" the worse of the two labels.
    score_range : tuple of float
        The lowest and the highest score there can be.
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
    >>> found = lp.worst_split(None, score, sensitive_features=age, n_resamples=99, random_state=0)
    >>> found.split, found.p_value
    (34.0, 0.01)
    >>> print(found.window.sentence)
    With a threshold from 0.28041 up to, but not including, 0.28042, people in <= 34 are at least 48.9
    points more likely to be at or below it than people in > 34.
    """
    strata = _strata(y_true, y_score, sensitive_features, min_share, criterion, score_range)
    n_resamples = as_count(n_resamples, "n_resamples", at_least=0)
    people = [OrderedPeople.of_rows(scores, feature, least) for _, scores, feature, least in strata]
    for (label, _, feature, least), found in zip(strata, people, strict=True):
        _check_splits(label, feature, least, found)
    worst = [found.worst_split() for found in people]
    place = int(np.argmax([gap for _, gap in worst]))
    label, scores, feature, _ = strata[place]
    size = worst[place][0]
    split = float(people[place].values[np.searchsorted(people[place].ends, size)])
    curve = _curve(scores, feature, split, label, score_range)
    test = None
    if n_resamples:

        def deal(stream: np.random.Generator) -> float:
            return max(found.worst_split(stream.permutation(found.places.size))[1] for found in people)

        null = repeat(deal, Draws(n_resamples, random_state, n_jobs))[:, 0]
        test = summarise_null(worst[place][1], p_value_of(worst[place][1], null), null)
    sizes = (size, feature.size - size)
    return WorstSplit(split, curve.mcdp(), sizes, curve.worst_window(), curve, test)


Stratum = tuple[int | None, FloatArray, FloatArray, int]
"""The people compared: their label, scores and feature, and how many must be on either side."""


def _strata(
    y_true: Any, y_score: Any, sensitive_features: Any, min_share: Any, criterion: str, score_range: Any
) -> list[Stratum]:
    """The people of each label that the criterion compares."""
    check_indexes({"y_true": y_true, "y_score": y_score, "sensitive_features": sensitive_features})
    scores = as_scores(y_score, as_score_range(score_range)).values
    feature = as_numbers(sensitive_features, "sensitive_features")
    check_rows("sensitive_features", feature.size, scores.size)
    share = as_number(min_share, "min_share")
    if not 0.0 < share <= 0.5:
        raise ValueError(f"min_share must be > 0 and <= 0.5, got {share:g}")
    wanted = labels_of(criterion)
    if wanted == (None,):
        return [(None, scores, feature, max(1, math.ceil(share * scores.size)))]
    if y_true is None:
        raise ValueError(f"y_true is None where criterion={criterion!r} needs labels 0 and 1")
    labels = as_labels(y_true, scores.size)
    members = {label: labels == label for label in wanted}
    for label, among in members.items():
        if not among.any():
            raise ValueError(f"no row has y_true = {label}, so there is nobody to compare")
    return [
        (label, scores[among], feature[among], max(1, math.ceil(share * np.count_nonzero(among))))
        for label, among in members.items()
    ]


def _check_splits(label: int | None, feature: FloatArray, least: int, people: OrderedPeople) -> None:
    if people.splits.size:
        return
    among = "" if label is None else f" with y_true = {label}"
    raise ValueError(
        f"sensitive_features has {people.values.size} different values among {feature.size} rows{among}, "
        f"none of which has min_share of them, {least} rows, both at or below it and above it; "
        "lower min_share"
    )


def _curve(
    scores: FloatArray, feature: FloatArray, split: float, label: int | None, score_range: Any
) -> GapCurve:
    number = f"{split:g}"
    if float(number) != split:
        number = repr(split).removesuffix(".0")
    low, high = f"<= {number}", f"> {number}"
    sides = np.where(feature <= split, low, high)
    curve = gap_curve(
        None, scores, sensitive_features=sides, groups=(low, high), score_range=as_score_range(score_range)
    )
    return replace(curve, label=label)
