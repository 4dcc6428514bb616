"""The pairs that resamples compare, by the rows of their two sides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from localparity._types import FloatArray, Group, IntArray
from localparity.counts._comparison import EVERYONE, Comparison

_LEAST_DEVIATION = 1e-12
"""What a gap's standard deviation counts as at least: below it, the gap is rounding more than anything."""


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
        found = _of_others(shares) ** 2 * variances + _of_others(shares**2 * variances)
    else:
        found = variances[first] + variances[second]
    return PairRows(first, second, 1.0 / np.maximum(np.sqrt(found), _LEAST_DEVIATION))


def _of_others(values: FloatArray) -> FloatArray:
    """For each of some values, none of which is negative, the sum of all others, to the last digits.

    Examples
    --------
    >>> _of_others(np.array([1.0, 1e20, 2.0]))
    array([1.e+20, 3.e+00, 1.e+20])
    """
    before = np.append(0.0, np.cumsum(values[:-1]))
    after = np.append(0.0, np.cumsum(values[:0:-1]))[::-1]
    return np.asarray(before + after)
