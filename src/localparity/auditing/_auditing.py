"""Making an audit: everything that is known of one set of predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from localparity._progress import foretold
from localparity._types import (
    ArrayLike,
    BoolArray,
    Compare,
    Criterion,
    DataRange,
    FloatArray,
    Groups,
    HigherIs,
    IntervalMethod,
    Missing,
    MissingGroups,
    Scale,
    Seed,
)
from localparity._validation import (
    InputError,
    as_choice,
    as_count,
    as_epsilons,
    as_higher_is,
    as_probability,
    as_threshold,
    library_of,
    setting,
)
from localparity.auditing._audit import Audit
from localparity.auditing._control import as_people
from localparity.auditing._findings import (
    ROUNDING,
    Finding,
    LeftOut,
    PairSummary,
    check_group_count,
    check_identifier,
    summarise_groups,
    warn_of_narrow_scores,
    without_small_groups,
)
from localparity.auditing._missing import MissingPolicy, checked_rows
from localparity.auditing._scale import ScoreScale
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._copies import copies_of, warn_of_copies
from localparity.counts._score_counts import Data, as_counts
from localparity.metrics import GapCurve, Interval, Window
from localparity.metrics._gap_curve import each_gap_curve
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.metrics._profile import carried_half_widths
from localparity.predictions import Predictions
from localparity.uncertainty._bands import (
    as_interval_method,
    bootstrap_band,
    bootstrap_radii,
    finite_sample_radii,
)
from localparity.uncertainty._intervals import (
    MeasuredPair,
    band_intervals,
    finite_sample_intervals,
    measured_pair,
    worst_intervals,
)
from localparity.uncertainty._permutation import ParityTest, parity_test
from localparity.uncertainty._resampling import Draws, deviation_resamples, least_resamples

# What is measured of all pairs for an audit: intervals, the test against parity, and what they say.


@dataclass(frozen=True, eq=False, kw_only=True)
class PairMeasures(MeasuredPair):
    """What is measured of one pair; there may be too many pairs to keep their curves."""

    windows: Sequence[Window]
    widest_window: float
    abcc: float
    delta_dp: float

    @classmethod
    def of(cls, curve: GapCurve, epsilons: FloatArray, threshold: float | None) -> PairMeasures:
        """Measure a curve: MCDP and its worst window at each epsilon, and the other metrics."""
        return cls(
            **vars(measured_pair(curve, epsilons)),
            windows=curve.worst_windows(epsilons),
            widest_window=curve.widest_window,
            abcc=curve.abcc(),
            delta_dp=abs(curve.mean_difference() if threshold is None else curve(threshold)),
        )


@dataclass(frozen=True, eq=False)
class Evidence:
    """The measures of all pairs, with the intervals, the bands and the test of each.

    Attributes
    ----------
    measures : list of PairMeasures
        One for each pair, and label where people are compared by label.
    epsilons : ndarray
        The half-widths of windows, ascending.
    vacuous : ndarray of bool
        At each epsilon, whether no pair's scores span a window.
    intervals : list of list of Interval
        For each pair, the interval at each epsilon.
    radii : ndarray
        How far the true gap of each pair may be off anywhere, all pairs together.
    test : ParityTest or None
        The test against parity; None where no resamples were drawn.
    """

    measures: list[PairMeasures]
    epsilons: FloatArray
    vacuous: BoolArray
    intervals: list[list[Interval]]
    radii: FloatArray
    test: ParityTest | None

    @classmethod
    def gather(
        cls,
        counts: ScoreCounts,
        comparison: Comparison,
        epsilons: FloatArray,
        *,
        threshold: float | None,
        confidence: float,
        method: str,
        draws: Draws,
    ) -> Evidence:
        """Measure all pairs, and draw the resamples."""
        n_pairs = len(comparison.labels) * len(comparison.pair_places(counts.groups))
        curves = foretold(each_gap_curve(counts, comparison), n_pairs, "pairs of groups")
        measures = [PairMeasures.of(curve, epsilons, threshold) for curve in curves]
        test = None
        if draws.n_resamples:
            test = parity_test(measures, counts, comparison, epsilons, draws)
        if method == "finite_sample":
            radii = finite_sample_radii(measures, confidence)
            intervals = finite_sample_intervals(measures, confidence)
        else:
            if test is not None and not counts.exchangeable:
                # The test's resamples are those of the bootstrap too.
                radii = bootstrap_radii(test.resampled[0], confidence)
            else:
                radii = bootstrap_band(counts, comparison, confidence, draws)
            intervals = band_intervals(measures, radii, confidence)
        if test is not None and draws.n_resamples >= least_resamples(confidence):
            error = 1.0 - confidence + ROUNDING
            if counts.exchangeable and len(counts.groups) > 2 and (test.p_values <= error).any():
                # A deal says what all groups would be alike; a pair may be, though others differ.
                others = deviation_resamples(counts, comparison, epsilons, draws)
                test = test.confirmed_by(others.at_most(test.resampled[0].seen))
            intervals = _hold_parity(intervals, test.p_values > error)
        widest = max(pair.widest_window for pair in measures)
        vacuous = widest <= carried_half_widths(epsilons, counts.resolution)
        return cls(measures, epsilons, vacuous, intervals, radii, test)

    def findings(self) -> tuple[Finding, ...]:
        """The worst pair at each epsilon."""
        worst = np.argmax([pair.mcdp for pair in self.measures], axis=0)
        return tuple(
            Finding(
                epsilon=float(self.epsilons[place]),
                mcdp=found.estimate,
                interval=found,
                test=None if self.test is None else self.test.results[place],
                window=self.measures[worst[place]].windows[place],
                vacuous=bool(self.vacuous[place]),
            )
            for place, found in enumerate(worst_intervals(self.intervals))
        )

    def pairs(self) -> tuple[PairSummary, ...]:
        """Every pair: the worst first, and those that are too small to judge last."""
        detectable = self._detectable()
        p_values = None if self.test is None else self.test.p_values
        found = [
            PairSummary(
                groups=pair.groups,
                label=pair.label,
                mcdp=tuple(pair.mcdp.tolist()),
                intervals=tuple(self.intervals[place]),
                p_values=None if p_values is None else tuple(p_values[place].tolist()),
                detectable=float(detectable[place]) if detectable[place] < 1.0 else None,
                radius=float(self.radii[place]),
                abcc=pair.abcc,
                delta_dp=pair.delta_dp,
                window=pair.windows[0],
            )
            for place, pair in enumerate(self.measures)
        ]
        return tuple(sorted(found, key=lambda pair: (pair.too_small, *(-value for value in pair.mcdp))))

    def _detectable(self) -> FloatArray:
        """For each pair, what MCDP must exceed to be significant, by the test or by its interval."""
        confidence = self.intervals[0][0].confidence
        if self.test is None or len(self.test.resampled[0].scaled) < least_resamples(confidence):
            return self.radii
        return self.test.detectable(confidence)


def _hold_parity(intervals: list[list[Interval]], accepted: BoolArray) -> list[list[Interval]]:
    """The intervals, down to 0 where the test does not reject parity: the two never contradict each other."""
    return [
        [replace(at, low=0.0) if holds else at for at, holds in zip(each, row, strict=True)]
        for each, row in zip(intervals, accepted.tolist(), strict=True)
    ]


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
        raise InputError("must have at least one number, got none", "epsilons")
    comparison = Comparison(criterion, compare, min_group_size)
    scaled = ScoreScale.of(scale, score_range)
    policy = MissingPolicy.of(missing_groups, missing, missing_values)
    if not comparison.needs_labels and not isinstance(y_true, Predictions | ScoreCounts):
        y_true = None
    arrays = {"y_true": y_true, "y_score": y_score, "sensitive_features": sensitive_features}
    arrays |= {"sample_weight": sample_weight, "cluster": cluster, "control_features": control_features}
    if scaled.measured != "score" and (policy.groups == "bound" or control_features is not None):
        name = "missing_groups='bound'" if control_features is None else "control_features"
        raise InputError(
            f"needs {setting(scale='score')} and a {setting('score_range')} of two numbers", name
        )
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
