"""Whether one of two models that scored the same people is nearer to parity.

What is peculiar to the people is in both MCDPs and drops out of their difference. Two statements are made,
under different assumptions.

**The p-value** is that of a swap test. Its null is that within each person the two scores are exchangeable,
given the person's group (and label, where the criterion looks at labels, and weight): the pair (s, t) is as
likely as (t, s). Any choice of people whose two scores are swapped then gives data that are as likely, so the
p-value is valid at any sample size, with ties, small groups and weights. It needs independent people, or
clusters, and both models on one scale. Two models of different scores that happen to have the same MCDP are
not under this null.

**The interval** is for the difference of the two MCDPs itself, whatever the scores. People, or clusters, are
weighted at random, both of a person's scores alike (the Bayesian bootstrap), which shows the spread of the
difference and its bias. Each MCDP is too large on average, by a bias b: the maximum picks up chance. The
bootstrap adds chance a second time and shows how much larger MCDP then is, beta. With noise of size t the
bias b(t) is convex, for MCDP(0) is the largest of functions that are linear in the gap, so that
b(1) <= (b(sqrt 2) - b(1)) / (sqrt 2 - 1), whose numerator the bootstrap measures. The interval allows for
three cases, each model by itself, and holds in large samples; Student's quantile allows for few people.

- *Many thresholds compete* for the largest gap, as near parity. Then b grows in proportion to t, and lies
  between beta and (sqrt 2 + 1) beta, with the spread of the weighted differences.
- *Few thresholds compete*, as with few distinct scores. Then b grows with t squared, or more slowly at first,
  and lies between 0 and beta. But chance may have put the thresholds in order, and the weighted differences
  spread too little. The difference D spreads at most as if its thresholds were fixed: by the inequality of
  Efron and Stein, Var(D) is at most the mean of the sum of (dD / dw_i)^2, with the slopes of people weighted
  as they are or at random, whichever are steeper.
- *A model is at parity.* Where its gap is nowhere larger than what random weights make of it, its MCDP may be
  0 and all of what is measured bias, however little of that the bootstrap shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._scale import clip_to_range
from localparity._types import ArrayLike, Compare, Criterion, FloatArray, Groups, IntArray, ScoreRange, Seed
from localparity._validation import as_epsilon, as_jobs, as_probability, as_vector, check_rows
from localparity.counts._comparison import Comparison, require_labels
from localparity.metrics._exact import worst_mcdp
from localparity.metrics._gap_curve import Interval, units_of
from localparity.metrics._profile import carried_half_widths
from localparity.predictions import Names, Predictions, check_predictions
from localparity.uncertainty._bands import check_resamples
from localparity.uncertainty._kernels import PairSteps, ScoreArrays, mcdp_of_models
from localparity.uncertainty._permutation import p_value_of
from localparity.uncertainty._resampling import Draws, critical_value, repeat

_MOST_BIAS = np.sqrt(2.0) + 1.0  # how many times the bias that the bootstrap shows the true one may be
_NUDGE = 1e-3  # how much weights change to show a slope, so little that thresholds do not move


@dataclass(frozen=True)
class PairedComparison:
    """Two models on the same people.

    Attributes
    ----------
    first, second : float
        MCDP(epsilon) of each model.
    difference : Interval
        The second less the first, so that a negative one favours the second, with an interval.
    p_value : float
        How often swapping the two models' scores within people at random gives as large a difference, of
        either sign, counting the data itself as one of the swaps.

    Examples
    --------
    >>> import localparity as lp
    >>> groups = ["a", "b"] * 50
    >>> first, second = [0.25, 0.75] * 50, [0.25, 0.25, 0.75, 0.75] * 25
    >>> found = lp.compare_scores(None, first, second, sensitive_features=groups, random_state=0)
    >>> found
    PairedComparison(1 and 0; difference -1 (-1 to -0.7944, 95%), p-value 0.000999)
    """

    first: float
    second: float
    difference: Interval
    p_value: float

    def __repr__(self) -> str:
        models = f"{self.first:.4g} and {self.second:.4g}"
        return f"PairedComparison({models}; difference {self.difference!r}, p-value {self.p_value:.4g})"


def compare_scores(
    y_true: ArrayLike | None,
    first_scores: ArrayLike,
    second_scores: ArrayLike,
    *,
    sensitive_features: Groups,
    epsilon: float = 0.0,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: Seed = None,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    n_jobs: int | None = None,
) -> PairedComparison:
    """Compare the MCDP(epsilon) of two models that scored the same people.

    The p-value tests whether the two scores of a person are exchangeable, given the person's group (and
    label, where the criterion looks at labels): the scores of both models are swapped within people chosen at
    random, those of a cluster together. It is valid at any sample size, for independent people or clusters.
    It does not test whether two models of different scores have the same MCDP. The interval of the difference
    does: a bootstrap of people that allows for chance in each MCDP and in the choice of the worst threshold.
    It holds in large samples, for epsilon = 0.

    Neither knows how the models came to be: scores on a model's training rows, or of the best of many models
    chosen on these rows, look better than they are.

    Parameters
    ----------
    y_true : array-like or None
        Labels 0 and 1; None where the criterion does not need them.
    first_scores, second_scores : array-like
        The scores of the two models, row by row of the same people and on the same scale.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    epsilon : float
        The half-width of the windows, as a fraction of the score range.
    confidence : float
        The probability that the interval holds the true difference.
    n_resamples : int
        How many times scores are swapped, and people weighted anew.
    random_state : int, Generator or None
        The same seed gives the same result.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    sample_weight : array-like, optional
        Weights that are not negative.
    cluster : array-like, optional
        The person or household that each row belongs to; rows are assumed independent without it.
    score_range : tuple of float
        The lowest and the highest score there can be.
    min_group_size : int
        A group with fewer rows among the people compared is an error.
    n_jobs : int, optional
        How many resamples run at a time, -1 for as many as there are cores.

    Returns
    -------
    PairedComparison
        `first`, `second`, `difference` and `p_value`.

    Examples
    --------
    >>> import numpy as np
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> sex = census.sensitive_features
    >>> nearer = np.where(sex == "Male", 0.9 * census.score, census.score)
    >>> found = lp.compare_scores(None, census.score, nearer, sensitive_features=sex, random_state=0)
    >>> found.difference.high < 0.0, found.p_value
    (True, 0.000999000999000999)
    """
    epsilons = np.array([as_epsilon(epsilon)])
    confidence = as_probability(confidence)
    comparison = Comparison(criterion, compare, min_group_size)
    require_labels(comparison, y_true)
    labels = y_true if comparison.needs_labels else None
    named = {"first_scores": first_scores, "second_scores": second_scores}
    n_first, n_second = (as_vector(scores, name).size for name, scores in named.items())
    check_rows("second_scores", n_second, n_first, "first_scores")
    options: dict[str, Any] = {"sample_weight": sample_weight, "cluster": cluster, "score_range": score_range}
    models = [
        check_predictions(labels, scores, sensitive_features, **options, names=Names(y_score=name))
        for name, scores in named.items()
    ]
    first, second = (worst_mcdp(model, comparison, epsilons, as_jobs(n_jobs)).item() for model in models)
    people = SamePeople(models[0], models[1], comparison)
    draws = Draws(n_resamples, random_state, n_jobs)
    check_resamples(draws.n_resamples, confidence)
    resampled = people.resampled(float(epsilons[0]), draws)
    margins = resampled.margins(confidence, people.fewest)
    ends = np.clip(second - first + margins, -1.0, 1.0).tolist()
    return PairedComparison(
        first, second, Interval(ends[0], second - first, ends[1], confidence), resampled.p_value
    )


@dataclass(frozen=True, eq=False)
class PairedDraws:
    """MCDP of the first and the second model (columns) on the same people."""

    seen: FloatArray  # of the people as they are
    # Of each resample (rows), with scores swapped at random and with people weighted at random
    swapped: FloatArray
    weighted: FloatArray
    # How much random weights change the gap of some pair at the worst threshold, in each resample
    deviated: FloatArray
    # (2, resamples, 2): How fast both change as weights move in a random direction, from those of the people
    # as they are and from those of `weighted`
    slopes: FloatArray

    @property
    def p_value(self) -> float:
        """How often swapped scores differ as much as the models do."""
        return p_value_of(abs(self.seen[1] - self.seen[0]), np.abs(np.diff(self.swapped)))

    def margins(self, confidence: float, fewest: float) -> FloatArray:
        """How far the true difference may be below and above the measured one, with so many in a group."""
        from scipy.stats import t

        fewest = max(fewest, 2.0)
        # Random weights spread a mean of so many as if there were two more, slopes as if there were one more.
        moving = np.std(np.diff(self.weighted), ddof=1) * np.sqrt((fewest + 1.0) / (fewest - 1.0))
        fixed = np.std(np.diff(self.slopes), axis=1, ddof=1).max() * np.sqrt(fewest / (fewest - 1.0))
        bias = self.weighted.mean(axis=0) - self.seen
        # A model that chance may have moved as far from parity as it is may be at parity.
        chance = [critical_value(deviated, confidence) for deviated in self.deviated.T]
        parity = np.where(self.seen <= chance, self.seen, 0.0)
        ends = [[-parity[1], parity[0]]]
        for factors, deviation in (((1.0, _MOST_BIAS), moving), ((0.0, 1.0), fixed)):
            margin = t.ppf(0.5 + 0.5 * confidence, fewest - 1.0) * deviation
            # With windows the least gap inside may also be too small by chance.
            least, most = np.sort(np.outer(factors, bias), axis=0)
            ends.append([least[0] - most[1] - margin, most[0] - least[1] + margin])
        low, high = np.transpose(ends)
        return np.array([low.min(), high.max()])


class SamePeople:
    """The people that two models scored, those with the lowest first scores first."""

    def __init__(self, first: Predictions, second: Predictions, comparison: Comparison) -> None:
        order = np.argsort(first.scores, kind="stable")
        self.score_range, self.comparison, self.groups = first.score_range, comparison, first.groups
        self.resolution = max(first.resolution, second.resolution)
        ends = (clip_to_range(model.scores, model.score_range) for model in (first, second))
        self.scores = np.stack([scores[order].astype(np.float64) for scores in ends])
        self.codes = first.group_codes[order].astype(np.int32)
        self.labels = None if first.labels is None else first.labels[order]
        weights = np.ones(order.size) if first.weights is None else first.weights
        self.weights = weights[order]
        clusters = np.arange(order.size) if first.clusters is None else first.clusters[order]
        self.clusters = clusters.astype(np.int64)

    @cached_property
    def fewest(self) -> float:
        """The fewest independent rows of one weight that would be as precise as a group compared."""
        sizes = []
        for label in self.comparison.labels:
            rows = slice(None) if label is None else self.labels == label
            keys = self.clusters[rows] * len(self.groups) + self.codes[rows]
            distinct, place = np.unique(keys, return_inverse=True)
            totals = np.bincount(place, self.weights[rows])
            of_group = distinct % len(self.groups)
            sizes.append((np.bincount(of_group, totals) ** 2 / np.bincount(of_group, totals**2)).min())
        return float(min(sizes))

    def _strata(self) -> Iterator[PairedStratum]:
        """The people under each label that is compared."""
        pairs = self.comparison.pair_places(self.groups)
        for label in self.comparison.labels:
            rows = np.arange(self.codes.size) if label is None else np.flatnonzero(self.labels == label)
            scores = self.scores[:, rows].ravel()
            order = np.argsort(scores, kind="stable")
            scores = scores[order]
            ends = np.flatnonzero(np.append(scores[1:] > scores[:-1], True))
            of_score = rows[order % rows.size]
            knots = units_of(scores[ends], self.score_range, self.resolution)
            arrays = ScoreArrays(self.codes[of_score], ends + 1, knots)
            models = (order >= rows.size).astype(np.uint8)
            yield PairedStratum(arrays, self.clusters[of_score], models, self.weights[of_score], pairs)

    def resampled(self, epsilon: float, draws: Draws) -> PairedDraws:
        """MCDP of both models with scores swapped, and with people weighted, at random."""
        strata = list(self._strata())
        half_width = float(carried_half_widths(np.array([epsilon]), self.resolution)[0])
        n_clusters = int(self.clusters.max()) + 1

        def worst(measure: Callable[[PairedStratum], tuple[float, float]]) -> FloatArray:
            return np.asarray(np.max([measure(stratum) for stratum in strata], axis=0))

        def weighted(weights: FloatArray) -> FloatArray:
            return worst(lambda stratum: stratum.weighted(weights, half_width))

        seen = worst(lambda stratum: stratum.swapped(np.zeros(n_clusters, np.uint8), half_width))

        def one(rng: np.random.Generator) -> FloatArray:
            swapped = rng.integers(0, 2, n_clusters, dtype=np.uint8)
            weights = rng.standard_exponential(n_clusters)
            nudges = _NUDGE * (rng.standard_exponential(n_clusters) - 1.0)
            measured = weighted(weights)
            slopes = [weighted(1.0 + nudges) - seen, weighted(np.maximum(weights + nudges, 0.0)) - measured]
            mixed = worst(lambda stratum: stratum.swapped(swapped, half_width))
            deviated = worst(lambda stratum: stratum.deviated(weights))
            return np.concatenate([mixed, measured, deviated, *(slope / _NUDGE for slope in slopes)])

        mixed, measured, deviated, *slopes = np.hsplit(repeat(one, draws, 10), 5)
        return PairedDraws(seen, mixed, measured, deviated, np.stack(slopes))


@dataclass(frozen=True, eq=False)
class PairedStratum:
    """The scores of both models on the people of one label."""

    scores: ScoreArrays  # the scores of both together, ascending
    clusters: IntArray  # of each score, the cluster and the model, 0 or 1, that it is of
    models: NDArray[np.uint8]
    weights: FloatArray  # the weight of each score
    pairs: IntArray  # (pairs, 2): The groups that are compared; everyone comes after the last group

    @cached_property
    def _steps(self) -> PairSteps:
        return self._steps_of(self.weights)

    def _steps_of(self, weights: FloatArray) -> PairSteps:
        """What a score adds to the gap of each pair, where scores have some weights."""
        totals = 0.5 * np.bincount(self.scores.codes, weights)
        totals = np.append(totals, totals.sum())
        first, second = self.pairs.T
        steps = np.zeros((first.size, totals.size))
        steps[np.arange(first.size), first] = totals[second]
        steps[np.arange(first.size), second] = -totals[first]
        # A score of any group is one of everyone too.
        return PairSteps(steps[:, :-1] + steps[:, -1:], 1.0 / (totals[first] * totals[second]))

    def swapped(self, swapped: NDArray[np.uint8], half_width: float) -> tuple[float, float]:
        """MCDP of both models where the rows of some clusters have their scores swapped."""
        models = self.models ^ swapped[self.clusters]
        return mcdp_of_models(self.scores, models, self.weights, self._steps, half_width)

    def weighted(self, weights: FloatArray, half_width: float) -> tuple[float, float]:
        """MCDP of both models where the clusters are weighted anew."""
        weights = self.weights * weights[self.clusters]
        return mcdp_of_models(self.scores, self.models, weights, self._steps_of(weights), half_width)

    def deviated(self, weights: FloatArray) -> tuple[float, float]:
        """How far weighting the clusters anew moves the gap of some pair, under both models."""
        weights = self.weights * weights[self.clusters]
        totals = (np.bincount(self.scores.codes, some) for some in (self.weights, weights))
        weights = weights * np.divide(*totals)[self.scores.codes] - self.weights
        return mcdp_of_models(self.scores, self.models, weights, self._steps, 0.0)
