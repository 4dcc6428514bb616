"""MCDP(epsilon) and its profile, exactly, and MCDP by the paper's Algorithm 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from localparity._scale import rounding_of
from localparity._types import ArrayLike, Compare, Criterion, FloatArray, Groups, ScoreRange
from localparity._validation import InputError, as_count, as_epsilon, as_epsilons, as_jobs, setting
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import Data, Inputs, checked_data
from localparity.metrics._exact import worst_mcdp
from localparity.metrics._gap_curve import GapCurve, Interval, gap_curves, worst_interval
from localparity.metrics._profile import McdpProfile

PAPER_EPSILONS = (0.0, 0.01, 0.05, 0.1)


@overload
def mcdp(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    epsilon: float = 0.0,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    pos_label: Any = None,
    n_jobs: int | None = None,
) -> float: ...


@overload
def mcdp(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    epsilon: Sequence[float] | FloatArray,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    pos_label: Any = None,
    n_jobs: int | None = None,
) -> FloatArray: ...


def mcdp(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    epsilon: float | Sequence[float] | FloatArray = 0.0,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    pos_label: Any = None,
    n_jobs: int | None = None,
) -> float | FloatArray:
    r"""The maximal local disparity: the largest, over windows, of the smallest absolute gap in the window.

    .. math::
        \mathrm{MCDP}(\epsilon) = \max_{y_0} \min_{|y - y_0| \le \epsilon} |F_a(y) - F_b(y)|

    where F_g(y) is the share of group g with a score at or below y. MCDP(0) is the two-sample
    Kolmogorov-Smirnov statistic. Of many rows, only those that decide are sorted.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1, where the criterion needs them. Predictions or ScoreCounts stand for all arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    epsilon : float or array-like
        The half-width of the windows, as a fraction of the score range; several at once cost little more.
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
    n_jobs : int, optional
        How many threads count the rows, -1 for as many as there are cores.

    Returns
    -------
    float or ndarray
        A fraction in [0, 1]; of several epsilons, one for each.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", "m"]
    >>> lp.mcdp(None, scores, sensitive_features=sex)
    0.6666666666666666
    >>> lp.mcdp(None, scores, sensitive_features=sex, epsilon=0.1)
    0.3333333333333333
    >>> lp.mcdp(None, scores, sensitive_features=sex, epsilon=[0.0, 0.1])
    array([0.66666667, 0.33333333])
    """
    epsilons = as_epsilons(epsilon)
    comparison = Comparison(criterion, compare, min_group_size)
    inputs = Inputs(y_true, y_score, sensitive_features, sample_weight, score_range, pos_label)
    data = inputs.checked(comparison)
    found = worst_mcdp(data, comparison, epsilons.ravel(), as_jobs(n_jobs))
    return found.reshape(epsilons.shape) if epsilons.ndim else float(found[0])


def mcdp_profile(
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
) -> McdpProfile:
    """MCDP at every epsilon at once, after one sort and one pass.

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
    McdpProfile
        A function of epsilon, with its steps and its worst windows.

    Examples
    --------
    >>> import localparity as lp
    >>> profile = lp.mcdp_profile(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"])
    >>> profile([0.0, 0.05, 0.2, 0.4])
    array([1. , 1. , 0.5, 0. ])
    """
    comparison = Comparison(criterion, compare, min_group_size)
    inputs = Inputs(y_true, y_score, sensitive_features, sample_weight, score_range, pos_label)
    return McdpProfile(gap_curves(inputs.checked(comparison), comparison))


def mcdp_bounds(
    data: Data,
    *,
    epsilon: float = 0.0,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    min_group_size: int = 1,
) -> Interval:
    """MCDP(epsilon) and what it lies between when the counts are not exact.

    Counts on a grid or from a sketch leave the gap open by up to their `rank_error`. The bounds hold the
    MCDP(epsilon) of the rows that were counted; they say nothing of sampling, as `mcdp_interval` does.

    Parameters
    ----------
    data : Predictions or ScoreCounts
        ScoreCounts, as a rule; of Predictions MCDP(epsilon) is exact and the bounds are equal.
    epsilon : float
        The half-width of the windows, as a fraction of the score range.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    min_group_size : int
        A group with fewer rows among the people compared is an error.

    Returns
    -------
    Interval
        Its confidence is 1: the bounds always hold.

    Examples
    --------
    >>> import localparity as lp
    >>> predictions = lp.Predictions.from_arrays(None, [0.2, 0.6], sensitive_features=["a", "b"])
    >>> lp.mcdp_bounds(lp.ScoreCounts.from_predictions(predictions), epsilon=0.1)
    1 (1 to 1, 100%)
    """
    epsilon = as_epsilon(epsilon)
    comparison = Comparison(criterion, compare, min_group_size)
    curves = gap_curves(checked_data(data, comparison), comparison)
    return worst_interval(curve.mcdp_bounds(epsilon) for curve in curves)


# The paper's Algorithm 2: MCDP from gaps at equally spaced points, which never under-estimates it.


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
        Labels 0 and 1, where the criterion needs them. Predictions or ScoreCounts stand for all arrays.
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
    inputs = Inputs(y_true, y_score, sensitive_features, sample_weight, score_range)
    curves = gap_curves(inputs.checked(comparison), comparison)
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


# MCDP as a scikit-learn scorer.


def mcdp_scorer(epsilon: float = 0.0, **options: Any) -> Any:
    """A scikit-learn scorer that gives -MCDP(epsilon), so that greater is better.

    It scores with ``predict_proba`` (or ``decision_function``) of the positive class and asks for
    `sensitive_features` by metadata routing, which scikit-learn wants switched on with
    ``sklearn.set_config(enable_metadata_routing=True)``; without it, scoring is an error that says so.

    Parameters
    ----------
    epsilon : float
        The half-width of the windows.
    **options
        More arguments of `mcdp`, such as ``criterion="equal_opportunity"``.

    Returns
    -------
    scorer
        For ``scoring=`` of GridSearchCV, cross_validate and the like.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> X, y, sex = census.data[["age", "education_years"]], census.target, census.sensitive_features
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     found = cross_validate(
    ...         LogisticRegression(), X, y, scoring=lp.mcdp_scorer(0.05), params={"sensitive_features": sex}
    ...     )
    >>> bool((found["test_score"] < 0.0).all())
    True
    """
    import sklearn
    from sklearn.metrics import make_scorer

    scorer = make_scorer(
        _routed_mcdp,
        response_method=("predict_proba", "decision_function"),
        greater_is_better=False,
        epsilon=as_epsilon(epsilon),
        **options,
    )
    with sklearn.config_context(enable_metadata_routing=True):
        return scorer.set_score_request(sensitive_features=True)


def _routed_mcdp(
    y_true: ArrayLike, y_score: ArrayLike, *, sensitive_features: Groups | None = None, **options: Any
) -> float:
    """MCDP of what scikit-learn routed here."""
    if sensitive_features is None:
        raise InputError(
            "did not reach the scorer: call sklearn.set_config(enable_metadata_routing=True), pass "
            f"{setting('sensitive_features')} to fit or in params, and keep the scorer's "
            "set_score_request(sensitive_features=True)",
            "sensitive_features",
        )
    value: float = mcdp(y_true, y_score, sensitive_features=sensitive_features, **options)
    return value
