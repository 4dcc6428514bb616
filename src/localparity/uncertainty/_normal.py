"""The standard normal distribution of arrays, without what importing scipy takes."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from localparity._types import FloatArray

_FARTHEST = 9.0
_STEPS_BY_ONE = 512


@cache
def _table() -> tuple[FloatArray, FloatArray]:
    values = np.arange(-_FARTHEST, _FARTHEST, 1.0 / _STEPS_BY_ONE)
    return values, np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in values.tolist()])


def normal_cdf(values: FloatArray) -> FloatArray:
    """Return the standard normal distribution function, by lines between 9,216 of its values.

    It is off by at most 1.2e-7, and below -1, where lines lie above it, by at most one part in 25,000.

    Examples
    --------
    >>> normal_cdf(np.array([-1.96, 0.0, 1.0])).round(4)
    array([0.025 , 0.5   , 0.8413])
    """
    return np.asarray(np.interp(values, *_table()))
