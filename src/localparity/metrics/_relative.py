"""Relative MCDP: the local disparity of selection ratios instead of selection rates, in both tails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args, overload

import numpy as np

from localparity._types import ArrayLike, Compare, Criterion, FloatArray, Group, Groups, HigherIs, ScoreRange
from localparity._validation import as_choice, as_epsilons, as_fraction
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import Comparison
from localparity.counts._inputs import Data, input_counts
from localparity.counts._score_counts import ScoreCounts, strata_of, with_everyone
from localparity.metrics._gap_curve import units_of
from localparity.metrics._profile import runs_of
from localparity.metrics._selection import Selection, quotients

Tail = Literal["both", "above", "below"]
MIN_RATE = 0.05


@overload
def relative_mcdp(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    epsilon: float = 0.0,
    tail: Tail = "both",
    min_rate: float = MIN_RATE,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
) -> float: ...


@overload
def relative_mcdp(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    epsilon: Sequence[float] | FloatArray,
    tail: Tail = "both",
    min_rate: float = MIN_RATE,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
) -> FloatArray: ...


def relative_mcdp(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    epsilon: float | Sequence[float] | FloatArray = 0.0,
    tail: Tail = "both",
    min_rate: float = MIN_RATE,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
) -> float | FloatArray:
    r"""The local disparity of selection ratios: over windows, the largest of the smallest log ratio inside.

    .. math::
        \max_{y_0} \min_{|y - y_0| \le \epsilon} \left| \log \frac{R_a(y)}{R_b(y)} \right|

    where R_g(y) is the share of group g with a score above y, or, for the tail below, at or below y; of both
    tails, the worse. MCDP compares differences of these shares, which are small where few are selected
    however large their ratio is. A value v means that somewhere, on a whole window, one group's rate is at
    most exp(-v) of the other's: 0.223 is a ratio of 0.8.

    Where neither rate reaches `min_rate`, there is no disparity by definition, as there is none where both
    are 0: of the last few people, the ratio says nothing. Where one rate does and the other is 0, the log
    ratio is infinite, and so is the result if that is so in a whole window.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1; None where the criterion does not need them. Predictions or ScoreCounts stand for all
        of the arrays; the counts must have every score.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    epsilon : float or array-like
        The half-width of the windows, as a fraction of the score range; several at once cost little more.
    tail : str
        Whose ratio it is: of those "above" a cutoff, of those at or "below" it, or the worse of "both".
    min_rate : float
        Cutoffs at which the larger of the two rates is below this have no disparity; 0 looks at all cutoffs.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    sample_weight : array-like, optional
        Weights that are not negative.
    score_range : tuple of float
        The lowest and the highest score there can be.
    min_group_size : int
        A group with fewer rows among the people compared is an error.

    Returns
    -------
    float or ndarray
        A number >= 0, which may be infinite; of several epsilons, one for each.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.6, 0.4, 0.6, 0.8], ["f", "f", "f", "m", "m", "m"]
    >>> lp.relative_mcdp(None, scores, sensitive_features=sex, epsilon=[0.0, 0.09, 0.1], tail="above")
    array([       inf,        inf, 0.69314718])
    """
    epsilons = as_epsilons(epsilon)
    tails = ("above", "below") if as_choice(tail, "tail", get_args(Tail)) == "both" else (tail,)
    min_rate = as_fraction(min_rate, "min_rate")
    comparison = Comparison(criterion, compare, min_group_size)
    counts = input_counts(
        comparison, y_true, y_score, sensitive_features, sample_weight=sample_weight, score_range=score_range
    )
    if counts.rank_error > 0.0:
        raise ValueError(f"relative_mcdp needs every score, got {counts!r}")
    found = np.zeros(epsilons.size)
    for stratum in strata_of(counts, comparison).values():
        sides = with_everyone(stratum) if compare == "to_overall" else stratum
        for pair in comparison.pairs(list(stratum)):
            two = {group: sides[group] for group in pair}
            for each in tails:
                found = np.maximum(found, _of_pair(counts, two, each, epsilons.ravel(), min_rate))
    return found.reshape(epsilons.shape) if epsilons.ndim else float(found[0])


def _of_pair(
    counts: ScoreCounts, pair: dict[Group, Atoms], tail: str, epsilons: FloatArray, min_rate: float
) -> FloatArray:
    """Relative MCDP of a pair in one tail, at some epsilons."""
    selected: HigherIs = "better" if tail == "above" else "worse"
    knots = np.unique(np.concatenate([atoms.scores for atoms in pair.values()]))
    rates = Selection.at(pair, knots, selected).rates
    low, high = rates.min(axis=0), rates.max(axis=0)
    with np.errstate(divide="ignore"):
        # Equal rates have a log ratio of 0, whatever rounding says.
        apart = np.where((high >= min_rate) & (low < high), -np.log(quotients(low, high)), 0.0)
    units = units_of(knots, counts.score_range, counts.resolution)
    return runs_of(units, apart).mcdp_at(epsilons, counts.resolution, counts.score_range)
