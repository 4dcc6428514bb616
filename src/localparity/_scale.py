"""The score range: lengths and fractions of it, and what rounding does to scores in it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray, ScoreRange

_LARGEST = float(np.finfo(np.float64).max)
_EPSILON = float(np.finfo(np.float64).eps)


def score_resolution(dtype: np.dtype[Any], score_range: ScoreRange) -> float:
    """Four machine epsilons of the scores' dtype, as a fraction of the score range, at its larger end.

    A score carries an error of its own size times the machine epsilon, so on a range that lies far from
    zero the fraction grows accordingly; on [0, 1] it is four machine epsilons.
    """
    low, high = score_range
    single = dtype.kind == "f" and dtype.itemsize < 8
    machine_epsilon = float(np.finfo(dtype if single else np.float64).eps)
    return 4.0 * machine_epsilon * max(abs(low), abs(high)) / range_length(score_range)


def range_length(score_range: ScoreRange) -> float:
    """The length of the score range; of one longer than the largest float, that float.

    Examples
    --------
    >>> range_length((300.0, 850.0)), range_length((-1e308, 1e308))
    (550.0, 1.7976931348623157e+308)
    """
    low, high = score_range
    return min(high - low, _LARGEST)


def fractions_of(scores: FloatArray, score_range: ScoreRange) -> FloatArray:
    """Scores as fractions of the score range, which may be as long as floats go.

    Examples
    --------
    >>> fractions_of(np.array([300.0, 575.0]), (300.0, 850.0)), fractions_of(np.zeros(1), (-1e308, 1e308))
    (array([0. , 0.5]), array([0.5]))
    """
    scale = range_scale(score_range)
    low, high = (scale * end for end in score_range)
    return np.asarray((scale * scores - low) / (high - low))


def range_scale(score_range: ScoreRange) -> float:
    """What to multiply scores by before they are subtracted: 1, or 1/2 in a range too long for a float."""
    low, high = score_range
    return 1.0 if math.isfinite(high - low) else 0.5


def representable_range(score_range: ScoreRange, dtype: np.dtype[Any]) -> ScoreRange:
    """The ends of the score range as a dtype holds them; scores of that dtype go from the one to the other.

    Examples
    --------
    >>> representable_range((0.1, 0.5), np.dtype(np.float32))
    (0.10000000149011612, 0.5)
    """
    if dtype == np.float64:
        return score_range
    most = float(np.finfo(dtype).max)
    low, high = (float(dtype.type(min(max(end, -most), most))) for end in score_range)
    return low, high


def clip_to_range(scores: NDArray[Any], score_range: ScoreRange) -> NDArray[Any]:
    """Scores as they are, and those beyond an end of the range, which their dtype cannot hold, at that end.

    Examples
    --------
    >>> clip_to_range(np.array([0.25, 1.1], dtype=np.float32), (0.0, 1.1)) <= 1.1
    array([ True,  True])
    """
    if representable_range(score_range, scores.dtype) == score_range:
        return scores
    return np.clip(scores.astype(np.float64), *score_range)


def rounding(resolution: float, score_range: ScoreRange) -> float:
    """How far, in the scores' own units, a score may lie beyond an end of the range."""
    return 0.5 * resolution * range_length(score_range)


def threshold_reach(thresholds: Any, resolution: float, score_range: ScoreRange) -> Any:
    """The highest scores that count as at or below thresholds: those within four machine epsilons of one.

    The epsilons are those of the scores' dtype, and as large as the threshold: 0.1 of single precision
    counts as 0.1, and no score above 0 counts as 0.

    Examples
    --------
    >>> single = score_resolution(np.dtype(np.float32), (0.0, 1.0))
    >>> tenth = float(np.float32(0.1))
    >>> tenth <= 0.1, tenth <= threshold_reach(0.1, single, (0.0, 1.0))
    (False, True)
    >>> threshold_reach(0.0, single, (0.0, 1.0))
    0.0
    """
    low, high = score_range
    relative = resolution * (range_length(score_range) / max(abs(low), abs(high)))
    return thresholds + relative * abs(thresholds)


def rounding_of(fractions: FloatArray, resolution: float, score_range: ScoreRange) -> FloatArray:
    """By how much fractions of the score range may be off: in proportion to the scores that they stand for.

    Half the resolution at the larger end of the range, and an epsilon for taking the fraction.

    Examples
    --------
    >>> rounding_of(np.array([0.0, 0.5, 1.0]), 0.25, (0.0, 100.0))
    array([0.    , 0.0625, 0.125 ])
    """
    factor, origin = rounding_terms(resolution, score_range)
    return np.asarray(factor * np.abs(fractions + origin) + _EPSILON * fractions)


def rounding_terms(resolution: float, score_range: ScoreRange) -> tuple[float, float]:
    """The share of its size that a score may be off by, and the bottom as a multiple of the length."""
    low, high = score_range
    length = range_length(score_range)
    return 0.5 * resolution / (max(abs(low), abs(high)) / length), low / length


def even_thresholds(score_range: ScoreRange, parts: int) -> FloatArray:
    """The thresholds that cut the score range into equal parts, both ends included.

    Each is the sum of the ends' multiples over the number of parts, which is the float of its decimals where
    a step added up would miss it.

    Examples
    --------
    >>> even_thresholds((-1.0, 1.0), 20)[9:12]
    array([-0.1,  0. ,  0.1])
    """
    low, high = score_range
    shrink = 2.0**-64 if max(abs(low), abs(high)) > 2.0**950 else 1.0
    step = np.arange(parts + 1)
    found = (low * shrink * (parts - step) + high * shrink * step) / parts / shrink
    found[0], found[-1] = low, high
    return np.asarray(np.clip(found, low, high))
