"""Metrics of selection rates: at one threshold, on average over thresholds, and of mean scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from localparity._scale import even_thresholds, threshold_reach
from localparity._types import ArrayLike, Compare, Criterion, Groups, ScoreRange
from localparity._validation import InputError, as_count, as_epsilon, as_fraction, as_number, as_threshold
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import Data, Inputs, as_counts, strata_of, with_everyone
from localparity.metrics._gap_curve import gap_curves
from localparity.metrics._selection import SelectionCounts, quotients


def delta_dp(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    threshold: float | None = None,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    pos_label: Any = None,
) -> float:
    """The difference of selection rates at a threshold, or of mean scores.

    A score above the threshold is selected. Without a threshold, the result is the difference of the mean
    scores as a fraction of the score range. Of several pairs it is the worst.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1, where the criterion needs them. Predictions or ScoreCounts stand for all arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    threshold : float, optional
        The threshold, in the scores' own units; None compares means.
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
    pos_label : object, optional
        The label that counts as 1, the other one as 0; without it, labels are 0 and 1.

    Returns
    -------
    float
        A fraction in [0, 1].

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.6, 0.4, 0.6, 0.8], ["f", "f", "f", "m", "m", "m"]
    >>> lp.delta_dp(None, scores, sensitive_features=sex, threshold=0.5)
    0.3333333333333333
    >>> round(lp.delta_dp(None, scores, sensitive_features=sex), 12)
    0.266666666667
    """
    comparison = Comparison(criterion, compare, min_group_size)
    inputs = Inputs(y_true, y_score, sensitive_features, sample_weight, score_range, pos_label)
    curves = gap_curves(inputs.checked(comparison), comparison)
    if threshold is None:
        return max(abs(curve.mean_difference()) for curve in curves)
    threshold = as_threshold(threshold, curves[0].score_range)
    return max(float(abs(curve(threshold))) for curve in curves)


def spdd(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    n_thresholds: int = 100,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    pos_label: Any = None,
) -> float:
    """The mean difference of selection rates over equally spaced thresholds.

    The thresholds divide the score range into ``n_thresholds - 1`` equal parts, both ends included. With ever
    more of them, the result goes to ABCC. Of several pairs it is the worst.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1, where the criterion needs them. Predictions or ScoreCounts stand for all arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    n_thresholds : int
        How many thresholds there are, two or more.
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
    pos_label : object, optional
        The label that counts as 1, the other one as 0; without it, labels are 0 and 1.

    Returns
    -------
    float
        A fraction in [0, 1].

    Examples
    --------
    >>> import localparity as lp
    >>> lp.spdd(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"], n_thresholds=5)
    0.4
    """
    n_thresholds = as_count(n_thresholds, "n_thresholds", at_least=2)
    comparison = Comparison(criterion, compare, min_group_size)
    inputs = Inputs(y_true, y_score, sensitive_features, sample_weight, score_range, pos_label)
    curves = gap_curves(inputs.checked(comparison), comparison)
    thresholds = even_thresholds(curves[0].score_range, n_thresholds - 1)
    return max(float(np.abs(curve(thresholds)).mean()) for curve in curves)


def p_rule(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    threshold: float | None = None,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    pos_label: Any = None,
) -> float:
    """The lowest selection rate over the highest, at one threshold: 1 is parity.

    The four-fifths rule of thumb looks at ratios below 0.8 more closely. A ratio by itself settles nothing:
    it depends on the threshold, and for few people on chance.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1, where the criterion needs them. Predictions or ScoreCounts stand for all arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    threshold : float, optional
        The threshold, in the scores' own units; a score above it is selected. The middle of the range
        without it.
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
    pos_label : object, optional
        The label that counts as 1, the other one as 0; without it, labels are 0 and 1.

    Returns
    -------
    float
        A ratio in [0, 1].

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.6, 0.4, 0.6, 0.8], ["f", "f", "f", "m", "m", "m"]
    >>> lp.p_rule(None, scores, sensitive_features=sex)
    0.5
    """
    comparison = Comparison(criterion, compare, min_group_size)
    inputs = Inputs(y_true, y_score, sensitive_features, sample_weight, score_range, pos_label)
    data = inputs.checked(comparison)
    middle = sum(0.5 * end for end in data.score_range)
    threshold = as_threshold(middle if threshold is None else threshold, data.score_range)
    reach = threshold_reach(threshold, data.resolution, data.score_range)
    ratios = []
    for stratum in strata_of(as_counts(data), comparison).values():
        sides = with_everyone(stratum) if compare == "to_overall" else stratum
        rates = SelectionCounts.at(sides, np.array([reach]), "better").rates
        if not rates.any():
            raise ValueError(f"no score is above threshold {threshold:g}, so no ratio is defined")
        of_pairs = rates[comparison.pair_places(list(stratum)), 0]
        ratios.append(float(np.nanmin(quotients(of_pairs.min(axis=1), of_pairs.max(axis=1)))))
    return min(ratios)


# The area between the groups' cumulative distributions, and what bounds it.


def abcc(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    pos_label: Any = None,
) -> float:
    r"""The area between the two cumulative distributions, as a fraction of the score range.

    .. math:: \mathrm{ABCC} = \int_0^1 |F_a(y) - F_b(y)| \, dy

    It is the exact integral of the step functions, which is the Wasserstein-1 distance of the scores. Of
    several pairs it is the worst.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1, where the criterion needs them. Predictions or ScoreCounts stand for all arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
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
    pos_label : object, optional
        The label that counts as 1, the other one as 0; without it, labels are 0 and 1.

    Returns
    -------
    float
        A fraction in [0, 1].

    Examples
    --------
    >>> import localparity as lp
    >>> round(lp.abcc(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"]), 12)
    0.5
    """
    comparison = Comparison(criterion, compare, min_group_size)
    inputs = Inputs(y_true, y_score, sensitive_features, sample_weight, score_range, pos_label)
    curves = gap_curves(inputs.checked(comparison), comparison)
    return max(curve.abcc() for curve in curves)


def abcc_bound(mcdp: float, epsilon: float, lipschitz: float) -> float:
    r"""The most that ABCC can be, given MCDP(epsilon) and a Lipschitz constant of the absolute gap.

    .. math::
        \mathrm{ABCC} \le \mathrm{MCDP}(\epsilon) + \begin{cases}
        \epsilon L / 2 & L \le 2 \\ 2 \epsilon (1 - 1/L) & L > 2 \end{cases}

    for a gap that is continuous with Lipschitz constant L: the distribution-wide disparity is under control
    when the maximal local disparity is.

    Parameters
    ----------
    mcdp : float
        MCDP(epsilon).
    epsilon : float
        The half-width of the windows, as a fraction of the score range.
    lipschitz : float
        The most that the absolute gap changes over a length, divided by that length.

    Returns
    -------
    float
        The bound.

    Examples
    --------
    >>> import localparity as lp
    >>> lp.abcc_bound(0.25, epsilon=0.25, lipschitz=4.0)
    0.625
    """
    mcdp, epsilon = as_fraction(mcdp, "mcdp"), as_epsilon(epsilon)
    lipschitz = as_number(lipschitz, "lipschitz")
    if lipschitz < 0.0:
        raise InputError(f"must be >= 0, got {lipschitz:g}", "lipschitz")
    return mcdp + epsilon * (lipschitz / 2.0 if lipschitz <= 2.0 else 2.0 * (1.0 - 1.0 / lipschitz))
