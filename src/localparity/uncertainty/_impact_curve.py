"""From predictions or counts to the curve of impact ratios, and to what follows from it."""

from __future__ import annotations

import numpy as np

from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, HigherIs, ScoreRange
from localparity._validation import as_choice, as_fraction, as_probability, unknown_name
from localparity.counts._comparison import Comparison
from localparity.counts._inputs import Data, input_counts
from localparity.counts._score_counts import ScoreCounts, strata_of
from localparity.metrics._selection import Selection
from localparity.metrics._standardised import standardised_differences
from localparity.uncertainty._impact import ImpactRatioCurve
from localparity.uncertainty._safe_cutoffs import SafeCutoffs


def impact_ratio_curve(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    reference: Group | None = None,
    higher_is: HigherIs = "better",
    criterion: Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    confidence: float | None = 0.95,
) -> ImpactRatioCurve:
    """Selection rates and their ratios at every cutoff at once, with bands that hold at all of them together.

    The adverse impact ratio of a group is its selection rate over that of a reference group. A model may pass
    a rule about ratios at one cutoff and fail at another: `p_rule` is the lowest ratio at one of them.

    The bands hold at any sample size, for all groups and all cutoffs together, and are sharp in the tails:
    they ask for independent rows, and for scores that were not computed on the rows the model was trained on.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1, for the accuracy at each cutoff and for criteria that need them, or None. Predictions
        or ScoreCounts stand for all of the arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    reference : hashable, optional
        The group that the others are compared with; without it, the best-off group at each cutoff, the one
        with the highest selection rate.
    higher_is : str
        "better" selects people with a score above the cutoff, "worse" those with a score at or below it.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1) or
        "predictive_equality" (label 0).
    sample_weight : array-like, optional
        Weights that are not negative; they need ``confidence=None``.
    score_range : tuple of float
        The lowest and the highest score there can be.
    min_group_size : int
        A group with fewer rows among the people compared is an error.
    confidence : float or None
        The probability with which the bands hold; None makes none, as rows with weights or clusters need.

    Returns
    -------
    ImpactRatioCurve

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(5000, random_state=0)
    >>> curve = lp.impact_ratio_curve(None, census.score, sensitive_features=census.sensitive_features)
    >>> women, men = curve.at(0.2)
    >>> women.group, round(women.ratio, 2), women.shortfall
    ('Female', 0.68, 616.0)
    """
    comparison = Comparison(criterion, min_group_size=min_group_size)
    counts = input_counts(
        comparison,
        y_true,
        y_score,
        sensitive_features,
        sample_weight=sample_weight,
        score_range=score_range,
        keep_labels=True,
    )
    return curve_of_counts(
        counts, comparison, reference=reference, higher_is=higher_is, confidence=confidence
    )


def safe_cutoffs(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    min_ratio: float = 0.8,
    reference: Group | None = None,
    higher_is: HigherIs = "better",
    criterion: Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    confidence: float | None = 0.95,
) -> SafeCutoffs:
    """The cutoffs at which every group's selection rate is at least a ratio of the reference's.

    They are found exactly, as ranges of cutoffs: by the measured ratios, and by the lower ends of their
    bands, which hold at all cutoffs together. So any cutoff of the latter may be chosen after a look at the
    data.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1, for the accuracy at each cutoff and for criteria that need them, or None. Predictions
        or ScoreCounts stand for all of the arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    min_ratio : float
        The least ratio that is safe, a fraction in [0, 1]; 0.8 is the four-fifths rule of thumb.
    reference : hashable, optional
        The group that the others are compared with; without it, the best-off group at each cutoff.
    higher_is : str
        "better" selects people with a score above the cutoff, "worse" those with a score at or below it.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1) or
        "predictive_equality" (label 0).
    sample_weight : array-like, optional
        Weights that are not negative; they need ``confidence=None``.
    score_range : tuple of float
        The lowest and the highest score there can be.
    min_group_size : int
        A group with fewer rows among the people compared is an error.
    confidence : float or None
        The probability with which all safe cutoffs are safe; None finds them by estimate alone.

    Returns
    -------
    SafeCutoffs

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.1, 0.4, 0.6, 0.9, 0.9], ["f", "m"] * 3
    >>> found = lp.safe_cutoffs(None, scores, sensitive_features=sex, confidence=None)
    >>> [(each.low, each.high) for each in found.by_estimate]
    [(0.0, 0.4), (0.6, 0.9)]
    """
    min_ratio = as_fraction(min_ratio, "min_ratio")
    curve = impact_ratio_curve(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        reference=reference,
        higher_is=higher_is,
        criterion=criterion,
        sample_weight=sample_weight,
        score_range=score_range,
        min_group_size=min_group_size,
        confidence=confidence,
    )
    return curve.safe_cutoffs(min_ratio)


def curve_of_counts(
    counts: ScoreCounts,
    comparison: Comparison,
    *,
    reference: Group | None,
    higher_is: HigherIs,
    confidence: float | None,
) -> ImpactRatioCurve:
    """The curve of counts, under the one label that a criterion compares."""
    as_choice(higher_is, "higher_is", ("better", "worse"))
    strata = strata_of(counts, comparison)
    if len(strata) > 1:
        raise ValueError(
            f"criterion={comparison.criterion!r} compares two labels and has no single curve; "
            "use 'equal_opportunity' or 'predictive_equality'"
        )
    if len(counts.groups) < 2:
        raise ValueError(f"at least two groups are needed, got {len(counts.groups)}")
    if reference is not None and reference not in counts.groups:
        raise unknown_name("group", reference, counts.groups)
    if confidence is not None:
        confidence = as_probability(confidence)
        if not counts.exchangeable:
            why = "clusters" if counts.clusters is not None else "weights"
            raise ValueError(f"the bands do not hold with {why}; pass confidence=None for a curve without")
    ((label, stratum),) = strata.items()
    selection = Selection.everywhere(counts, stratum, higher_is)
    known = counts.rank_error == 0.0
    return ImpactRatioCurve(
        selection,
        reference,
        higher_is,
        counts.score_range,
        counts.resolution,
        label,
        confidence,
        standardised_differences(stratum, reference, higher_is) if known else None,
        _accuracy(counts, selection.cutoffs) if counts.labelled and (known or counts.cells) else None,
    )


def _accuracy(counts: ScoreCounts, cutoffs: FloatArray) -> FloatArray:
    """The share of all people whose score is above a cutoff exactly when their label is 1."""
    right = np.zeros(cutoffs.size)
    total = 0.0
    for (_, label), atoms in counts.atoms.items():
        below = atoms.below().astype(np.float64)
        up_to = below[np.searchsorted(atoms.scores, cutoffs, side="right")]
        right += below[-1] - up_to if label == 1 else up_to
        total += below[-1]
    return right / total
