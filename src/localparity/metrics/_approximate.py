"""The paper's Algorithm 2: MCDP from gaps at equally spaced points, which never under-estimates it."""

from __future__ import annotations

import numpy as np

from localparity._scale import rounding_of
from localparity._types import ArrayLike, Compare, Criterion, Groups, ScoreRange
from localparity._validation import as_count, as_epsilon
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import Data
from localparity.metrics._gap_curve import GapCurve, input_curves

_MOST_POINTS = 10**8


def mcdp_approximate(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    epsilon: float,
    k: int = 32,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
) -> float:
    """MCDP(epsilon) approximately, by the paper's Algorithm 2.

    It looks at the gap at points spaced by epsilon / k only. The result is never below MCDP(epsilon) and does
    not grow as k doubles. `mcdp` is exact and usually faster; this one is here to compare with.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1; None where the criterion does not need them. Predictions or ScoreCounts stand for all
        of the arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    epsilon : float
        The half-width of the windows, as a fraction of the score range; at 0 the result is exact.
    k : int
        How many points there are to a half-width.
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
    float
        A fraction in [0, 1].

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.4, 0.6, 0.9], ["f", "f", "m", "m"]
    >>> [lp.mcdp_approximate(None, scores, sensitive_features=sex, epsilon=0.11, k=k) for k in (1, 32)]
    [1.0, 0.5]
    """
    epsilon, k = as_epsilon(epsilon), as_count(k, "k")
    comparison = Comparison(criterion, compare, min_group_size)
    curves = input_curves(
        comparison,
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        score_range=score_range,
    )
    return max(mcdp_on_grid(curve, epsilon, k) for curve in curves)


def mcdp_on_grid(curve: GapCurve, epsilon: float, k: int) -> float:
    """Algorithm 2 on one gap curve."""
    if epsilon == 0.0:
        return curve.mcdp(0.0)
    if epsilon >= 1.0:
        return 0.0
    if k / epsilon > _MOST_POINTS:
        raise ValueError(
            f"k / epsilon must be <= {_MOST_POINTS:,}, got {k / epsilon:,.0f}; mcdp is exact at any epsilon"
        )
    step = epsilon / k
    points = int(np.ceil(1.0 / step)) + 1
    # A point that rounding has put just below a knot counts as on it.
    grid = np.arange(points, dtype=np.float64) * step
    grid += rounding_of(grid, curve.resolution, curve.score_range)
    places = np.searchsorted(curve._unit_knots, grid, side="right")
    gap = np.abs(np.concatenate([[0.0], curve.gap]))[places]
    least_at_the_bottom = float(gap[: k + 1].min())
    windows = points - 1 - 2 * k
    if windows < 1:
        return least_at_the_bottom
    from scipy.ndimage import minimum_filter1d

    # The filter's result at i is the least of the 2k points from i - k on; the first window starts at 1.
    least = minimum_filter1d(gap, 2 * k)[k + 1 : k + 1 + windows]
    return max(least_at_the_bottom, float(least.max()))
