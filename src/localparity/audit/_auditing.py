"""Making an audit: everything that is known of one set of predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from localparity._types import (
    ArrayLike,
    Compare,
    Criterion,
    DataRange,
    Groups,
    HigherIs,
    IntervalMethod,
    Missing,
    MissingGroups,
    Scale,
    Seed,
)
from localparity._validation import (
    as_choice,
    as_count,
    as_epsilons,
    as_higher_is,
    as_probability,
    as_threshold,
    library_of,
)
from localparity.audit._audit import Audit
from localparity.audit._control import as_people
from localparity.audit._evidence import Evidence
from localparity.audit._findings import (
    LeftOut,
    check_group_count,
    check_identifier,
    summarise_groups,
    warn_of_narrow_scores,
    without_small_groups,
)
from localparity.audit._missing import MissingPolicy, checked_rows
from localparity.audit._scale import ScoreScale
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._copies import copies_of, warn_of_copies
from localparity.counts._inputs import Data, as_counts
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.predictions import Predictions
from localparity.uncertainty._bands import as_interval_method
from localparity.uncertainty._resampling import Draws

SmallGroups = Literal["raise", "drop"]


def audit(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    control_features: Groups | None = None,
    epsilons: Sequence[float] = PAPER_EPSILONS,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    threshold: float | None = None,
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    score_range: DataRange = (0.0, 1.0),
    scale: Scale = "score",
    min_group_size: int = 1,
    small_groups: SmallGroups = "raise",
    disclosure_limit: int = 1,
    missing_groups: MissingGroups = "raise",
    missing_values: str | Sequence[Any] = (),
    missing: Missing = "raise",
    confidence: float = 0.95,
    method: IntervalMethod | None = None,
    n_resamples: int = 1000,
    random_state: Seed = None,
    n_jobs: int | None = None,
    higher_is: HigherIs | None = None,
    on_resample: Callable[[], object] | None = None,
) -> Audit:
    """How large the disparity is, where it sits, for whom, and how sure that is.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1; None where the criterion does not need them. Predictions or ScoreCounts stand for all
        of the arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    control_features : array-like, data frame or mapping of columns, optional
        The stratum of each row, such as job, region or year: groups are compared within strata too.
    epsilons : sequence of float
        The half-widths of windows at which MCDP is reported.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    threshold : float, optional
        The threshold of delta-DP, in the scores' own units; None compares mean scores.
    sample_weight : array-like, optional
        Weights that are not negative.
    cluster : array-like, optional
        The person or household that each row belongs to; rows are assumed independent without it.
    score_range : tuple of float or "data"
        The lowest and the highest score there can be; "data" takes those of the scores themselves.
    scale : str
        "score" measures windows in the scores' own units, as fractions of `score_range`; "rank" replaces each
        score by the share of people at or below it, so that an epsilon is a share of people.
    min_group_size : int
        A group with fewer rows among the people compared is too small.
    small_groups : str
        Whether a group that is too small is an error ("raise") or left out and named ("drop").
    disclosure_limit : int
        A group with fewer people is left out and named, as if it were not there, so that nothing of its
        people can be told from what is found; `Audit.to_json` and `Audit.to_html` ask for 10.
    missing_groups : str
        What is done with rows that have no group: an error that counts them ("raise"); left out and counted
        ("drop"); a group of their own ("group"); or left out, with the smallest and the largest MCDP that
        their groups could make ("bound").
    missing_values : str or sequence
        What stands for no group, beside None, NaN and blanks.
    missing : str
        Whether a row without a score, label or weight is an error ("raise") or left out and counted ("drop").
    confidence : float
        The probability with which each interval holds; the lower ends of all pairs, labels and epsilons hold
        together.
    method : str, optional
        How intervals are made, "finite_sample" or "bootstrap", as in `mcdp_interval`; where the test does not
        reject parity for a pair, its interval goes down to 0.
    n_resamples : int
        How many resamples the test draws, and the bootstrap; 0 leaves the test out.
    random_state : int, Generator or None
        The same seed gives the same result.
    n_jobs : int, optional
        How many resamples run at a time, -1 for as many as there are cores.
    higher_is : str, optional
        Whether a higher score is the "better" or the "worse" outcome for a person, for the sentences.
    on_resample : callable, optional
        Called without arguments after each resample, to show progress.

    Returns
    -------
    Audit
        Findings at each epsilon, all pairs, all groups.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", "m"]
    >>> found = lp.audit(None, scores, sensitive_features=sex, epsilons=[0, 0.1], random_state=0)
    >>> [finding.mcdp for finding in found.findings]
    [0.6666666666666666, 0.3333333333333333]
    """
    at = np.unique(as_epsilons(epsilons, "epsilons"))
    if not at.size:
        raise ValueError("epsilons must have at least one number, got none")
    comparison = Comparison(criterion, compare, min_group_size)
    scaled = ScoreScale.of(scale, score_range)
    policy = MissingPolicy.of(missing_groups, missing, missing_values)
    if not comparison.needs_labels and not isinstance(y_true, Predictions | ScoreCounts):
        y_true = None
    arrays = {"y_true": y_true, "y_score": y_score, "sensitive_features": sensitive_features}
    arrays |= {"sample_weight": sample_weight, "cluster": cluster, "control_features": control_features}
    if scaled.measured != "score" and (policy.groups == "bound" or control_features is not None):
        name = "missing_groups='bound'" if control_features is None else "control_features"
        raise ValueError(f"{name} needs scale='score' and a score_range of two numbers")
    found_range = scaled.range_of(y_true, y_score)
    check = partial(as_people, comparison, score_range=found_range, blanks=policy.blanks)
    (data, strata), lacking = checked_rows(check, arrays, policy)
    everyone = as_counts(data)
    counts, unknown = policy.settle(everyone)
    counts, left_out = _counts_compared(counts, comparison, small_groups, disclosure_limit, scaled)
    draws = Draws(as_count(n_resamples, "n_resamples", at_least=0), random_state, n_jobs, on_resample)
    found_method = as_interval_method(method, counts)
    threshold = None if threshold is None else as_threshold(threshold, counts.score_range)
    evidence = Evidence.gather(
        counts,
        comparison,
        at,
        threshold=threshold,
        confidence=as_probability(confidence),
        method=found_method,
        draws=draws,
    )
    pairs = evidence.pairs()
    return Audit(
        comparison=comparison,
        score_range=counts.score_range,
        method=found_method,
        n_resamples=draws.n_resamples,
        threshold=threshold,
        higher_is=as_higher_is(higher_is),
        groups=summarise_groups(counts, comparison, pairs),
        findings=evidence.findings(),
        pairs=pairs,
        left_out=left_out,
        counts=counts,
        missing=lacking.with_groups(unknown),
        scale=scaled.measured,
        unknown_groups=policy.bounds(
            everyone, counts.groups, comparison, epsilons=at, disclosure_limit=disclosure_limit
        ),
        library=library_of(y_score, sensitive_features),
        within_strata=None
        if strata is None
        else strata.compared(counts.groups, comparison, at, draws, disclosure_limit=disclosure_limit),
    )


def _counts_compared(
    counts: ScoreCounts,
    comparison: Comparison,
    small_groups: SmallGroups,
    disclosure_limit: int,
    scaled: ScoreScale,
) -> tuple[ScoreCounts, tuple[LeftOut, ...]]:
    """The counts of the groups that are compared, and the groups that are left out."""
    shown = replace(comparison, min_group_size=as_count(disclosure_limit, "disclosure_limit"))
    check_identifier(counts)
    left_out: tuple[LeftOut, ...] = ()
    if shown.min_group_size > 1:
        counts, left_out = without_small_groups(counts, shown, "disclosure_limit")
    if as_choice(small_groups, "small_groups", get_args(SmallGroups)) == "drop":
        counts, small = without_small_groups(counts, comparison)
        left_out += small
    check_group_count(counts, comparison)
    advice = "pass cluster=ids of people, or one row for each person: intervals and p-values are too sure"
    warn_of_copies(copies_of(counts), advice, stacklevel=3)
    counts = scaled.apply(counts)
    warn_of_narrow_scores(counts, stacklevel=3)
    return counts, left_out
