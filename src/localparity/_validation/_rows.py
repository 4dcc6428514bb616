"""Scores, labels and weights: one value a row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import MANY
from localparity._types import ArrayLike, FloatArray, ScoreRange
from localparity._validation._codes import as_column
from localparity._validation._kernels import all_inside

# The score range: lengths and fractions of it, and what rounding does to scores.


_LARGEST = float(np.finfo(np.float64).max)
_EPSILON = float(np.finfo(np.float64).eps)


def as_score_range(score_range: Any) -> ScoreRange:
    """The two ends of the score range, in order and finite."""
    try:
        low, high = (float(end) for end in score_range)
    except (TypeError, ValueError):
        raise ValueError(f"score_range must be two numbers (low, high), got {score_range!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"score_range must be finite with low < high, got ({low}, {high})")
    return low, high


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


def held_ends(score_range: ScoreRange, dtype: np.dtype[Any]) -> ScoreRange:
    """The ends of the score range as a dtype holds them; scores of that dtype go from the one to the other.

    Examples
    --------
    >>> held_ends((0.1, 0.5), np.dtype(np.float32))
    (0.10000000149011612, 0.5)
    """
    if dtype == np.float64:
        return score_range
    most = float(np.finfo(dtype).max)
    low, high = (float(dtype.type(min(max(end, -most), most))) for end in score_range)
    return low, high


def at_ends(scores: NDArray[Any], score_range: ScoreRange) -> NDArray[Any]:
    """Scores as they are, and those beyond an end of the range, which their dtype cannot hold, at that end.

    Examples
    --------
    >>> at_ends(np.array([0.25, 1.1], dtype=np.float32), (0.0, 1.1)) <= 1.1
    array([ True,  True])
    """
    if held_ends(score_range, scores.dtype) == score_range:
        return scores
    return np.clip(scores.astype(np.float64), *score_range)


def rounding(resolution: float, score_range: ScoreRange) -> float:
    """How far, in the scores' own units, a score may lie beyond an end of the range."""
    return 0.5 * resolution * range_length(score_range)


def reach_of(thresholds: Any, resolution: float, score_range: ScoreRange) -> Any:
    """The highest scores that count as at or below thresholds: those within four machine epsilons of one.

    The epsilons are those of the scores' dtype, and as large as the threshold: 0.1 of single precision
    counts as 0.1, and no score above 0 counts as 0.

    Examples
    --------
    >>> single = score_resolution(np.dtype(np.float32), (0.0, 1.0))
    >>> tenth = float(np.float32(0.1))
    >>> tenth <= 0.1, tenth <= reach_of(0.1, single, (0.0, 1.0))
    (False, True)
    >>> reach_of(0.0, single, (0.0, 1.0))
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
