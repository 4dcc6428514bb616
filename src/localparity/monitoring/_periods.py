"""A period as it is measured: its sketch, the curves of its pairs, and how much it knows of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from localparity._text import group_text
from localparity._types import FloatArray, Group
from localparity.counts import Comparison, ScoreCounts
from localparity.metrics import GapCurve, Interval, Window
from localparity.metrics._gap_curve import gap_curves
from localparity.monitoring._sketch import ScoreSketch, rank_error_but_for
from localparity.uncertainty._intervals import (
    band_intervals,
    finite_sample_intervals,
    measured_pair,
    worst_intervals,
)
from localparity.uncertainty._looks import average_radius, look_share
from localparity.uncertainty._permutation import parity_resamples
from localparity.uncertainty._resampling import Draws

SKETCH_SHARE = 0.1
"""The share of the error that is left to the sketch."""
_FLOOR_RESAMPLES = 50

Pair = tuple[tuple[Group, Group], int | None]
"""Two groups, and the label of the people compared."""


@dataclass(frozen=True)
class Period:
    """A period's sketch, the look that changed it last, and the number of newer periods at that look."""

    name: str
    look: int
    newer: int
    sketch: ScoreSketch
    comparison: Comparison

    @cached_property
    def _counts(self) -> ScoreCounts:
        return self.sketch.counts()

    @cached_property
    def missing(self) -> str:
        """Why there is nothing to compare, else an empty text."""
        small = self._counts.small_groups(self.comparison)
        if len(self._counts.groups) > 1 and not small:
            return ""
        named = ", ".join(map(repr, small or self._counts.groups))
        if not small:
            return f"the period has one group only, {named}"
        if self.rows is None:
            return f"a group has fewer than {self.comparison.min_group_size} rows to compare"
        return f"group {named} has no rows to compare"

    @property
    def rows(self) -> int | None:
        """The number of rows; None where a group is so small that nothing is said of it, nor of its share."""
        is_private = self.comparison.min_group_size > 1 and self._counts.small_groups(self.comparison)
        return None if is_private else self.sketch.size

    @property
    def groups(self) -> dict[str, int]:
        """The number of people of each group."""
        sizes: dict[str, int] = {}
        for (group, _), atoms in self._counts.atoms.items():
            sizes[group_text(group)] = sizes.get(group_text(group), 0) + atoms.size
        return sizes

    @cached_property
    def curves(self) -> list[GapCurve]:
        """The curve of each pair; none where there is nothing to compare."""
        return [] if self.missing else gap_curves(self._counts, self.comparison)

    @cached_property
    def information(self) -> dict[Pair, float]:
        """How much the period knows of each pair, the inverse of the variance of its gap."""
        return {
            (curve.groups, curve.label): 1.0 / variance_of(curve, self.comparison) for curve in self.curves
        }

    @property
    def approximate(self) -> bool:
        """Whether the sketch keeps a part of the scores only, so that its numbers are approximate."""
        return self.rank_error(1.0) > 0.0

    def interval(self, epsilon: float, confidence: float) -> Interval:
        """MCDP in the period."""
        epsilons, error = np.array([epsilon]), 1.0 - confidence
        pairs = [measured_pair(curve, epsilons) for curve in self._curves_within(error)]
        intervals = finite_sample_intervals(pairs, 1.0 - (1.0 - SKETCH_SHARE) * error)
        return replace(worst_intervals(intervals)[0], confidence=confidence)

    def window(self, epsilon: float) -> Window:
        """Where the pair of the largest MCDP differs most."""
        return max((curve.worst_window(epsilon) for curve in self.curves), key=lambda window: window.gap)

    def interval_at_every_look(self, epsilon: float, confidence: float) -> Interval:
        """MCDP among the period's people; the intervals of all looks hold together."""
        error = (1.0 - confidence) * look_share(self.look)
        each = (1.0 - SKETCH_SHARE) * error / len(self.curves)
        radii = [average_radius(variance_of(curve, self.comparison), each) for curve in self.curves]
        return interval_of(self._curves_within(error), epsilon, np.array(radii), confidence)

    def _curves_within(self, error: float) -> list[GapCurve]:
        """The curves with what the sketch is off by at most, but for its share of an error."""
        rank_error = self.rank_error(error)
        if rank_error == 0.0:
            return self.curves
        return [replace(curve, rank_error=rank_error) for curve in self.curves]

    def rank_error(self, error: float) -> float:
        """How far the sketch is off, but for its share of an error."""
        return rank_error_but_for(self.sketch, SKETCH_SHARE * error)

    def expected(self, epsilon: float) -> float:
        """MCDP expected between groups of these sizes and scores that do not differ."""
        draws = Draws(_FLOOR_RESAMPLES, random_state=0)
        resamples = parity_resamples(self._counts, self.comparison, np.array([epsilon]), draws)
        return float(resamples.worst.mean())


def variance_of(curve: GapCurve, comparison: Comparison) -> float:
    """The sum of the squared weights of a curve's rows, as `average_radius` takes it.

    A row weighs 1 / n in a group of n. In the gap between a group and all N people, of whom it has n, its own
    rows weigh 1 / n - 1 / N and the others 1 / N, which makes 1 / n - 1 / N in all.
    """
    first, second = curve.sizes
    return (
        1.0 / first + 1.0 / second if comparison.compare == "between_groups" else 1.0 / first - 1.0 / second
    )


def interval_of(curves: Sequence[GapCurve], epsilon: float, radii: FloatArray, confidence: float) -> Interval:
    """MCDP of the worst pair, given the radius of the band of each."""
    pairs = [measured_pair(curve, np.array([epsilon])) for curve in curves]
    (interval,) = worst_intervals(band_intervals(pairs, radii, confidence))
    return interval


def average_curves(periods: Sequence[Period], error: float) -> dict[Pair, GapCurve]:
    """The average curve of each pair, in which periods weigh as much as they know of it.

    People are compared with those of the same period: where scores and the shares of groups both change, all
    people together can differ although in no period they do. The sketches have a share of an error.
    """
    rank_errors = [period.rank_error(error / len(periods)) for period in periods]
    parts: dict[Pair, list[tuple[GapCurve, float, float]]] = {}
    for period, rank_error in zip(periods, rank_errors, strict=True):
        for curve, (pair, weight) in zip(period.curves, period.information.items(), strict=True):
            parts.setdefault(pair, []).append((curve, weight, rank_error))
    return {pair: _average(*zip(*of_pair, strict=True)) for pair, of_pair in parts.items()}


def _average(curves: Sequence[GapCurve], weights: Sequence[float], rank_errors: Sequence[float]) -> GapCurve:
    """The weighted average of a pair's curves."""
    shares = np.array(weights) / np.sum(weights)
    knots = np.concatenate([curve.knots for curve in curves])
    steps = np.concatenate([np.diff(curve.gap, prepend=0.0) for curve in curves])
    # The knots of each curve ascend, which a stable sort makes use of.
    order = np.argsort(knots, kind="stable")
    knots = knots[order]
    gap = np.cumsum((steps * np.repeat(shares, [curve.knots.size for curve in curves]))[order])
    gap[-1] = 0.0
    last = np.append(knots[1:] != knots[:-1], True)
    first, second = np.sum([curve.sizes for curve in curves], axis=0).tolist()
    return replace(
        curves[0],
        knots=knots[last],
        gap=gap[last],
        sizes=(first, second),
        resolution=max(curve.resolution for curve in curves),
        rank_error=float(shares @ np.array(rank_errors)),
    )
