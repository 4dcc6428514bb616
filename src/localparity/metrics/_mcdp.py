"""MCDP(epsilon) and its profile, exactly."""

from __future__ import annotations

from typing import Any

from localparity._docs import documented
from localparity._validation import as_epsilon
from localparity.metrics._comparison import gap_curves
from localparity.metrics._criteria import Criterion
from localparity.metrics._groups import Compare
from localparity.metrics._profile import McdpProfile

PAPER_EPSILONS = (0.0, 0.01, 0.05, 0.1)


@documented
def mcdp(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    epsilon: float = 0.0,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: Any = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    min_group_size: int = 1,
) -> float:
    r"""The maximal local disparity: the largest, over windows, of the smallest absolute gap in the window.

    .. math::
        \mathrm{MCDP}(\epsilon) = \max_{y_0} \min_{|y - y_0| \le \epsilon} |F_a(y) - F_b(y)|

    where F_g(y) is the share of group g with a score at or below y. MCDP(0) is the two-sample
    Kolmogorov-Smirnov statistic.

    Returns
    -------
    float
        A fraction in [0, 1].

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", "m"]
    >>> lp.mcdp(None, scores, sensitive_features=sex)
    0.6666666666666666
    >>> lp.mcdp(None, scores, sensitive_features=sex, epsilon=0.1)
    0.3333333333333333
    """
    epsilon = as_epsilon(epsilon)
    curves = gap_curves(
        y_true, y_score, sensitive_features, criterion, compare, sample_weight, score_range, min_group_size
    )
    return max(curve.mcdp(epsilon) for curve in curves)


@documented
def mcdp_profile(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: Any = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    min_group_size: int = 1,
) -> McdpProfile:
    """MCDP at every epsilon at once, after one sort and one pass.

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
    return McdpProfile(
        gap_curves(
            y_true,
            y_score,
            sensitive_features,
            criterion,
            compare,
            sample_weight,
            score_range,
            min_group_size,
        )
    )
