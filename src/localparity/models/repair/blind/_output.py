"""The scale of repaired scores: an increasing map of ranks to what users read."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import isotonic_regression

from localparity._types import FloatArray, IntArray
from localparity.models.repair._score_map import ScoreMap

OUTPUTS = ("original", "calibrated")
_LEVELS = 1000


def original_scale(ranks: FloatArray, scores: FloatArray, weights: FloatArray) -> ScoreMap:
    """Return the map under which ranks have the distribution of the scores, up to ties."""
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    tails = np.geomspace(1e-5, levels[0], 20, endpoint=False)
    levels = np.concatenate([tails, levels, 1.0 - tails[::-1]])
    return _ascending(_quantiles(ranks, weights, levels), _quantiles(scores, weights, levels))


def calibrated_scale(ranks: FloatArray, labels: IntArray, weights: FloatArray) -> ScoreMap:
    """Return the map of ranks to P(y = 1 | rank): isotonic regression, with lines between its steps."""
    order = np.argsort(ranks, kind="stable")
    ranks, weights = ranks[order], weights[order]
    values = isotonic_regression(labels[order].astype(np.float64), sample_weight=weights)
    _, steps = np.unique(values, return_inverse=True)
    masses = np.bincount(steps, weights)
    centres = np.bincount(steps, weights * ranks) / masses
    return _ascending(centres, np.bincount(steps, weights * values) / masses)


def _quantiles(values: FloatArray, weights: FloatArray, levels: FloatArray) -> FloatArray:
    """Return weighted quantiles, on lines between the middles of the steps of the distribution."""
    distinct, places = np.unique(values, return_inverse=True)
    masses = np.bincount(places, weights)
    middles = (np.cumsum(masses) - 0.5 * masses) / masses.sum()
    return np.interp(levels, middles, distinct)


def _ascending(knots: FloatArray, values: FloatArray) -> ScoreMap:
    """Return a map through the distinct knots inside (0, 1), the ends of which stay."""
    inside = (knots > 0.0) & (knots < 1.0)
    knots, first = np.unique(knots[inside], return_index=True)
    values = np.clip(np.maximum.accumulate(values[inside][first]), 0.0, 1.0)
    if not knots.size:
        knots = values = np.array([0.5])
    return ScoreMap(knots, values)
