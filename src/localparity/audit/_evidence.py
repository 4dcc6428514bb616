"""What is measured of all pairs for an audit: intervals, the test against parity, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from localparity._types import BoolArray, FloatArray
from localparity.audit._findings import ROUNDING, Finding, PairSummary
from localparity.counts import Comparison, ScoreCounts
from localparity.metrics import GapCurve, Interval
from localparity.metrics._gap_curves import gap_curves
from localparity.metrics._profile import carried_half_widths
from localparity.uncertainty._bands import band_radii, bootstrap_radii
from localparity.uncertainty._intervals import pair_intervals, worst_intervals
from localparity.uncertainty._permutation import ParityTest, parity_resamples, parity_test
from localparity.uncertainty._pool import Pool
from localparity.uncertainty._resampling import Draws, least_resamples, resample_counts


@dataclass(frozen=True, eq=False)
class Evidence:
    """The curves of all pairs, with the intervals, the bands and the test of each.

    Attributes
    ----------
    curves : sequence of GapCurve
        The curves.
    epsilons : ndarray
        The half-widths of windows, ascending.
    intervals : list of list of Interval
        For each curve, the interval at each epsilon.
    radii : ndarray
        How far the true gap of each curve may be off anywhere, all curves together.
    test : ParityTest or None
        The test against parity; None where no resamples were drawn.
    """

    curves: Sequence[GapCurve]
    epsilons: FloatArray
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
        confidence: float,
        method: str,
        draws: Draws,
    ) -> Evidence:
        """Draw the resamples, and measure."""
        curves = gap_curves(counts, comparison)
        resampled = None
        if draws.n_resamples:
            resampled = parity_resamples(counts, comparison, epsilons, draws)
        if resampled is not None and not counts.exchangeable:
            # The test's resamples are those of the bootstrap too.
            radii = bootstrap_radii(resampled, confidence)
        else:
            radii = band_radii(counts, comparison, curves, confidence=confidence, method=method, draws=draws)
        intervals = pair_intervals(curves, epsilons, radii, confidence)
        test = None
        if resampled is not None:
            least = np.array([curve.bounds()[0].mcdp_at(epsilons) for curve in curves])
            mcdp = np.array([[at.estimate for at in each] for each in intervals])
            test = parity_test(mcdp, resampled.at_most(least))
            if draws.n_resamples >= least_resamples(confidence):
                error = 1.0 - confidence + ROUNDING
                if counts.exchangeable and len(counts.groups) > 2 and (test.p_values <= error).any():
                    # A deal says what all groups would be alike; a pair may be, though others differ.
                    others = resample_counts(counts, comparison, Pool.deviated, draws, epsilons)
                    test = test.confirmed_by(others.at_most(least))
                intervals = _hold_parity(intervals, test.p_values > error)
        return cls(curves, epsilons, intervals, radii, test)

    def findings(self) -> tuple[Finding, ...]:
        """The worst pair at each epsilon."""
        widest = max(curve.widest_window for curve in self.curves)
        reach = carried_half_widths(self.epsilons, self.curves[0].resolution)
        worst = np.argmax([[at.estimate for at in each] for each in self.intervals], axis=0)
        return tuple(
            Finding(
                float(self.epsilons[place]),
                found.estimate,
                found,
                None if self.test is None else self.test.results[place],
                self.curves[worst[place]].worst_window(float(self.epsilons[place])),
                bool(widest <= reach[place]),
            )
            for place, found in enumerate(worst_intervals(self.intervals))
        )

    def pairs(self, threshold: float | None) -> tuple[PairSummary, ...]:
        """Every pair: the worst first, and those that are too small to judge last."""
        detectable = self._detectable()
        p_values = None if self.test is None else self.test.p_values
        found = [
            PairSummary(
                curve.groups,
                curve.label,
                tuple(each.estimate for each in self.intervals[place]),
                tuple(self.intervals[place]),
                None if p_values is None else tuple(p_values[place].tolist()),
                float(detectable[place]) if detectable[place] < 1.0 else None,
                float(self.radii[place]),
                curve.abcc(),
                abs(curve.mean_difference() if threshold is None else curve(threshold)),
                curve.worst_window(float(self.epsilons[0])),
            )
            for place, curve in enumerate(self.curves)
        ]
        return tuple(sorted(found, key=lambda pair: (pair.too_small, *(-value for value in pair.mcdp))))

    def _detectable(self) -> FloatArray:
        """For each pair, what MCDP must exceed to be told from chance: by the test, or by its interval."""
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
