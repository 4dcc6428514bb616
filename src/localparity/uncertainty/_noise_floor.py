"""What MCDP is expected under parity, at given group sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from localparity._types import ArrayLike, FloatArray, IntArray, Seed
from localparity._validation import InputError, as_count, as_epsilon, as_numbers
from localparity.counts._comparison import Comparison
from localparity.uncertainty._permutation import null_quantiles
from localparity.uncertainty._resampling import Draws, Measuring, measuring_rows, resample, studentised_pairs

_KNOTS = 10_000
_MOST_PEOPLE = 10**12


@dataclass(frozen=True)
class NoiseFloor:
    """MCDP that is expected under parity; as a float, its mean.

    Attributes
    ----------
    mean : float
        The mean of MCDP under parity.
    quantiles : dict
        Quantiles of MCDP under parity, by their probability.

    Examples
    --------
    >>> import localparity as lp
    >>> floor = lp.noise_floor([500, 500], random_state=0)
    >>> floor
    NoiseFloor(0.05451; at most 0.088 in 95%)
    >>> floor.mean == float(floor) < floor.quantiles[0.95]
    True
    """

    mean: float
    quantiles: dict[float, float]

    def __float__(self) -> float:
        return self.mean

    def __repr__(self) -> str:
        return f"NoiseFloor({self.mean:.4g}; at most {self.quantiles[0.95]:.4g} in 95%)"


def noise_floor(
    group_sizes: Sequence[int],
    epsilon: float = 0.0,
    *,
    scores: ArrayLike | None = None,
    n_resamples: int = 1000,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> NoiseFloor:
    """What MCDP(epsilon) is expected between groups of these sizes that do not differ.

    At epsilon 0 and with no two scores equal it depends on the sizes alone. Each group is drawn from one and
    the same distribution, laid on 10,000 scores.

    Parameters
    ----------
    group_sizes : sequence of int
        The number of people in each group, two groups or more.
    epsilon : float
        The half-width of the windows, as a fraction of the score range.
    scores : array-like, optional
        Scores in [0, 1] from which the pool is made; spread evenly over the range without them.
    n_resamples : int
        How many times the groups are drawn.
    random_state : int, Generator or None
        The same seed gives the same result.
    n_jobs : int, optional
        How many resamples run at a time, -1 for as many as there are cores.

    Returns
    -------
    NoiseFloor
        The mean and quantiles of MCDP under parity.

    Examples
    --------
    With the group sizes of a well-known test set, about five percent is expected under parity:

    >>> import localparity as lp
    >>> round(float(lp.noise_floor([321, 12036], random_state=0)), 2)
    0.05
    """
    epsilons = np.array([as_epsilon(epsilon)])
    sizes = as_sizes(group_sizes)
    places = (np.arange(_KNOTS) + 0.5) / _KNOTS
    if scores is not None:
        unit = as_numbers(scores, "scores")
        if unit.min() < 0.0 or unit.max() > 1.0:
            raise InputError(f"must be between 0 and 1, got {unit.min():g} to {unit.max():g}", "scores")
        places = np.quantile(unit, places, method="inverted_cdf")
    knots, rows = np.unique(places, return_counts=True)
    shares = rows / rows.sum()

    def draw(stream: np.random.Generator) -> IntArray:
        return np.stack([_drawn(shares, int(size), stream) for size in sizes])

    def source(comparison: Comparison, half_widths: FloatArray) -> Measuring:
        return measuring_rows(draw, studentised_pairs(comparison, 1.0 / sizes, sizes), knots, half_widths)

    draws = Draws(n_resamples, random_state, n_jobs)
    null = resample([source], draws, comparison=Comparison(), epsilons=epsilons).worst[:, 0]
    return NoiseFloor(float(null.mean()), null_quantiles(null))


def as_sizes(group_sizes: Sequence[int]) -> IntArray:
    """Check the sizes of two groups or more."""
    listed = group_sizes if isinstance(group_sizes, Iterable) else [group_sizes]
    sizes = [as_count(size, "group_sizes", at_most=math.inf) for size in listed]
    if len(sizes) < 2:
        raise InputError(f"must have at least two sizes, got {len(sizes)}", "group_sizes")
    if sum(sizes) > _MOST_PEOPLE:
        raise InputError(f"must have a sum of at most {_MOST_PEOPLE:,}, got {sum(sizes):.3g}", "group_sizes")
    return np.array(sizes)


def _drawn(shares: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """How many of so many people lie at each knot, drawn one by one where they are few."""
    if size > 4 * shares.size:
        return np.asarray(rng.multinomial(size, shares))
    places = np.searchsorted(np.cumsum(shares[:-1]), rng.random(size), side="right")
    return np.bincount(places, minlength=shares.size)
