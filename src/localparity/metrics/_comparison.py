"""From a caller's arrays to the gap curves that every metric works on."""

from __future__ import annotations

from typing import Any

import numpy as np

from localparity._docs import documented
from localparity._validation import Group
from localparity.metrics._counts import ScoreCounts
from localparity.metrics._criteria import Criterion, check_group_sizes, labels_of
from localparity.metrics._gap_curve import GapCurve
from localparity.metrics._groups import Compare, pairs_of
from localparity.predictions import Predictions


def check_predictions(
    y_true: Any,
    y_score: Any,
    sensitive_features: Any,
    criterion: str,
    sample_weight: Any,
    score_range: tuple[float, float],
    cluster: Any = None,
) -> Predictions:
    """The arguments that all metrics share, checked; labels only where the criterion needs them."""
    needs_labels = labels_of(criterion) != (None,)
    if needs_labels and y_true is None:
        raise ValueError(f"y_true is None where criterion={criterion!r} needs labels 0 and 1")
    labels = y_true if needs_labels else None
    return Predictions.checked(
        labels, y_score, sensitive_features, sample_weight, score_range, cluster=cluster
    )


def gap_curves(
    y_true: Any,
    y_score: Any,
    sensitive_features: Any,
    criterion: str,
    compare: str,
    sample_weight: Any,
    score_range: tuple[float, float],
    min_group_size: int,
) -> list[GapCurve]:
    """The curves of all pairs that are compared."""
    predictions = check_predictions(
        y_true, y_score, sensitive_features, criterion, sample_weight, score_range
    )
    pairs = pairs_of(predictions.groups, compare)
    two_plain_groups = (
        len(pairs) == 1 and predictions.weights is None and predictions.score_range == (0.0, 1.0)
    )
    if two_plain_groups:
        return [_curve_of_rows(predictions, label, min_group_size) for label in labels_of(criterion)]
    counts = ScoreCounts.from_predictions(predictions)
    return counts.gap_curves(criterion, compare, min_group_size=min_group_size)


def _curve_of_rows(predictions: Predictions, label: int | None, min_group_size: int) -> GapCurve:
    """Two groups without weights on [0, 1], at the speed of one sort.

    Scores up to 1 leave the two top bits of a float free, so the score's bits, moved up by one, and the group
    in the lowest bit make one whole number that sorts by score.
    """
    # Imported here: numba is not loaded with the package.
    from localparity.metrics import _kernels

    scores, codes = predictions.scores, predictions.codes
    if label is not None:
        among = predictions.labels == label
        scores, codes = scores[among], codes[among]
    second = int(np.count_nonzero(codes))
    first = codes.size - second
    check_group_sizes(predictions.groups, (first, second), label, min_group_size)
    whole = np.uint32 if scores.dtype == np.float32 else np.uint64
    keys = (scores + scores.dtype.type(0)).view(whole)  # a copy, in which -0.0 has become 0.0
    keys <<= whole(1)
    keys |= codes
    keys.sort()
    bits, gap = _kernels.gap_of_keys(keys, first, second)
    knots = bits.view(scores.dtype).astype(np.float64, copy=False)
    a, b = predictions.groups
    return GapCurve(knots, gap, (a, b), (first, second), label, resolution=predictions.resolution)


@documented
def gap_curve(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    groups: tuple[Group, Group] | None = None,
    criterion: Criterion = "demographic_parity",
    sample_weight: Any = None,
    score_range: tuple[float, float] = (0.0, 1.0),
) -> GapCurve:
    """The signed gap F_a - F_b between two groups' cumulative distributions.

    Parameters
    ----------
    groups : tuple, optional
        The pair (a, b), of which b may be ``"everyone"``. With two groups it may be left out.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1) or
        "predictive_equality" (label 0).

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
    predictions = check_predictions(
        y_true, y_score, sensitive_features, criterion, sample_weight, score_range
    )
    if groups is None:
        if len(predictions.groups) > 2:
            raise ValueError(
                f"groups is None where a pair of the {len(predictions.groups)} groups is expected"
            )
        groups = (predictions.groups[0], predictions.groups[1])
    if not isinstance(groups, tuple) or len(groups) != 2:
        raise ValueError(f"groups is {groups!r} where a pair (a, b) is expected")
    return ScoreCounts.from_predictions(predictions).gap_curve(*groups, criterion)


__all__ = ["Compare", "check_predictions", "gap_curve", "gap_curves"]
