"""The area between the groups' cumulative distributions, and what bounds it."""

from __future__ import annotations

from localparity._types import ArrayLike, Compare, Criterion, Groups, ScoreRange
from localparity._validation import as_epsilon, as_fraction, as_number
from localparity.counts._comparison import Comparison
from localparity.counts._inputs import Data
from localparity.metrics._gap_curves import input_curves


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
) -> float:
    r"""The area between the two cumulative distributions, as a fraction of the score range.

    .. math:: \mathrm{ABCC} = \int_0^1 |F_a(y) - F_b(y)| \, dy

    It is the exact integral of the step functions, which is the Wasserstein-1 distance of the scores. Of
    several pairs it is the worst.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1; None where the criterion does not need them. Predictions or ScoreCounts stand for all
        of the arrays.
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
    curves = input_curves(
        comparison,
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        score_range=score_range,
    )
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
        raise ValueError(f"lipschitz must be >= 0, got {lipschitz:g}")
    return mcdp + epsilon * (lipschitz / 2.0 if lipschitz <= 2.0 else 2.0 * (1.0 - 1.0 / lipschitz))
