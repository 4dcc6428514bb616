"""Rows that are repeated as a whole: of nearly equal tables one copy is fitted on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._types import IntArray
from localparity.counts._copies import copies_in, warn_of_copies

ADVICE = "one of them is fitted on"
"""What a fit does about copies."""
_FACTORS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_NUMBERS = "biuf"


def distinct_rows(features: Any, *others: NDArray[Any]) -> tuple[int, IntArray]:
    """Return how many copies there are of nearly every row, and the places of rows of which one is kept.

    Rows are compared by a hash of 64 bits. Copies are so in any columns, so that texts, which take longer,
    are looked at only where the numbers are repeated.

    Examples
    --------
    >>> table = np.repeat(np.arange(120.0).reshape(60, 2), 3, axis=0)
    >>> copies, places = distinct_rows(table, np.zeros(180))
    >>> copies, places[:4]
    (3, array([0, 3, 6, 9]))
    >>> distinct_rows(table[::3], np.zeros(60))[0]
    1
    """
    rows = len(others[0])
    columns = list(_columns(features))
    numbers = [each for each in columns if each.dtype.kind in _NUMBERS]
    keys = _hashed(np.zeros(rows, np.uint64), [*others, *numbers])
    texts = [each for each in columns if each.dtype.kind not in _NUMBERS]
    copies, places = _one_of_each(keys)
    if copies > 1 and texts:
        copies, places = _one_of_each(_hashed(keys, texts))
    return copies, places


def without_copies(features: Any, *others: NDArray[Any]) -> IntArray | None:
    """Return the places of the rows to fit on, with a warning where rows are copies; None without copies.

    Copies are no independent people, and one could be held out while another is fitted on.
    """
    copies, places = distinct_rows(features, *others)
    if copies == 1:
        return None
    warn_of_copies(copies, f"{ADVICE}, {places.size:,} of {len(others[0]):,} rows", stacklevel=4)
    return places


def _one_of_each(keys: NDArray[np.uint64]) -> tuple[int, IntArray]:
    _, place, times = np.unique(keys, return_inverse=True, return_counts=True)
    copies = copies_in(times)
    order = np.argsort(place, kind="stable")
    number = np.empty(keys.size, np.int64)
    number[order] = np.arange(keys.size) - np.repeat(np.cumsum(times) - times, times)
    return copies, np.flatnonzero(number < -(-times // copies)[place])


def _columns(features: Any) -> Iterator[NDArray[Any]]:
    """Return the columns of a data frame or an array; of a sparse matrix, a hash of each row."""
    if hasattr(features, "tocsr"):
        matrix = features.tocsr()
        entries = _hashed(np.zeros(matrix.nnz, np.uint64), [matrix.data, matrix.indices])
        running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
        yield (running[matrix.indptr[1:]] - running[matrix.indptr[:-1]]).view(np.int64)
    elif hasattr(features, "columns"):
        yield from (np.asarray(features[name]) for name in features.columns)
    else:
        table = np.asarray(features)
        yield from table.reshape(len(table), -1).T


def _hashed(keys: NDArray[np.uint64], columns: Iterable[NDArray[Any]]) -> NDArray[np.uint64]:
    """Return keys with some columns mixed in."""
    for column in columns:
        keys = (keys ^ _bits(column)) * _FACTORS[0]
        keys = (keys ^ (keys >> np.uint64(29))) * _FACTORS[1]
    return keys


def _bits(column: NDArray[Any]) -> NDArray[np.uint64]:
    if column.dtype.kind == "f":
        numbers = column.astype(np.float64) + 0.0  # -0.0 is 0.0
        return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    if column.dtype.kind in _NUMBERS:
        return column.astype(np.int64).view(np.uint64)
    return np.fromiter((hash(str(value)) for value in column.tolist()), np.int64, column.size).view(np.uint64)
