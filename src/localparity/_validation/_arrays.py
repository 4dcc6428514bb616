"""Scores, labels and weights: one value a row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

LEAST_WEIGHT = 2.0**-48
MOST_WEIGHT = 2.0**32
"""Weights are added up in whole units, to which smaller ones and larger ones do not fit."""


class Scores(NamedTuple):
    """Scores in their own units, and the length below which two lengths on the unit scale count as equal."""

    values: NDArray[Any]
    resolution: float


class Column(str):
    """The name of a file's column, as messages call it, and the number of the first row that is looked at."""

    first_row: int | None

    def __new__(cls, name: str, first_row: int | None = 1) -> Column:
        """A column whose rows count from `first_row`; None where rows have no order."""
        column = super().__new__(cls, name)
        column.first_row = first_row
        return column


def place(name: str, row: int) -> str:
    """Where a value stands: arrays count from 0, and the rows of a file from 1."""
    if not isinstance(name, Column):
        return f"row {row}"
    return "some row" if name.first_row is None else f"data row {row + name.first_row}"


def as_vector(values: Any, name: str, *, dtype: Any = None) -> NDArray[Any]:
    """One value a row as a one-dimensional array, from lists, data frames' columns and tensors on the CPU."""
    if hasattr(values, "detach"):
        values = values.detach()
    if np.ma.is_masked(values):
        row = int(np.argmax(np.ma.getmaskarray(values)))
        raise ValueError(f"{name} has no value at {place(name, row)}, where its mask is set")
    try:
        array = np.asarray(values, dtype=dtype)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} cannot be read as an array: {error}") from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape} where one value a row is expected")
    if array.size == 0:
        raise ValueError(f"{name} is empty")
    return array


def as_numbers(values: Any, name: str) -> FloatArray:
    """One finite number a row, as float64."""
    return _finite(as_vector(values, name), name).astype(np.float64, copy=False)


