"""The pairs that resamples compare, by the rows of their two sides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from localparity._types import FloatArray, Group, IntArray
from localparity.counts._comparison import EVERYONE, Comparison


class PairRows(NamedTuple):
    """The pairs that are compared, by the rows of their two sides, and how a pair's gap is studentised.

    Attributes
    ----------
    first, second : ndarray
        The row of each pair's first and second side; everyone is the last row.
    scale : ndarray
        What a gap is multiplied with: one over its standard deviation, up to a factor that all pairs share.
    """

    first: IntArray
    second: IntArray
    scale: FloatArray


def pair_rows(comparison: Comparison, variances: FloatArray, totals: FloatArray | IntArray) -> PairRows:
    """The pairs of groups whose distributions have these variances, and which weigh so much.

    Examples
    --------
    >>> pair_rows(Comparison(), np.array([0.5, 0.25]), np.array([2, 4])).scale.round(3)
    array([1.155])
    >>> pair_rows(Comparison(compare="to_overall"), np.array([0.5, 0.25]), np.array([2, 4])).scale.round(3)
    array([1.732, 3.464])
    """
    groups = range(variances.size)
    row_of: dict[Group, int] = {EVERYONE: len(groups), **{group: group for group in groups}}
    pairs = [(row_of[a], row_of[b]) for a, b in comparison.pairs(groups)]
    first, second = np.array(pairs, dtype=np.int64).T
    if comparison.compare == "to_overall":
        # F_g - F_all is (1 - p_g) F_g less p_h F_h of every other group.
        shares = totals / totals.sum()
        found = (1.0 - 2.0 * shares) * variances + (shares**2 * variances).sum()
    else:
        found = variances[first] + variances[second]
    return PairRows(first, second, 1.0 / np.sqrt(found))
