"""From predictions or counts to the gap curves that every metric works on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, IntArray, ScoreRange
from localparity._validation import unknown_name
from localparity.counts._comparison import EVERYONE, Comparison
from localparity.counts._inputs import Data, as_counts, as_data
from localparity.counts._kernels import merge_scores
from localparity.counts._score_counts import ScoreCounts, Stratum, strata_of, with_everyone
from localparity.metrics._envelope import CellGaps
from localparity.metrics._gap_curve import GapCurve
from localparity.metrics._sorted_rows import SortedRows
from localparity.predictions import Predictions

Pair = tuple[Group, Group]

_MOST_KEPT = 64
_MOST_KNOTS = 2**23
_kept: WeakKeyDictionary[ScoreCounts, dict[tuple[Pair, int | None], GapCurve]] = WeakKeyDictionary()
"""The first curves of counts, unless they are large, so that an audit and its page, say, share them."""


def gap_curves(data: Data, comparison: Comparison) -> list[GapCurve]:
    """The curves of all pairs that are compared."""
    return list(each_gap_curve(data, comparison))


def each_gap_curve(data: Data, comparison: Comparison) -> Iterator[GapCurve]:
    """The curves of all pairs that are compared, one at a time where there are too many to keep."""
    if isinstance(data, Predictions) and data.exchangeable:
        for rows in SortedRows.strata(data, comparison):
            yield from map(rows.curve, comparison.pair_places(data.groups))
        return
    counts = as_counts(data)
    if len(counts.groups) < 2:
        named = ", ".join(map(repr, counts.groups)) or "none"
        raise ValueError(f"at least two groups are needed, got {named}")
    for label, stratum in strata_of(counts, comparison).items():
        sides = with_everyone(stratum) if comparison.compare == "to_overall" else stratum
        for pair in comparison.pairs(list(stratum)):
            yield curve_between(counts, sides, pair, label)


def input_curves(
    comparison: Comparison,
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None,
    sensitive_features: Groups | None,
    **options: Any,
) -> list[GapCurve]:
    """The curves of all pairs of what a metric was given; options as in `as_data`."""
    return gap_curves(as_data(comparison, y_true, y_score, sensitive_features, **options), comparison)


def curve_between(counts: ScoreCounts, sides: Stratum, pair: Pair, label: int | None) -> GapCurve:
    """The curve of a pair of the groups of a stratum."""
    kept = _kept.setdefault(counts, {})
    if (pair, label) not in kept:
        curve = _merge_sides(counts, sides, pair, label)
        if len(kept) >= _MOST_KEPT or sum(other.knots.size for other in kept.values()) >= _MOST_KNOTS:
            return curve
        kept[pair, label] = curve
    return kept[pair, label]


def _merge_sides(counts: ScoreCounts, sides: Stratum, pair: Pair, label: int | None) -> GapCurve:
    first, second = (sides[group] for group in pair)
    knots, in_first, in_second = merge_scores(first.scores, second.scores)
    below_first, below_second = first.below(), second.below()

    def gap(at_first: IntArray, at_second: IntArray) -> FloatArray:
        ends = below_first[-1], below_second[-1]
        return gap_between(below_first[at_first], below_second[at_second], *ends)

    known_below = None
    if counts.cells is not None:
        before_first, before_second = (np.append(0, places[:-1]) for places in (in_first, in_second))
        least, most = gap(before_first, in_second), gap(in_first, before_second)
        known_below = CellGaps(counts.cells.lows_of(knots), least, most)
    return GapCurve(
        knots,
        gap(in_first, in_second),
        pair,
        (first.effective_size, second.effective_size),
        label=label,
        score_range=counts.score_range,
        resolution=counts.resolution,
        rank_error=counts.rank_error,
        cells=known_below,
        exchangeable=counts.exchangeable,
        ends_known=counts.ends_known,
    )


def gap_between(first: NDArray[Any], second: NDArray[Any], in_first: Any, in_second: Any) -> FloatArray:
    """The signed gap, given the weight of two groups below each knot and in all."""
    size = float(in_first) * float(in_second)
    if first.dtype.kind == second.dtype.kind == "i" and size < 2.0**62:
        # Whole numbers over one denominator: equal gaps are equal floats.
        gap = np.asarray((first * in_second - second * in_first) / size)
    else:
        gap = np.asarray(first / in_first - second / in_second, dtype=np.float64)
    if not np.abs(gap).max(initial=0.0) <= 1.0:
        raise AssertionError(f"a gap must be between -1 and 1, got {np.abs(gap).max()}")
    return gap


def gap_curve(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    groups: tuple[Group, Group] | None = None,
    criterion: Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
) -> GapCurve:
    """The signed gap F_a - F_b between two groups' cumulative distributions.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1; None where the criterion does not need them. Predictions or ScoreCounts stand for all
        of the arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    groups : tuple, optional
        The pair (a, b), of which b may be ``"everyone"``. With two groups it may be left out.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1) or
        "predictive_equality" (label 0).
    sample_weight : array-like, optional
        Weights that are not negative.
    score_range : tuple of float
        The lowest and the highest score there can be.
    min_group_size : int
        A group with fewer rows among the people compared is an error.

    Returns
    -------
    GapCurve
        Its knots are in the scores' own units.

    Examples
    --------
    >>> import localparity as lp
    >>> sex = ["f", "f", "m", "m"]
    >>> lp.gap_curve(None, [0.2, 0.4, 0.4, 0.8], sensitive_features=sex, groups=("f", "m")).gap
    array([0.5, 0.5, 0. ])
    """
    comparison = Comparison(criterion, min_group_size=min_group_size)
    data = as_data(
        comparison, y_true, y_score, sensitive_features, sample_weight=sample_weight, score_range=score_range
    )
    counts = as_counts(data)
    if groups is None and len(counts.groups) > 2:
        raise ValueError(f"groups must be a pair of the {len(counts.groups)} groups, got None")
    return curve_of_pair(counts, counts.groups if groups is None else groups, comparison)


def curve_of_pair(counts: ScoreCounts, pair: tuple[Group, ...], comparison: Comparison) -> GapCurve:
    """The curve of one pair of groups, under the one label that a criterion compares."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise ValueError(f"groups must be a pair (a, b), got {pair!r}")
    strata = strata_of(counts, comparison)
    if len(strata) > 1:
        raise ValueError(
            f"criterion={comparison.criterion!r} compares two labels and has no single curve; "
            "use 'equal_opportunity' or 'predictive_equality'"
        )
    ((label, sides),) = strata.items()
    if EVERYONE in pair:
        sides = with_everyone(sides)
        pair = (pair[0], EVERYONE) if pair[1] == EVERYONE else (EVERYONE, pair[1])
    for group in pair:
        if group not in sides:
            raise unknown_name("group", group, sides)
    return curve_between(counts, sides, pair, label)
