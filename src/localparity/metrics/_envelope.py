"""What bounds the gap of a pair whose scores are only known by cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localparity._types import FloatArray, IntArray
from localparity.metrics._kernels import envelope_of


@dataclass(frozen=True, eq=False)
class CellGaps:
    """What is known of a gap curve below each of its knots.

    Attributes
    ----------
    lows : ndarray
        Where the cell begins that ends at the knot; the knot itself where there is none.
    least, most : ndarray
        The least and the greatest signed gap that there can be inside the cell.
    """

    lows: FloatArray
    least: FloatArray
    most: FloatArray


@dataclass(frozen=True, eq=False)
class Envelope:
    """Two step functions that hold the absolute gap between them.

    Attributes
    ----------
    knots : ndarray
        Where the steps begin.
    lower, upper : ndarray
        The bounds of the absolute gap from each knot up to the next.
    least, most : ndarray
        The bounds of the signed gap.
    cell : ndarray
        The place of the curve's knot whose cell a step is; -1 where the gap is known.
    """

    knots: FloatArray
    lower: FloatArray
    upper: FloatArray
    least: FloatArray
    most: FloatArray
    cell: IntArray


def find_envelope(knots: FloatArray, gap: FloatArray, cells: CellGaps) -> Envelope:
    """The bounds of the gap, from the gap at the knots and the bounds inside the cells."""
    begins, least, most, cell = envelope_of(knots, gap, cells.lows, cells.least, cells.most)
    lower = np.maximum(0.0, np.maximum(least, -most))
    upper = np.maximum(np.abs(least), np.abs(most))
    return Envelope(begins, lower, upper, least, most, cell)
