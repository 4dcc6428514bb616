"""What parity itself would measure at given group sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from localparity._validation import as_count, as_epsilon, as_numbers
from localparity.metrics._groups import Compare
from localparity.uncertainty._permutation import deal_groups, null_quantiles
from localparity.uncertainty._resampling import Pool, resample

_MOST_SIMULATED = 10_000


@dataclass(frozen=True)
class NoiseFloor:
    """What parity measures; as a float, its mean.

    Attributes
    ----------
    mean : float
        What parity measures on average.
    quantiles : dict
        Quantiles of what parity measures, by their probability.
    """

    mean: float
    quantiles: dict[float, float]

    def __float__(self) -> float:
        return self.mean


def noise_floor(
    group_sizes: Sequence[int],
    epsilon: float = 0.0,
    *,
    scores: Any = None,
    compare: Compare = "between_groups",
    n_resamples: int = 1000,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> NoiseFloor:
    """What MCDP(epsilon) measures between groups of these sizes when they do not differ at all.

    At epsilon 0 and with no two scores equal it depends on the sizes alone. Groups are dealt at random from
    one pool; a group of more than 10,000 is simulated at that size and the result scaled by the standard
    error of the gap, to which what parity measures is proportional.

    Parameters
    ----------
    group_sizes : sequence of int
        The number of people in each group, two groups or more.
    epsilon : float
        The half-width of the windows, as a fraction of the score range.
    scores : array-like, optional
        Scores in [0, 1] from which the pool is made; spread evenly over the range without them.
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    n_resamples : int
        How many times the groups are dealt.
    random_state : int, Generator or None
        The same seed gives the same result.
    n_jobs : int, optional
        How many resamples run at a time, -1 for as many as there are cores.

    Returns
    -------
    NoiseFloor
        The mean and quantiles of what parity measures.

    Examples
    --------
    With the group sizes of a well-known test set, parity alone would measure about five percent:

    >>> import localparity as lp
    >>> round(float(lp.noise_floor([321, 12036], random_state=0)), 2)
    0.05
    """
    epsilons = np.array([as_epsilon(epsilon)])
    sizes = np.array([as_count(size, "group_sizes") for size in group_sizes], dtype=np.int64)
    if sizes.size < 2:
        raise ValueError(f"group_sizes has {sizes.size} groups where two or more are expected")
    simulated = np.minimum(sizes, _MOST_SIMULATED)
    total = int(simulated.sum())
    places = (np.arange(total) + 0.5) / total
    if scores is not None:
        places = np.quantile(_unit_scores(scores), places, method="inverted_cdf")
    knots, inverse = np.unique(places, return_inverse=True)
    dealt_once = np.zeros((sizes.size, knots.size), dtype=np.int64)
    np.add.at(dealt_once, (np.repeat(np.arange(sizes.size), simulated), inverse), 1)
    null = resample(
        [Pool(knots, dealt_once, None)],
        deal_groups,
        compare=compare,
        epsilons=epsilons,
        resolution=0.0,
        n_resamples=n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
    )[:, 0]
    null = np.minimum(null * np.sqrt(_largest_variance(sizes) / _largest_variance(simulated)), 1.0)
    return NoiseFloor(float(null.mean()), null_quantiles(null))


def _largest_variance(sizes: Any) -> float:
    """The variance of the gap of the two smallest groups, up to a factor that depends on the threshold."""
    return float(np.sum(1.0 / np.sort(sizes)[:2]))


def _unit_scores(scores: Any) -> Any:
    unit = as_numbers(scores, "scores")
    if unit.min() < 0.0 or unit.max() > 1.0:
        raise ValueError(f"scores go from {unit.min():g} to {unit.max():g} where [0, 1] is expected")
    return unit
