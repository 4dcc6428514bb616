"""The evidence of an audit: every pair of groups measured, with its intervals and its test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from localparity._progress import foretold
from localparity._types import BoolArray, FloatArray
from localparity.auditing._findings import ROUNDING, Finding, PairSummary
from localparity.auditing._options import AuditOptions
from localparity.counts import ScoreCounts
from localparity.metrics import GapCurve, Interval, Window
from localparity.metrics._gap_curve import each_gap_curve
from localparity.metrics._profile import carried_half_widths
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
    """The measures of all pairs, with the intervals, the bands and the test of each.

    Attributes
    ----------
    measures : list of PairMeasures
        One for each pair, and label where people are compared by label.
    epsilons : ndarray
        The half-widths of windows, ascending.
    too_wide : ndarray of bool
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
