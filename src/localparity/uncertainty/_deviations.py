"""How far groups may be from their true distributions: draws of the multiplier bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from localparity._types import FloatArray
from localparity.counts._comparison import Comparison
from localparity.counts._rows import ClusteredRows
from localparity.counts._score_counts import ScoreCounts, Stratum, strata_of
from localparity.metrics._gap_curve import units_of
from localparity.metrics._profile import carried_half_widths
from localparity.uncertainty._resampling import (
    Draws,
    Measuring,
    PairRows,
    Ranges,
    Resampled,
    equal_cells,
    mcdp_of_pairs,
    resample,
    studentised_pairs,
    worst_of_pairs,
)

# Deviations are seen at as many thresholds as this many differences of two distributions allow for.
_PAIRS_BY_KNOTS = 2**18
LEAST_KNOTS, MOST_KNOTS = 2**10, 2**13
# Rows that a deviation supposes at either end of the scores, as Agresti and Coull do for one proportion.
_PSEUDO_ROWS = 2.0


@dataclass(frozen=True, eq=False)
class Deviations:
    """The groups of one stratum at common thresholds, with about as much of them between any two."""

    unit_knots: FloatArray  # the thresholds, as fractions of the score range
    weights: FloatArray  # for each group, the weight at each knot; without weights, its rows there
    squares: FloatArray  # for each group, the sum of the squared weights at each knot
    heaviest: FloatArray  # for each group, the most that a row, or a cluster, weighs
    degrees: FloatArray  # for each group, the degrees of freedom of the sum of its squared weights
    # The rows one by one, where several belong to one cluster; their scores are places among the knots
    clusters: ClusteredRows | None = None

    @classmethod
    def of_stratum(cls, stratum: Stratum, n_knots: int, clusters: ClusteredRows | None = None) -> Deviations:
        """Lay the groups of a stratum on common thresholds, in the scores' own units."""
        knots = common_knots(stratum, n_knots)
        sums = []
        for atoms in stratum.values():
            at = np.searchsorted(knots, atoms.scores)
            sums.append(
                [np.bincount(at, each, minlength=knots.size) for each in (atoms.weights, atoms.squares)]
            )
        weights, squares = np.swapaxes(sums, 0, 1)
        heaviest = np.array([np.max(atoms.squares / atoms.weights) for atoms in stratum.values()])
        degrees = np.array([atoms.degrees for atoms in stratum.values()])
        if clusters is not None:
            heaviest, degrees = clusters.largest, clusters.degrees
            clusters = replace(clusters, scores=np.searchsorted(knots, clusters.scores))
        return cls(knots, weights, squares, heaviest, degrees, clusters)

    @cached_property
    def totals(self) -> FloatArray:
        """The weight of each group."""
        return np.asarray(self.weights.sum(axis=1))

    @cached_property
    def effective_sizes(self) -> FloatArray:
        """How many independent rows of one weight would be as precise, were a cluster's rows all alike."""
        squares = self.squares.sum(axis=1) if self.clusters is None else self.clusters.squares
        return np.asarray(self.totals**2 / squares, dtype=np.float64)

    @cached_property
    def inflation(self) -> FloatArray:
        """What a group's deviations are multiplied with, since their size is itself an estimate."""
        return inflation_of(self.degrees)

    def deviated(self, comparison: Comparison, rng: np.random.Generator) -> FloatArray:
        r"""How far each distribution may be from the true one: a draw of the multiplier bootstrap.

        To a group's distribution F, row i contributes w_i (1(s_i <= y) - F(y)) / sum w_i in first order; rows
        of one cluster contribute together. Each contribution is multiplied with an independent standard
        normal number. Two rows as heavy as any at either end of the scores keep a group of few or equal
        scores from looking as if it were known.
        """
        supposed = _PSEUDO_ROWS * self.heaviest
        ends = supposed / np.sqrt(_PSEUDO_ROWS) * rng.standard_normal((2, supposed.size))
        if self.clusters is None:
            drawn = rng.standard_normal(self.squares.shape) * self._deviations
        else:
            drawn = self.clusters.multiplied(self.unit_knots.size, rng)
        moved = np.cumsum(np.asarray(drawn * self.inflation[:, None]), axis=1) + ends[0][:, None]
        in_all = moved[:, -1] + ends[1]
        totals, shares = self.totals, self._padded_shares
        if comparison.compare == "to_overall":
            moved = np.vstack([moved, moved.sum(axis=0)])
            in_all, totals = np.append(in_all, in_all.sum()), np.append(totals, totals.sum())
        else:
            shares = shares[:-1]
        return np.asarray((moved - shares * in_all[:, None]) / totals[:, None], dtype=np.float64)

    @cached_property
    def _padded_shares(self) -> FloatArray:
        """The distributions of the groups, and of everyone, with the rows supposed at either end."""
        supposed = _PSEUDO_ROWS * self.heaviest
        below = np.cumsum(self.weights, axis=1) + supposed[:, None]
        below = np.vstack([below, below.sum(axis=0)])
        totals = self.totals + 2.0 * supposed
        return np.asarray(below / np.append(totals, totals.sum())[:, None], dtype=np.float64)

    @cached_property
    def _deviations(self) -> FloatArray:
        return np.asarray(np.sqrt(self.squares), dtype=np.float64)

    def pairs(self, comparison: Comparison) -> PairRows:
        """The pairs that are compared, studentised by how far their groups deviate."""
        variances = variances_of(self.degrees, self.effective_sizes, self.heaviest / self.totals)
        return studentised_pairs(comparison, variances, self.totals)

    def farthest(self, comparison: Comparison, rng: np.random.Generator) -> float:
        """The largest scaled difference of a pair's two deviations, each at its threshold."""
        drawn = self.deviated(comparison, rng)
        # Below all scores and from the highest on, nothing deviates.
        high, low = drawn.max(axis=1, initial=0.0), drawn.min(axis=1, initial=0.0)
        first, second, scale = self.pairs(comparison)
        return float((scale * np.maximum(high[first] - low[second], high[second] - low[first])).max())

    def seen(self, comparison: Comparison, half_widths: FloatArray) -> FloatArray:
        """MCDP of each pair (rows) at each half-width, at these thresholds."""
        weights = self.weights
        if comparison.compare == "to_overall":
            weights = np.vstack([weights, weights.sum(axis=0)])
        below = np.cumsum(weights, axis=1)
        below /= below[:, -1:].copy()
        return mcdp_of_pairs(below, self.pairs(comparison), Ranges.at_knots(self.unit_knots, half_widths))

    def measuring(self, comparison: Comparison, half_widths: FloatArray) -> Measuring:
        """Resamples of the deviations, each from a random stream."""
        pairs, ranges = self.pairs(comparison), Ranges.at_knots(self.unit_knots, half_widths)

        def measure(streams: Sequence[np.random.Generator]) -> FloatArray:
            drawn = np.stack([self.deviated(comparison, stream) for stream in streams], axis=1)
            return worst_of_pairs(drawn, pairs, ranges)

        return Measuring(measure, pairs.scale, self.unit_knots.size)