def _finite(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Finite numbers: float32 as it is, everything else as float64."""
    if array.dtype.kind == "c":
        raise ValueError(f"{name} has complex numbers where real ones are expected")
    try:
        numbers = array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} has values that are not numbers: {error}") from error
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(f"{name} has {numbers[row]} at {place(name, row)} where finite numbers are expected")
    return numbers


def as_score_range(score_range: Any) -> tuple[float, float]:
    """The two ends of the score range, in order and finite."""
    try:
        low, high = (float(end) for end in score_range)
    except (TypeError, ValueError):
        raise ValueError(
            f"score_range is {score_range!r} where two numbers (low, high) are expected"
        ) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"score_range is ({low}, {high}) where two finite numbers, low < high, are expected")
    return low, high


def as_scores(y_score: Any, score_range: tuple[float, float], name: str = "y_score") -> Scores:
    """Finite scores inside the range, and the resolution that their dtype gives them."""
    if getattr(y_score, "ndim", 1) == 2 and y_score.shape[1] == 2:
        raise ValueError(f"{name} has two columns where one is expected; pass that of the positive class")
    array = as_vector(y_score, name)
    values = _finite(array, name)
    low, high = score_range
    if values.min() < low or values.max() > high:
        row = int(np.argmax((values < low) | (values > high)))
        raise ValueError(
            f"{name} has {values[row]} at {place(name, row)}, outside score_range ({low}, {high}), which "
            "says what scores there can be"
        )
    return Scores(values, score_resolution(array.dtype, score_range))


def score_resolution(dtype: np.dtype[Any], score_range: tuple[float, float]) -> float:
    """Four machine epsilons of the scores' dtype, as a fraction of the score range.

    A score carries an error of its own size times the machine epsilon, so on a range that lies far from
    zero the fraction grows accordingly; on [0, 1] it is four machine epsilons.
    """
    low, high = score_range
    single = dtype.kind == "f" and dtype.itemsize < 8
    machine_epsilon = float(np.finfo(dtype if single else np.float64).eps)
    return 4.0 * machine_epsilon * max(abs(low), abs(high)) / (high - low)


def held_ends(score_range: tuple[float, float], dtype: np.dtype[Any]) -> tuple[float, float]:
    """The ends of the score range as a dtype holds them; scores of that dtype go from the one to the other.

    Examples
    --------
    >>> held_ends((0.1, 0.5), np.dtype(np.float32))
    (0.10000000149011612, 0.5)
    """
    low, high = score_range
    return float(dtype.type(low)), float(dtype.type(high))


def at_ends(scores: NDArray[Any], score_range: tuple[float, float]) -> NDArray[Any]:
    """Scores as they are, and those beyond an end of the range, which their dtype cannot hold, at that end.

    Examples
    --------
    >>> at_ends(np.array([0.25, 1.1], dtype=np.float32), (0.0, 1.1)) <= 1.1
    array([ True,  True])
    """
    if held_ends(score_range, scores.dtype) == score_range:
        return scores
    return np.clip(scores.astype(np.float64), *score_range)


def rounding(resolution: float, score_range: tuple[float, float]) -> float:
    """How far, in the scores' own units, a score may lie from the threshold that it stands for."""
    low, high = score_range
    return 0.5 * resolution * (high - low)


def check_rows(name: str, rows: int, expected: int, of: str = "y_score") -> None:
    """Every argument has as many rows as the scores."""
    if rows != expected:
        raise ValueError(f"{name} has {rows} rows where {of} has {expected}")


def check_indexes(arguments: Mapping[str, Any]) -> None:
    """Rows are joined by their place, so data frames and their columns must agree on what stands where.

    Parameters
    ----------
    arguments : mapping
        By the name that messages call it, what may have a pandas index; everything else is passed over.
    """
    indexes = list(_indexes(arguments))
    for name, index in indexes[1:]:
        first, known = indexes[0]
        # Of other lengths, others say so.
        if len(index) == len(known) and not known.equals(index):
            raise ValueError(
                f"{first} and {name} have different indexes, and rows are joined by position: align them, "
                f"e.g. {name}.loc[{first}.index] or reset_index(drop=True), or pass both as to_numpy()"
            )


def _indexes(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What has a pandas index, the columns of a mapping too; the index of a list is a method."""
    for name, values in arguments.items():
        if isinstance(values, Mapping):
            yield from _indexes({f"{name}[{key!r}]": column for key, column in values.items()})
        elif hasattr(getattr(values, "index", None), "equals"):
            yield name, values.index


def as_labels(y_true: Any, rows: int, name: str = "y_true") -> NDArray[np.uint8]:
    """Labels that are 0 or 1, one a row."""
    array = as_vector(y_true, name)
    check_rows(name, array.size, rows)
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} has {_first_word(array)!r} where labels 0 and 1 are expected") from None
    wrong = ~((numbers == 0.0) | (numbers == 1.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        where = place(name, row)
        raise ValueError(f"{name} has {numbers[row]:g} at {where} where labels 0 and 1 are expected")
    return numbers.astype(np.uint8)


def _first_word(array: NDArray[Any]) -> str:
    """The first value that is no number."""
    return str(next(value for value in array.tolist() if not _is_number(value)))


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def as_weights(sample_weight: Any, rows: int, name: str = "sample_weight") -> FloatArray:
    """Finite weights that are not negative, one a row."""
    weights = as_numbers(sample_weight, name)
    check_rows(name, weights.size, rows)
    if weights.min() < 0.0:
        row = int(np.argmin(weights >= 0.0))
        raise ValueError(f"{name} has {weights[row]:g} at {place(name, row)} where weights >= 0 are expected")
    countable = (weights == 0.0) | ((weights >= LEAST_WEIGHT) & (weights <= MOST_WEIGHT))
    if not countable.all():
        row = int(np.argmin(countable))
        raise ValueError(
            f"{name} has {weights[row]:g} at {place(name, row)} where 0 or a weight from {LEAST_WEIGHT:.2g} "
            f"to {MOST_WEIGHT:.2g} is expected; multiply all weights with one number"
        )
    return weights
