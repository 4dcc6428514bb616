"""Checks of many rows in one pass, which takes as long as reading them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled


@compiled
def all_inside(numbers: NDArray[Any], low: float, high: float) -> bool:
    """Whether all numbers lie between two others, the ends included; NaN does not."""
    outside = 0
    for row in range(numbers.size):
        outside += 1 - (numbers[row] >= low) * (numbers[row] <= high)
    return outside == 0


@compiled
def low_bytes(numbers: NDArray[Any], found: NDArray[np.uint8]) -> tuple[int, int]:
    """Write the lowest byte of whole numbers; returns the lowest and the highest of them."""
    lowest, highest = numbers[0], numbers[0]
    for row in range(numbers.size):
        number = numbers[row]
        lowest, highest = min(lowest, number), max(highest, number)
        found[row] = number & 255
    return lowest, highest