def inflation_of(degrees: FloatArray) -> FloatArray:
    """Student's quantile over the normal one, at Satterthwaite's degrees of freedom of a sum of squares."""
    from scipy.stats import norm, t

    return np.asarray(t.ppf(0.975, np.maximum(degrees, 1.0)) / norm.ppf(0.975))


def variances_of(degrees: FloatArray, effective_sizes: FloatArray, heaviest: FloatArray) -> FloatArray:
    """How much each group's distribution deviates, by its rows and by those supposed at the ends."""
    return np.asarray(inflation_of(degrees) ** 2 / effective_sizes + 2.0 * _PSEUDO_ROWS * heaviest**2)


def common_knots(stratum: Stratum, n_knots: int) -> FloatArray:
    """About so many of the groups' scores, between which lies about as much of the mean distribution."""
    scores = np.concatenate([atoms.scores for atoms in stratum.values()])
    order = np.argsort(scores, kind="stable")
    scores = scores[order]
    starts = np.flatnonzero(np.append(True, scores[1:] > scores[:-1]))
    shares = np.concatenate([atoms.weights / atoms.weights.sum() for atoms in stratum.values()])
    return scores[starts[equal_cells(np.add.reduceat(shares[order], starts), n_knots)]]


def deviations_of(counts: ScoreCounts, comparison: Comparison) -> list[Deviations]:
    """The deviations under each label that a criterion compares, on few enough knots to be drawn often."""
    strata = strata_of(counts, comparison)
    n_pairs = len(comparison.pairs(range(len(counts.groups)))) * len(strata)
    n_knots = int(np.clip(_PAIRS_BY_KNOTS // n_pairs, LEAST_KNOTS, MOST_KNOTS))
    deviations = []
    for label, stratum in strata.items():
        clusters = None if counts.clusters is None else counts.clusters.among(list(stratum), label)
        laid = Deviations.of_stratum(stratum, n_knots, clusters)
        unit_knots = units_of(laid.unit_knots, counts.score_range, counts.resolution)
        deviations.append(replace(laid, unit_knots=unit_knots))
    return deviations


def deviation_resamples(
    counts: ScoreCounts, comparison: Comparison, epsilons: FloatArray, draws: Draws
) -> Resampled:
    """How far the gaps of the counts' curves may be off, by the multiplier bootstrap."""
    strata = deviations_of(counts, comparison)
    half_widths = carried_half_widths(epsilons, counts.resolution)
    seen = np.concatenate([stratum.seen(comparison, half_widths) for stratum in strata])
    sources = [stratum.measuring for stratum in strata]
    return resample(
        sources, draws, comparison=comparison, epsilons=epsilons, seen=seen, resolution=counts.resolution
    )
