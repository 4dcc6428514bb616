"""What an audit says of each group, of each pair and at each epsilon."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from localparity._progress import foretold
from localparity._text import group_text
from localparity._types import BoolArray, FloatArray, Group
from localparity._validation import InputError, InputWarning, setting
from localparity.auditing._options import AuditOptions
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._score_counts import strata_of
from localparity.metrics import GapCurve, Interval, Window
from localparity.metrics._gap_curve import each_gap_curve
from localparity.metrics._profile import carried_half_widths
from localparity.uncertainty import TestResult
from localparity.uncertainty._bands import band_radii, bootstrap_radii, finite_sample_radii
from localparity.uncertainty._deviations import deviation_resamples
from localparity.uncertainty._intervals import (
    MeasuredPair,
    band_intervals,
    finite_sample_intervals,
    measured_pair,
    worst_intervals,
)
from localparity.uncertainty._permutation import ParityTest, parity_test
from localparity.uncertainty._resampling import least_resamples

MOST_GROUPS = 1000
"""More groups than this are not compared with each other, pair by pair."""

_MANY_GROUPS = 20
"""So many groups, and fewer than two rows in each on average, are a sign that they are people."""

ROUNDING = 1e-9
"""1 - 0.9 is a little less than 0.1, and a p-value of 0.1 is small enough at a confidence of 0.9."""

TOO_COARSE = 0.5
"""A pair is too small to judge where only a measured MCDP above this would be significant."""


@dataclass(frozen=True, kw_only=True)
class GroupSummary:
    """A group among the people compared.

    Attributes
    ----------
    group, label : hashable, int or None
        The group, and the label of the people compared.
    rows : int
        How many rows it has.
    effective_rows : float
        How many independent rows of one weight would be as precise.
    mean_score : float
        The (weighted) mean of its scores.
    too_small : bool
        Whether no comparison of the group could tell a gap of half its people from chance.

    Examples
    --------
    >>> import localparity as lp
    >>> found = lp.audit(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> [(group.group, group.rows) for group in found.groups]
    [('a', 2), ('b', 2)]
    """

    group: Group
    label: int | None
    rows: int
    effective_rows: float
    mean_score: float
    too_small: bool


@dataclass(frozen=True)
class LeftOut:
    """A group that was left out because it is too small.

    Attributes
    ----------
    group : hashable
        The group.
    fewer_than : int
        It has fewer people than this; where people are compared by label, fewer of one of the labels.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, groups = [0.1, 0.4, 0.6, 0.9, 0.5], ["a", "a", "b", "b", "c"]
    >>> lp.audit(
    ...     None, scores, sensitive_features=groups, min_group_size=2, random_state=0
    ... ).left_out
    (LeftOut(group='c', fewer_than=2),)
    """

    group: Group
    fewer_than: int

    def __str__(self) -> str:
        return f"{group_text(self.group)} (fewer than {self.fewer_than:,})"


@dataclass(frozen=True, kw_only=True)
class PairSummary:
    """One pair of groups.

    Attributes
    ----------
    groups, label : tuple, int or None
        The pair, and the label of the people compared.
    mcdp : tuple of float
        MCDP at each epsilon.
    intervals : tuple of Interval
        Its interval at each epsilon; the lower ends of all pairs, labels and epsilons hold together.
    p_values : tuple of float or None
        The p-value at each epsilon, adjusted over all pairs, labels and epsilons; None without a test.
    detectable : float or None
        How large a measured MCDP at the first epsilon must be to be significant at these sizes; None where
        not even a gap of 1 would be. A true MCDP of that size may be found in only about half of all audits;
        `minimum_detectable` plans for more.
    radius : float
        How far the true gap may be from the measured one at any threshold, all pairs and labels together.
    abcc, delta_dp : float
        The area between the two distributions, and the difference of mean scores or of selection rates.
    window : Window
        Where the gap is largest, at the smallest epsilon.

    Examples
    --------
    >>> import localparity as lp
    >>> found = lp.audit(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> found.pairs[0].groups, found.pairs[0].mcdp
    (('a', 'b'), (1.0, 1.0, 1.0, 0.5))
    """

    groups: tuple[Group, Group]
    label: int | None
    mcdp: tuple[float, ...]
    intervals: tuple[Interval, ...]
    p_values: tuple[float, ...] | None
    detectable: float | None
    radius: float
    abcc: float
    delta_dp: float
    window: Window

    @property
    def too_small(self) -> bool:
        """Whether nothing is significant, and only a gap of more than half the people could be."""
        coarse = self.detectable is None or self.detectable > TOO_COARSE
        return coarse and not any(self.significant_at(place, by_test=True) for place in range(len(self.mcdp)))

    def significant_at(self, place: int, *, by_test: bool) -> bool:
        """Return whether the disparity at one of the epsilons can be distinguished from chance.

        Parameters
        ----------
        place : int
            The place of the epsilon among the audit's.
        by_test : bool
            Whether the p-value counts as well as the interval.

        Returns
        -------
        bool
        """
        p_values = self.p_values if by_test else None
        error = 1.0 - self.intervals[place].confidence + ROUNDING
        rejected = p_values is not None and p_values[place] <= error
        return rejected or self.intervals[place].low > 0.0

    @property
    def strength(self) -> float:
        """How large MCDP at the smallest epsilon is, compared with chance at these sizes."""
        return self.mcdp[0] / self.radius


@dataclass(frozen=True, kw_only=True)
class Finding:
    """MCDP at one epsilon, of the worst pair.

    Attributes
    ----------
    epsilon, mcdp : float
        The half-width of the windows, and MCDP.
    interval : Interval
        Its interval.
    test : TestResult or None
        The test against parity of all pairs; None where none was made.
    window : Window
        Where the gap is largest, and between whom.
    too_wide : bool
        Whether MCDP is 0 whatever the groups, since the scores do not span a window of this width.

    Examples
    --------
    >>> import localparity as lp
    >>> found = lp.audit(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> found.findings[0].mcdp, found.findings[0].window.low, found.findings[0].window.high
    (1.0, 0.4, 0.6)
    """

    epsilon: float
    mcdp: float
    interval: Interval
    test: TestResult | None
    window: Window
    too_wide: bool

    def __repr__(self) -> str:
        ends = f"{100 * self.interval.low:.1f} to {100 * self.interval.high:.1f}"
        sure = f"({ends}, {100 * self.interval.confidence:g}%)"
        return f"MCDP({self.epsilon:g}): {100 * self.mcdp:.1f} points {sure}"


def summarise_groups(
    counts: ScoreCounts, comparison: Comparison, pairs: Sequence[PairSummary]
) -> tuple[GroupSummary, ...]:
    """Every group under every label whose people are compared."""
    judged = {(pair.label, group) for pair in pairs if not pair.too_small for group in pair.groups}
    found = []
    for label, stratum in strata_of(counts, comparison).items():
        effective = [atoms.effective_size for atoms in stratum.values()]
        if counts.clusters is not None:
            rows = counts.clusters.among(list(stratum), label)
            totals = [float(atoms.weights.sum()) for atoms in stratum.values()]
            effective = (np.square(totals) / rows.squares).tolist()
        found += [
            GroupSummary(
                group=group,
                label=label,
                rows=atoms.size,
                effective_rows=size,
                mean_score=float(np.average(atoms.scores, weights=atoms.weights)),
                too_small=(label, group) not in judged,
            )
            for (group, atoms), size in zip(stratum.items(), effective, strict=True)
        ]
    return tuple(found)


def check_identifier(counts: ScoreCounts) -> None:
    """Whether the groups are groups of people, and not the people themselves."""
    groups, rows = len(counts.groups), sum(atoms.size for atoms in counts.atoms.values())
    if groups > _MANY_GROUPS and rows < 2 * groups:
        raise InputError(
            f"has {groups:,} groups in {rows:,} rows, almost one for each row; is it an identifier of "
            "people?",
            "sensitive_features",
        )


def check_pair_count(counts: ScoreCounts, comparison: Comparison) -> None:
    """Whether there are few enough groups to compare each with each."""
    if comparison.compare == "between_groups" and len(counts.groups) > MOST_GROUPS:
        raise InputError(
            f"there are {len(counts.groups):,} groups, of which at most {MOST_GROUPS:,} are compared pair by "
            f"pair; use {setting(compare='to_overall')}, or a larger {setting('min_group_size')}"
        )


def warn_of_narrow_scores(counts: ScoreCounts, *, stacklevel: int) -> None:
    """Warn where epsilon, a fraction of the range, is wide for these scores."""
    ends = [end for atoms in counts.atoms.values() if atoms.size for end in atoms.scores[[0, -1]].tolist()]
    low, high = counts.score_range
    if ends and max(ends) - min(ends) < 0.1 * high - 0.1 * low:
        name = setting("score_range")
        message = (
            f"the scores lie between {min(ends):.2g} and {max(ends):.2g}, less than a tenth of {name} "
            f"({low:g}, {high:g}), of which epsilon is a fraction; is {name} right?"
        )
        warnings.warn(InputWarning(message), stacklevel=stacklevel + 1)


def without_small_groups(
    counts: ScoreCounts, comparison: Comparison
) -> tuple[ScoreCounts, tuple[LeftOut, ...]]:
    """Leave out every group that has too few of the people compared under any label."""
    small = counts.small_groups(comparison)
    groups, fewest = len(counts.groups), comparison.min_group_size
    if groups - len(small) < 2:
        raise InputError(
            f"{setting(min_group_size=fewest)} leaves {groups - len(small)} of {groups} groups; at least two "
            f"are needed, and a lower {setting('min_group_size')} keeps smaller ones"
        )
    return counts.without(small), tuple(LeftOut(group, fewest) for group in small)


# The evidence: every pair of groups measured, with its intervals and its test.


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
            windows=[curve.worst_window(epsilon) for epsilon in epsilons.tolist()],
            widest_window=curve.widest_window,
            abcc=curve.abcc(),
            delta_dp=abs(curve.mean_difference() if threshold is None else curve(threshold)),
        )


@dataclass(frozen=True, eq=False)
class Evidence:
    """The measures of all pairs at ascending epsilons, with intervals, radii of the bands and the test."""

    measures: list[PairMeasures]
    epsilons: FloatArray
    too_wide: BoolArray
    intervals: list[list[Interval]]
    radii: FloatArray
    test: ParityTest | None

    @classmethod
    def gather(
        cls,
        counts: ScoreCounts,
        options: AuditOptions,
        *,
        method: str,
        threshold: float | None,
    ) -> Evidence:
        """Measure all pairs, and draw the resamples."""
        comparison, epsilons, draws = options.comparison, options.epsilon_array, options.draws
        confidence = options.confidence
        n_pairs = len(comparison.labels) * len(comparison.pair_places(counts.groups))
        curves = foretold(each_gap_curve(counts, comparison), n_pairs, "comparing pairs of groups")
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
                radii = band_radii(
                    counts, comparison, measures, confidence=confidence, method="bootstrap", draws=draws
                )
            intervals = band_intervals(measures, radii, confidence)
        if test is not None and draws.n_resamples >= least_resamples(confidence):
            error = 1.0 - confidence + ROUNDING
            if counts.exchangeable and len(counts.groups) > 2 and (test.p_values <= error).any():
                # A deal says what all groups would be alike; a pair may be, though others differ.
                others = deviation_resamples(counts, comparison, epsilons, draws)
                test = test.confirmed_by(others.at_most(test.resampled[0].seen))
            intervals = _hold_parity(intervals, test.p_values > error)
        widest = max(pair.widest_window for pair in measures)
        too_wide = widest <= carried_half_widths(epsilons, counts.resolution)
        return cls(measures, epsilons, too_wide, intervals, radii, test)

    def findings(self) -> tuple[Finding, ...]:
        """The worst pair at each epsilon."""
        worst = np.argmax([pair.mcdp for pair in self.measures], axis=0)
        return tuple(
            Finding(
                epsilon=float(self.epsilons[index]),
                mcdp=interval.estimate,
                interval=interval,
                test=None if self.test is None else self.test.results[index],
                window=self.measures[worst[index]].windows[index],
                too_wide=bool(self.too_wide[index]),
            )
            for index, interval in enumerate(worst_intervals(self.intervals))
        )

    def pairs(self) -> tuple[PairSummary, ...]:
        """Every pair, the largest gap first and pairs too small to judge last."""
        detectable = self._detectable()
        p_values = None if self.test is None else self.test.p_values
        pairs = [
            PairSummary(
                groups=pair.groups,
                label=pair.label,
                mcdp=tuple(pair.mcdp.tolist()),
                intervals=tuple(self.intervals[index]),
                p_values=None if p_values is None else tuple(p_values[index].tolist()),
                detectable=float(detectable[index]) if detectable[index] < 1.0 else None,
                radius=float(self.radii[index]),
                abcc=pair.abcc,
                delta_dp=pair.delta_dp,
                window=pair.windows[0],
            )
            for index, pair in enumerate(self.measures)
        ]
        return tuple(sorted(pairs, key=lambda pair: (pair.too_small, *(-value for value in pair.mcdp))))

    def _detectable(self) -> FloatArray:
        """For each pair, what MCDP must exceed to be significant, by the test or by its interval."""
        confidence = self.intervals[0][0].confidence
        if self.test is None or len(self.test.resampled[0].scaled) < least_resamples(confidence):
            return self.radii
        return self.test.detectable(confidence)


def _hold_parity(intervals: list[list[Interval]], accepted: BoolArray) -> list[list[Interval]]:
    """The intervals, down to 0 where the test does not reject parity: the two never contradict each other."""
    return [
        [replace(one, low=0.0) if holds else one for one, holds in zip(pair, row, strict=True)]
        for pair, row in zip(intervals, accepted.tolist(), strict=True)
    ]
