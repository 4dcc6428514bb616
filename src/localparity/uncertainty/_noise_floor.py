"""What parity itself would measure at given group sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._docs import documented
from localparity._validation import FloatArray, as_count, as_epsilon, as_numbers
from localparity.metrics._groups import Compare
from localparity.uncertainty._permutation import null_quantiles
from localparity.uncertainty._pool import Pool
from localparity.uncertainty._resampling import Draws, resample

_KNOTS = 10_000


@dataclass(frozen=True)
class NoiseFloor:
    """What parity measures; as a float, its mean.

    Attributes
    ----------
    mean : float
        What parity measures on average.
    quantiles : dict
        Quantiles of what parity measures, by their probability.

    Examples
    --------
    >>> import localparity as lp
    >>> floor = lp.noise_floor([500, 500], random_state=0)
    >>> floor.mean == float(floor) < floor.quantiles[0.95]
    True
    """

    mean: float
    quantiles: dict[float, float]

    def __float__(self) -> float:
        return self.mean


@documented
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

    At epsilon 0 and with no two scores equal it depends on the sizes alone. Each group is drawn from one and
    the same distribution, laid on 10,000 scores.

    Parameters
    ----------
    group_sizes : sequence of int
        The number of people in each group, two groups or more.
    scores : array-like, optional
        Scores in [0, 1] from which the pool is made; spread evenly over the range without them.
    n_resamples : int
        How many times the groups are drawn.

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
    listed = group_sizes if isinstance(group_sizes, Iterable) else [group_sizes]
    sizes = np.array([as_count(size, "group_sizes") for size in listed])
    if sizes.size < 2:
        raise ValueError(f"group_sizes has {sizes.size} groups where two or more are expected")
    places = (np.arange(_KNOTS) + 0.5) / _KNOTS
    if scores is not None:
        places = np.quantile(_unit_scores(scores), places, method="inverted_cdf")
    knots, rows = np.unique(places, return_counts=True)
    shares = rows / rows.sum()

    def draw_from_one(pool: Pool, compare: str, rng: np.random.Generator) -> FloatArray:
        return pool.distributions(np.stack([_drawn(shares, int(size), rng) for size in sizes]), compare)

    # The pool says how many groups there are and how they are paired; nobody is dealt out of it.
    pool = Pool.of_rows(knots, np.tile(rows, (sizes.size, 1)))
    draws = Draws(n_resamples, random_state, n_jobs)
    null = resample([pool], draw_from_one, draws, compare=compare, epsilons=epsilons).worst[:, 0]
    return NoiseFloor(float(null.mean()), null_quantiles(null))


def _drawn(shares: FloatArray, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How many of so many people lie at each knot, drawn one by one where they are few."""
    if size > 4 * shares.size:
        return np.asarray(rng.multinomial(size, shares))
    places = np.searchsorted(np.cumsum(shares[:-1]), rng.random(size), side="right")
    return np.bincount(places, minlength=shares.size)


def _unit_scores(scores: Any) -> Any:
    unit = as_numbers(scores, "scores")
    if unit.min() < 0.0 or unit.max() > 1.0:
        raise ValueError(f"scores go from {unit.min():g} to {unit.max():g} where [0, 1] is expected")
    return unit
