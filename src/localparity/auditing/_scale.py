"""The scale that scores are compared on: a range that is given or that of the data, or their ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, get_args

import numpy as np

from localparity._scale import range_length
from localparity._types import ArrayLike, MeasuredScale, Scale, ScoreRange
from localparity._validation import InputError, as_choice, as_vector, setting
from localparity.counts import ScoreCounts
from localparity.counts._ranks import ranked
from localparity.predictions import Predictions

DATA = "data"
_UNIT = (0.0, 1.0)


@dataclass(frozen=True)
class ScoreScale:
    """What was asked of the scale; ranks need no range, and take that of the data unless one is given."""

    scale: Scale
    score_range: ScoreRange | str

    @classmethod
    def of(cls, scale: Any, score_range: Any) -> ScoreScale:
        """What was asked, checked as far as it can be without scores."""
        scale = as_choice(scale, "scale", get_args(Scale))
        if isinstance(score_range, str) and score_range != DATA:
            raise InputError(f"must be two numbers (low, high) or 'data', got {score_range!r}", "score_range")
        unit = not isinstance(score_range, str) and tuple(score_range) == _UNIT
        return cls(scale, DATA if scale == "rank" and unit else score_range)

    @property
    def measured(self) -> MeasuredScale:
        """What an epsilon is a share of."""
        return "data" if self.from_data and self.scale == "score" else self.scale

    @property
    def from_data(self) -> bool:
        """Whether the range is that of the scores."""
        return self.score_range == DATA

    def range_of(self, y_true: Any, y_score: ArrayLike | None) -> ScoreRange:
        """The range that rows are read with, given what was passed for them."""
        if not self.from_data:
            return self.score_range  # type: ignore[return-value]
        if isinstance(y_true, Predictions | ScoreCounts):
            return y_true.score_range
        if y_score is None:
            return _UNIT  # which is an error where arrays are checked
        array = as_vector(y_score, "y_score")
        if array.dtype == object:
            array = np.array([np.nan if value is None else value for value in array.tolist()])
        try:
            numbers = array.astype(np.float64)
        except (TypeError, ValueError):
            return _UNIT  # and so are values that are no numbers
        finite = numbers[np.isfinite(numbers)]
        return as_data_range(float(finite.min(initial=np.inf)), float(finite.max(initial=-np.inf)))

    def apply(self, counts: ScoreCounts) -> ScoreCounts:
        """The counts of the people who are compared, on the scale."""
        if self.scale == "rank":
            return ranked(counts)
        if not self.from_data or counts.cells is not None:
            return counts
        ends = [
            end for atoms in counts.atoms.values() for end in atoms.scores[[0, -1]].tolist() if atoms.size
        ]
        score_range = as_data_range(min(ends), max(ends))
        relative = counts.resolution / _reach(counts.score_range)
        return replace(counts, score_range=score_range, resolution=relative * _reach(score_range))


def as_data_range(low: float, high: float, name: str = "y_score") -> ScoreRange:
    """The range of scores from the lowest to the highest, rounded outward.

    So it is the same for most samples of the same scores, and tells nobody's score.

    Examples
    --------
    >>> as_data_range(-3.51, 12.07), as_data_range(0.034, 0.62)
    ((-4.0, 13.0), (0.0, 0.7))
    """
    if low > high:
        raise InputError(f"must have finite scores with {setting(score_range='data')}, got none", name)
    if low == high:
        raise InputError(
            f"must have two different scores with {setting(score_range='data')}, got {low:g} only", name
        )
    lowest, highest = Decimal(repr(low)), Decimal(repr(high))
    step = Decimal(1).scaleb((highest - lowest).adjusted())
    if highest - lowest < 5 * step:
        step /= 10
    ends = ((lowest, ROUND_FLOOR), (highest, ROUND_CEILING))
    low, high = (float((end / step).to_integral_value(way) * step) for end, way in ends)
    return low, high


def _reach(score_range: ScoreRange) -> float:
    """The larger end of a range, as a multiple of its length."""
    return max(map(abs, score_range)) / range_length(score_range)
