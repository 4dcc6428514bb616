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

from localparity._types import IntArray

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
    times the same of the next limb. A language gives the number times a power of two, rounds a product down,
    and takes 2**32 times a whole number from another.
    """
    whole = [floor(times(2.0 ** (UNIT_BITS - LIMB_BITS * limb))) for limb in range(LIMBS)]
    yield from map(minus, whole[:-1], whole[1:])
    yield whole[-1]


def units_of_rows(rows: IntArray) -> Units:
    """The weights, and the squared weights, of rows that weigh 1 each."""
    units = np.zeros((2, LIMBS, rows.size), dtype=np.int64)
    units[:, _WHOLE_LIMB] = rows
    return carry(units)


def carry(units: Units) -> Units:
    """The same numbers with every limb but the topmost below 2**32, which is one form a number."""
    for limb in range(LIMBS - 1):
        units[..., limb + 1, :] += units[..., limb, :] >> LIMB_BITS
        units[..., limb, :] &= _MASK
    return units


def to_floats(units: Units, dtype: Any = np.float64) -> NDArray[Any]:
    """The numbers as floats; equal numbers are equal floats, and greater ones are not less."""
    total = np.zeros(units.shape[1], dtype=dtype)
    for limb in range(LIMBS):
        total = total * dtype(2.0**-LIMB_BITS) + units[limb].astype(dtype)
    return np.asarray(total * dtype(2.0 ** (LIMB_BITS * (LIMBS - 1) - UNIT_BITS)))


def to_whole(units: Units) -> int:
    """The sum of all numbers as one whole number of units."""
    return sum(int(units[limb].sum()) << (LIMB_BITS * limb) for limb in range(LIMBS))
