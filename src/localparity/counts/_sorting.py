"""Rows in the order of their scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._types import IntArray
from localparity.counts._sort_kernels import sort_into

_FEW_ROWS = 2**12
"""So few rows are sorted by numpy sooner than by a loop, above all by one that is not compiled yet."""


def sort_rows(scores: NDArray[Any], carried: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows sorted by their scores, and what each of them carries; equal scores come in any order.

    Examples
    --------
    >>> sort_rows(np.array([0.3, 0.1, 0.2]), np.array([1, 2, 3]))
    (array([0.1, 0.2, 0.3]), array([2, 3, 1]))
    """
    if scores.size > _FEW_ROWS:
        # Numpy's own arrays take less time to touch for the first time than those that a loop makes.
        found, found_carried = np.empty_like(scores), np.empty_like(carried)
        sort_into(scores, carried, found, found_carried)
        return found, found_carried
    order = np.argsort(scores, kind="stable")
    return scores[order], carried[order]


def places_of(scores: NDArray[Any]) -> tuple[IntArray, NDArray[Any], IntArray]:
    """The place of each row among the distinct scores, these scores, and how many rows have each.

    Examples
    --------
    >>> places_of(np.array([0.3, 0.1, 0.3]))
    (array([1, 0, 1]), array([0.1, 0.3]), array([1, 2]))
    """
    ordered, order = sort_rows(scores, np.arange(scores.size))
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    rows = np.diff(np.append(begins, ordered.size))
    places = np.empty(ordered.size, dtype=np.int64)
    places[order] = np.repeat(np.arange(begins.size), rows)
    return places, ordered[begins], rows
