"""Scores, labels and weights: one value a row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import MANY
from localparity._types import ArrayLike, FloatArray, ScoreRange
from localparity._validation._frames import as_column
from localparity._validation._kernels import all_inside
from localparity._validation._ranges import held_ends, score_resolution

LEAST_WEIGHT = 2.0**-48
MOST_WEIGHT = 2.0**32
"""Weights are added up in whole units, to which smaller ones and larger ones do not fit."""


class Scores(NamedTuple):
    """Scores in their own units, and by how much two fractions of the range that count as equal may differ.

    The resolution is that of the largest scores there can be; smaller ones have a finer one, in proportion.
    """

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


def as_vector(values: ArrayLike, name: str, *, dtype: Any = None) -> NDArray[Any]:
    """One value a row as a one-dimensional array, from lists, data frames' columns and tensors on the CPU."""
    if hasattr(values, "detach"):
        values = values.detach()
    if np.ma.is_masked(values):
        row = int(np.argmax(np.ma.getmaskarray(values)))
        raise ValueError(f"{name} is masked at {place(name, row)}")
    column = as_column(values, name)
    try:
        array = np.asarray(values, dtype=dtype) if column is None else column.to_numpy()
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} cannot be read as an array: {error}") from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        got = array.shape if array.ndim else f"a {type(values).__name__}"
        raise ValueError(f"{name} must have shape (n_samples,), got {got}")
    if array.size == 0:
        raise ValueError(f"{name} is empty")
    return array


def as_numbers(values: ArrayLike, name: str) -> FloatArray:
    """One finite number a row, as float64."""
    return _as_finite(as_vector(values, name), name).values.astype(np.float64, copy=False)


class _Finite(NamedTuple):
    """Finite numbers, and the lowest and the highest of them."""

    values: NDArray[Any]
    lowest: float
    highest: float


def _as_finite(array: NDArray[Any], name: str) -> _Finite:
    """Finite numbers: float32 as it is, everything else as float64."""
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must be real numbers, got {array.dtype}")
    try:
        numbers = array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error
    lowest, highest = float(numbers.min()), float(numbers.max())  # NaN where one of them is
    if array.dtype.kind in "iuO" and max(-lowest, highest) >= 2.0**53:
        _check_held(array, numbers, name)
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        row = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(f"{name} must be finite, got {numbers[row]} at {place(name, row)}")
    return _Finite(numbers, lowest, highest)


def _check_held(array: NDArray[Any], numbers: FloatArray, name: str) -> None:
    """Whole numbers above 2**53 may come to be equal as floats, and are an error where they are not exact."""
    for row in np.flatnonzero(np.abs(numbers) >= 2.0**53).tolist():
        whole = array[row]
        if isinstance(whole, int | np.integer) and int(whole) != int(numbers[row]):
            raise ValueError(
                f"{name} must be integers that float64 represents exactly, got {whole} at "
                f"{place(name, row)}; subtract the same number from all of them"
            )


def as_scores(y_score: ArrayLike, score_range: ScoreRange, name: str = "y_score") -> Scores:
    """Finite scores inside the range, and the resolution that their dtype gives them."""
    shape: tuple[int, ...] = getattr(y_score, "shape", ())
    if len(shape) == 2 and shape[1] == 2:
        raise ValueError(
            f"{name} must have shape (n_samples,), got two columns; pass that of the positive class"
        )
    array = as_vector(y_score, name)
    if _many_inside(array, score_range):
        return Scores(array, score_resolution(array.dtype, score_range))
    values, lowest, highest = _as_finite(array, name)
    low, high = held_ends(score_range, values.dtype)
    if lowest < low or highest > high:
        row = int(np.argmax((values < low) | (values > high)))
        low, high = score_range
        raise ValueError(
            f"{name} must be inside score_range ({low}, {high}), got {values[row]} at {place(name, row)}"
        )
    return Scores(values, score_resolution(array.dtype, score_range))


def _many_inside(array: NDArray[Any], ends: tuple[float, float]) -> bool:
    """Whether there are many floats, all of them between two ends: which one pass can tell."""
    if array.size < MANY or array.dtype not in (np.float32, np.float64):
        return False
    view = array.view()
    view.flags.writeable = False  # so that there is one loop for all
    return all_inside(view, *held_ends(ends, array.dtype))


def check_rows(name: str, rows: int, expected: int, of: str = "y_score") -> None:
    """Every argument has as many rows as the scores."""
    if rows != expected:
        raise ValueError(f"{name} has {rows} rows, {of} has {expected}")


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


def as_labels(y_true: ArrayLike, rows: int, name: str = "y_true") -> NDArray[np.uint8]:
    """Labels that are 0 or 1, one a row."""
    array = as_vector(y_true, name)
    check_rows(name, array.size, rows)
    if array.dtype.kind in "biu" and array.min() >= 0 and array.max() <= 1:
        return array.astype(np.uint8, copy=False)
    try:
        numbers = array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be 0 or 1, got {_first_word(array)!r}") from None
    labels = np.equal(numbers, 1.0)
    if np.count_nonzero(labels) + np.count_nonzero(numbers == 0.0) < numbers.size:
        row = int(np.argmin(labels == numbers))
        raise ValueError(f"{name} must be 0 or 1, got {numbers[row]:g} at {place(name, row)}")
    return np.asarray(labels.view(np.uint8))


def _first_word(array: NDArray[Any]) -> str:
    """The first value that is no number."""
    return str(next(value for value in array.tolist() if not _is_number(value)))


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def as_whole_counts(count: ArrayLike, rows: int, name: str = "count") -> NDArray[np.int64]:
    """Whole numbers that are not negative, one a row."""
    array = as_vector(count, name)
    check_rows(name, array.size, rows, "score")
    numbers = _as_finite(array, name).values.astype(np.float64, copy=False)
    whole = (numbers >= 0.0) & (numbers == np.floor(numbers)) & (numbers < 2.0**53)
    row = int(np.argmin(whole))
    if not whole[row]:
        raise ValueError(f"{name} must be whole numbers >= 0, got {numbers[row]:g} at {place(name, row)}")
    return numbers.astype(np.int64)


def as_weights(sample_weight: ArrayLike, rows: int, name: str = "sample_weight") -> FloatArray:
    """Finite weights that are not negative, one a row."""
    array = as_vector(sample_weight, name)
    check_rows(name, array.size, rows)
    if _many_inside(array, (LEAST_WEIGHT, MOST_WEIGHT)):
        return array.astype(np.float64, copy=False)
    found, lowest, highest = _as_finite(array, name)
    weights = found.astype(np.float64, copy=False)
    if lowest < 0.0:
        row = int(np.argmax(weights < 0.0))
        raise ValueError(f"{name} must be >= 0, got {weights[row]:g} at {place(name, row)}")
    if lowest < LEAST_WEIGHT or highest > MOST_WEIGHT:
        countable = (weights == 0.0) | ((weights >= LEAST_WEIGHT) & (weights <= MOST_WEIGHT))
        row = int(np.argmin(countable))
        if not countable[row]:
            raise ValueError(
                f"{name} must be 0 or between {LEAST_WEIGHT:.2g} and {MOST_WEIGHT:.2g}, got {weights[row]:g} "
                f"at {place(name, row)}; multiply all weights by the same number"
            )
    return weights
