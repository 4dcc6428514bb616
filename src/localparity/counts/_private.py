"""Counts with noise, so that what is made of them tells nearly nothing about any one person."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from localparity._types import FloatArray, IntArray
from localparity._validation import as_count, as_number, as_probability, require
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import ScoreCounts, strata_of

_MOST_BUDGET = 100.0


def private(
    counts: ScoreCounts,
    comparison: Comparison | None = None,
    *,
    budget: float,
    cells: int = 20,
    error: float = 0.005,
) -> ScoreCounts:
    """Return counts to which noise was added, a differentially private release of the scores.

    Scores are rounded up to the ends of `cells` equal cells of the score range, and OpenDP adds discrete
    Laplace noise of scale ``1 / budget`` to the number of people in each. Whoever is added to the data or
    taken away changes the probability of any outcome by a factor of at most ``exp(budget)``; every release
    spends a budget of its own. The names of the groups are taken to be public. The noise has no seed.

    Metrics and intervals of the counts are about the rounded scores and allow for the noise, up to the
    probability `error`: an interval with a confidence of 0.95 holds with a probability of at least
    ``0.95 - error``. The test of parity does not allow for it; audit with ``n_resamples=0``.

    Parameters
    ----------
    counts : ScoreCounts
        Exact counts, one row for each person and without weights.
    comparison : Comparison, optional
        Who is compared: everyone by default.
    budget : float
        The privacy loss, which is called epsilon elsewhere: at most 1 is a strong protection.
    cells : int
        How many cells; fewer get less noise.
    error : float
        The probability that the noise is larger than the `rank_error` of the result.

    Returns
    -------
    ScoreCounts
        Its `rank_error` is what the distributions may be off by.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(50_000, random_state=0)
    >>> rows = lp.Predictions.from_arrays(None, census.score, sensitive_features=census.sensitive_features)
    >>> released = lp.counts.private(lp.ScoreCounts.from_predictions(rows), budget=1.0)
    >>> lp.mcdp_interval(released).low > 0.2
    True
    """
    budget, error = as_number(budget, "budget"), as_probability(error, "error")
    if not 0.0 < budget <= _MOST_BUDGET:
        raise ValueError(f"budget must be > 0 and <= {_MOST_BUDGET:g}, got {budget}")
    if counts.rank_error > 0.0 or not counts.exchangeable:
        raise ValueError("counts must be exact, of one row for each person and without weights")
    ends = np.linspace(*counts.score_range, as_count(cells, "cells") + 1)
    strata = strata_of(counts, comparison or Comparison())
    kept = {(group, label): atoms for label, stratum in strata.items() for group, atoms in stratum.items()}
    off = _most_off(budget, ends.size, error / len(kept))
    noisy = {key: _with_noise(atoms, ends, budget) for key, atoms in kept.items()}
    smallest = min(int(rows.sum()) for rows in noisy.values())
    if smallest < 2 * off:
        raise ValueError(
            f"budget={budget:g} makes noise of up to {off} people, and the smallest group has about "
            f"{smallest}; it must have {2 * off} or more: use fewer cells or a larger budget"
        )
    atoms = {key: Atoms.of_counts(ends[rows > 0], rows[rows > 0]) for key, rows in noisy.items()}
    # Once for the people counted, once for their number, and once for bands, whose size is the noisy one.
    return replace(counts, atoms=atoms, rank_error=3.0 * off / smallest)


def _with_noise(atoms: Atoms, ends: FloatArray, budget: float) -> IntArray:
    """How many people are in each cell, with noise that leaves no number negative."""
    dp = require("opendp.prelude", extra="private")
    dp.enable_features("contrib")
    whole = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    add_noise = dp.m.make_laplace(*whole, scale=1.0 / budget)
    rows = np.bincount(np.searchsorted(ends, atoms.scores), atoms.rows, ends.size).astype(np.int64)
    up_to = np.maximum.accumulate(np.cumsum(add_noise(rows.tolist())).clip(0))
    return np.diff(up_to, prepend=0)


def _most_off(budget: float, cells: int, error: float) -> int:
    """What all sums of the noise of the first cells stay below, but for an error.

    The largest of the sums is beyond a bound with at most twice the probability of the last (Levy's
    inequality), and Chernoff's inequality bounds that.
    """
    ratio = math.exp(-budget)
    steps = budget * np.linspace(0.001, 0.999, 999)
    spread = np.log1p(-ratio * np.exp(steps)) + np.log1p(-ratio * np.exp(-steps))
    moments = cells * (2.0 * math.log(1.0 - ratio) - spread)
    return math.ceil(float(np.min((moments + math.log(4.0 / error)) / steps)))
