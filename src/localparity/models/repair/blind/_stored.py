"""What a group-blind repair keeps in a file, checked as it is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from localparity._types import FloatArray
from localparity.models.repair._score_map import ScoreMap, checked_map
from localparity.models.repair.blind._nested_score import NestedScore


def parse_masses(values: Any, size: int) -> FloatArray:
    """Return the masses of the constraints, or raise a ValueError."""
    masses = _finite(values, (size,), "masses")
    if not (masses > 0.0).all():
        raise ValueError(f"masses must be > 0, got {masses.min()}")
    return masses


def parse_score(values: Any, n_constraints: int) -> NestedScore | None:
    """Return the multipliers and thresholds, None where there are none, or raise a ValueError."""
    if values is None:
        return None
    rates, multipliers, thresholds = values
    size = len(rates)
    return NestedScore(
        _finite(rates, (size,), "rates"),
        _finite(multipliers, (size, n_constraints), "multipliers"),
        _finite(thresholds, (size,), "thresholds"),
    )


def parse_scale(values: Any) -> ScoreMap | None:
    """Return the map from ranks to scores, None where there is none, or raise a ValueError."""
    if values is None:
        return None
    knots, heights = values
    shape = (len(knots),)
    return checked_map(_finite(knots, shape, "knots"), _finite(heights, shape, "values"), (0.0, 1.0))


def _finite(values: Any, shape: tuple[int, ...], name: str) -> FloatArray:
    """Return numbers from a file as an array of a shape, or raise a ValueError."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}, got shape {array.shape}")
    return array
