"""Sums of weights that do not depend on the order or the partition of the rows.

A sum of floats changes with its order. Weights are therefore counted in whole units of 2**-96, in five limbs
of 32 bits each, and whole numbers add the same in any order. Every weight from 2**-43 on is a whole number of
units; a smaller one loses what lies below a unit. Engines count with the same formula, limb by limb.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray, IntArray

Units = IntArray
"""A column of limbs for each number, the least significant first; the last two axes are limb and number."""

LIMBS = 5
LIMB_BITS = 32
UNIT_BITS = 96

T = TypeVar("T")

_MASK = np.int64(2**LIMB_BITS - 1)
_WHOLE_LIMB = UNIT_BITS // LIMB_BITS


def limbs_of(times: Callable[[float], T], floor: Callable[[T], T], minus: Callable[[T, T], T]) -> Iterator[T]:
    """The limbs of a number that is not negative, the least significant first, in any language.

    A number times ``2**(96 - 32 * limb)``, rounded down, has the limb at its end; what is above it is 2**32
    times the same of the next limb.

    Parameters
    ----------
    times : callable
        The number times a power of two.
    floor : callable
        A product, rounded down.
    minus : callable
        What is left of a whole number without 2**32 times another one.

    Examples
    --------
    >>> from math import floor
    >>> list(limbs_of(lambda scale: 1.5 * scale, floor, lambda whole, above: whole - above * 2**32))
    [0, 0, 2147483648, 1, 0]
    """
    whole = [floor(times(2.0 ** (UNIT_BITS - LIMB_BITS * limb))) for limb in range(LIMBS)]
    yield from map(minus, whole[:-1], whole[1:])
    yield whole[-1]


def to_units(numbers: FloatArray) -> Units:
    """Numbers that are not negative in whole units.

    Examples
    --------
    >>> to_units(np.array([1.0, 0.5]))[:, 0]
    array([0, 0, 0, 1, 0])
    """
    limbs: Iterator[FloatArray] = limbs_of(
        lambda scale: numbers * scale, np.floor, lambda whole, above: whole - above * 2.0**LIMB_BITS
    )
    return np.array(list(limbs)).astype(np.int64)


def units_of_rows(rows: IntArray) -> Units:
    """The weights, and the squared weights, of rows that weigh 1 each."""
    units = np.zeros((2, LIMBS, rows.size), dtype=np.int64)
    units[:, _WHOLE_LIMB] = rows
    return carry(units)


def units_of_weights(weights: FloatArray) -> Units:
    """The weights, and the squared weights, of rows: two tables of limbs in one array.

    Examples
    --------
    >>> units_of_weights(np.array([2.0]))[:, 3, 0]
    array([2, 4])
    """
    return np.stack([to_units(weights), to_units(weights * weights)])


def carry(units: Units) -> Units:
    """The same numbers with every limb but the topmost below 2**32, which is one form a number."""
    for limb in range(LIMBS - 1):
        units[..., limb + 1, :] += units[..., limb, :] >> LIMB_BITS
        units[..., limb, :] &= _MASK
    return units


def to_floats(units: Units, dtype: Any = np.float64) -> NDArray[Any]:
    """The numbers as floats; equal numbers are equal floats, and greater ones are not less.

    Examples
    --------
    >>> to_floats(to_units(np.array([0.1, 3.0])))
    array([0.1, 3. ])
    """
    total = np.zeros(units.shape[1], dtype=dtype)
    for limb in range(LIMBS):
        total = total / dtype(2.0**LIMB_BITS) + units[limb].astype(dtype)
    return np.asarray(total * dtype(2.0 ** (LIMB_BITS * (LIMBS - 1) - UNIT_BITS)))


def to_whole(units: Units) -> int:
    """The sum of all numbers as one whole number of units."""
    return sum(int(units[limb].sum()) << (LIMB_BITS * limb) for limb in range(LIMBS))
