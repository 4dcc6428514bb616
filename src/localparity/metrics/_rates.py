"""Metrics of selection rates: at one threshold, on average over thresholds, and of mean scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from localparity._docs import documented
from localparity._validation import as_count, as_threshold, even_thresholds, reach_of
from localparity.metrics._comparison import check_predictions, gap_curves
from localparity.metrics._counts import ScoreCounts
from localparity.metrics._criteria import Criterion
from localparity.metrics._groups import Compare


@documented
def delta_dp(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    threshold: float | None = None,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: Any = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    min_group_size: int = 1,
) -> float:
    """The difference of selection rates at a threshold, or of mean scores.

    A score above the threshold is selected. Without a threshold, the result is the difference of the mean
    scores as a fraction of the score range. Of several pairs it is the worst.

    Parameters
    ----------
    threshold : float, optional
        The threshold, in the scores' own units; None compares means.

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
    curves = gap_curves(
        y_true, y_score, sensitive_features, criterion, compare, sample_weight, score_range, min_group_size
    )
    if threshold is None:
        return max(abs(curve.mean_difference()) for curve in curves)
    threshold = as_threshold(threshold, curves[0].score_range)
    return max(float(abs(curve(threshold))) for curve in curves)


@documented
def spdd(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    n_thresholds: int = 100,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: Any = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    min_group_size: int = 1,
) -> float:
    """The mean difference of selection rates over equally spaced thresholds.

    The thresholds divide the score range into ``n_thresholds - 1`` equal parts, both ends included. With ever
    more of them, the result goes to ABCC. Of several pairs it is the worst.

    Parameters
    ----------
    n_thresholds : int
        How many thresholds there are, two or more.

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
    curves = gap_curves(
        y_true, y_score, sensitive_features, criterion, compare, sample_weight, score_range, min_group_size
    )
    thresholds = even_thresholds(curves[0].score_range, n_thresholds - 1)
    return max(float(np.abs(curve(thresholds)).mean()) for curve in curves)


@documented
def p_rule(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    threshold: float | None = None,
    criterion: Criterion = "demographic_parity",
    sample_weight: Any = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    min_group_size: int = 1,
) -> float:
    """The lowest selection rate over the highest, at one threshold: 1 is parity.

    The four-fifths rule of thumb looks at ratios below 0.8 more closely. A ratio by itself settles nothing:
    it depends on the threshold, and for few people on chance.

    Parameters
    ----------
    threshold : float, optional
        The threshold, in the scores' own units; a score above it is selected. The middle of the range
        without it.

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
    predictions = check_predictions(
        y_true, y_score, sensitive_features, criterion, sample_weight, score_range
    )
    middle = sum(0.5 * end for end in predictions.score_range)
    threshold = as_threshold(middle if threshold is None else threshold, predictions.score_range)
    reach = reach_of(threshold, predictions.resolution, predictions.score_range)
    strata = ScoreCounts.from_predictions(predictions).strata(criterion, min_group_size=min_group_size)
    ratios = []
    for stratum in strata.values():
        rates = [atoms.share_above(reach) for atoms in stratum.values()]
        if max(rates) == 0.0:
            raise ValueError(f"threshold is {threshold:g} and no score is above it, so no ratio is defined")
        ratios.append(min(rates) / max(rates))
    return min(ratios)
