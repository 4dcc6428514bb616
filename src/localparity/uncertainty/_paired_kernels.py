"""MCDP of two models on the same people, from one walk over the scores of both.

Compiled by numba on first use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import compiled
from localparity._types import FloatArray, IntArray
from localparity.metrics._kernels import highest_runs


class ScoreArrays(NamedTuple):
    """The scores of both models together, ascending.

    Attributes
    ----------
    codes : ndarray
        The group of the person that each score belongs to.
    ends : ndarray
        How many scores are at or below each knot.
    knots : ndarray
        The distinct scores, as fractions of the score range.
    """

    codes: NDArray[np.int32]
    ends: IntArray
    knots: FloatArray


class PairSteps(NamedTuple):
    """What a score of weight 1 adds to the gap of each pair.

    Attributes
    ----------
    steps : ndarray of shape (pairs, groups)
        What one of each group adds, times the weights of the pair's two sides: whole numbers without weights,
        so that equal gaps are equal floats.
    scale : ndarray
        One over the product of the weights of each pair's two sides.
    """

    steps: FloatArray
    scale: FloatArray


@compiled
def mcdp_of_models(
    scores: ScoreArrays, models: NDArray[np.uint8], weights: FloatArray, pairs: PairSteps, reach: float
) -> tuple[float, float]:
    """MCDP of the worst pair under each of two models, given which of them, 0 or 1, each score is of.

    A run carries a window if it is longer than `reach`; where that is 0, any run does.
    """
    found = np.zeros(2)
    gap = np.zeros((2, scores.knots.size))
    half_width = np.array([reach])
    for pair in range(pairs.scale.size):
        so_far = np.zeros(2)
        largest = np.zeros(2)
        place = 0
        # The gap is 0 at the last knot.
        for knot in range(scores.knots.size - 1):
            while place < scores.ends[knot]:
                so_far[models[place]] += pairs.steps[pair, scores.codes[place]] * weights[place]
                place += 1
            for model in range(2):
                gap[model, knot] = so_far[model] * pairs.scale[pair]
                largest[model] = max(largest[model], abs(gap[model, knot]))
        for model in range(2):
            if reach > 0.0 and largest[model] > found[model]:
                largest[model] = highest_runs(scores.knots, gap[model], half_width)[0]
            found[model] = max(found[model], largest[model])
    return found[0], found[1]
