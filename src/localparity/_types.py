"""The aliases that signatures use."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

ArrayLike: TypeAlias = Any
"""A list, an array, a column of a data frame, an Arrow array, or a tensor on the CPU."""

Groups: TypeAlias = Any
"""The group of each row: array-like, or a data frame or mapping of several columns."""

Rows: TypeAlias = Any
"""Features, one row each: array-like or data frame."""

Group: TypeAlias = Hashable
"""A value of the sensitive feature; a tuple for an intersection of several."""

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

Seed: TypeAlias = int | np.random.Generator | None
"""The same int gives the same result; None draws a new one each time."""

ScoreRange: TypeAlias = tuple[float, float]
"""The lowest and the highest score there can be."""

RangeOption: TypeAlias = ScoreRange | Literal["data", "rank"]
"""The same, or that of the scores themselves, or of their ranks."""

Criterion: TypeAlias = Literal[
    "demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds"
]
Compare: TypeAlias = Literal["between_groups", "to_overall"]
IntervalMethod: TypeAlias = Literal["finite_sample", "bootstrap"]
Side: TypeAlias = Literal["both", "upper", "lower"]
MissingGroups: TypeAlias = Literal["raise", "drop", "group", "bound"]
"""What is done with rows that have no group."""

Missing: TypeAlias = Literal["raise", "drop"]
"""What is done with rows that have no score, label or weight."""

HigherIs: TypeAlias = Literal["better", "worse"]
MeasuredScale: TypeAlias = Literal["score", "data", "rank"]
