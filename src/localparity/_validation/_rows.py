"""Scores, labels and weights, one a row, from arrays, lists, tensors and data frames of any library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import MANY, compiled
from localparity._scale import representable_range, score_resolution
from localparity._types import ArrayLike, FloatArray, ScoreRange
from localparity._validation._errors import Argument, InputError, at_row, require, setting

if TYPE_CHECKING:
    from narwhals import DataFrame, Series

# Data frames, their columns and Arrow arrays, through narwhals.


_SIGNS = ("to_numpy", "__arrow_c_stream__", "__arrow_c_array__", "collect")
"""Frames and columns have one of these; lists, arrays and tensors have none."""


def as_frame(values: Any) -> DataFrame[Any] | Series[Any] | None:
    """A data frame or a column in narwhals; None for anything else."""
    if isinstance(values, np.ndarray | list | tuple) or not any(hasattr(values, sign) for sign in _SIGNS):
        return None
    # Imported here: only those who have frames need it.
    import narwhals as nw

    found: Any = nw.from_native(values, allow_series=True, pass_through=True)
    if found is values and not isinstance(values, nw.DataFrame | nw.Series):
        found = nw.from_native(_wrapped(values), allow_series=True, pass_through=True)
    if isinstance(found, nw.LazyFrame) and found.implementation.is_duckdb():
        require("pyarrow", extra="arrow")
        found = nw.from_native(found.to_native().to_arrow_table(), eager_only=True)
    if isinstance(found, nw.LazyFrame) and found.implementation.is_polars():
        found = found.collect()
    # The rows of other queries, such as Spark's, have no order to join them by.
    return found if isinstance(found, nw.DataFrame | nw.Series) else None


def library_of(*values: Any) -> str | None:
    """The library of the first frame among some values; None where none is a frame."""
    for value in values:
        if isinstance(value, np.ndarray) or not any(hasattr(value, sign) for sign in _SIGNS):
            continue
        import narwhals as nw

        found: Any = nw.from_native(value, allow_series=True, pass_through=True)
        if (
            isinstance(found, nw.DataFrame | nw.LazyFrame | nw.Series)
            and not found.implementation.is_duckdb()
        ):
            return str(found.implementation)
        if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
            return "pyarrow"
    return None


def as_column(values: Any, name: Argument) -> Series[Any] | None:
    """A column with rows, also the only one of a data frame; None for anything else."""
    found: Any = as_frame(values)
    if found is not None and hasattr(found, "columns"):
        if len(found.columns) != 1:
            raise InputError(f"must have shape (n_samples,), got {found.shape}", name)
        found = found.get_column(found.columns[0])
    if found is not None and not len(found):
        raise InputError("is empty", name)
    return found  # type: ignore[no-any-return]


def _wrapped(values: Any) -> Any:
    """A pandas array as a column, and anything with Arrow's C interface as pyarrow's own."""
    from narwhals import dependencies

    pandas = dependencies.get_pandas()
    if pandas is not None and isinstance(values, pandas.Index | pandas.api.extensions.ExtensionArray):
        return pandas.Series(values)
    if not hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__arrow_c_array__"):
        return values
    arrow = require("pyarrow", extra="arrow")
    column = arrow.chunked_array([values] if isinstance(values, arrow.Array) else values)
    return arrow.Table.from_struct_array(column) if arrow.types.is_struct(column.type) else column


# Scores, labels and weights.


def as_score_range(score_range: Any) -> ScoreRange:
    """The two ends of the score range, in order and finite."""
    try:
        low, high = (float(end) for end in score_range)
    except (TypeError, ValueError):
        raise InputError(f"must be two numbers (low, high), got {score_range!r}", "score_range") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"must be finite with low < high, got ({low}, {high})", "score_range")
    return low, high


LEAST_WEIGHT = 2.0**-48
MOST_WEIGHT = 2.0**32
"""Weights are added up in whole units, to which smaller ones and larger ones do not fit."""


class Scores(NamedTuple):
    """Scores in their own units; at the range's larger end, fractions closer than `resolution` are equal."""

    values: NDArray[Any]
    resolution: float


def as_vector(values: ArrayLike, name: Argument, *, dtype: Any = None) -> NDArray[Any]:
    """A one-dimensional array, from a list, a data frame's column or a tensor on the CPU."""
    if hasattr(values, "detach"):
        values = values.detach()
    if np.ma.is_masked(values):
        row = int(np.argmax(np.ma.getmaskarray(values)))
        raise InputError(f"is masked {at_row(name, row)}", name, row=row)
    column = as_column(values, name)
    try:
        array = np.asarray(values, dtype=dtype) if column is None else column.to_numpy()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"cannot be read as an array: {error}", name) from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        got = array.shape if array.ndim else f"a {type(values).__name__}"
        raise InputError(f"must have shape (n_samples,), got {got}", name)
    if array.size == 0:
        raise InputError("is empty", name)
    return array


def as_numbers(values: ArrayLike, name: Argument) -> FloatArray:
    """One finite number a row, as float64."""
    return _as_finite(as_vector(values, name), name)[0].astype(np.float64, copy=False)


def _as_finite(array: NDArray[Any], name: Argument) -> tuple[NDArray[Any], float, float]:
    """Finite numbers, float32 as it is and everything else as float64, with the lowest and the highest."""
    if array.dtype.kind == "c":
        raise InputError(f"must be real numbers, got {array.dtype}", name)
    try:
        numbers = array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"must be numbers: {error}", name) from error
    lowest, highest = float(numbers.min()), float(numbers.max())  # NaN where one of them is
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        row = int(np.argmin(np.isfinite(numbers)))
        raise InputError(f"must be finite, got {numbers[row]} {at_row(name, row)}", name, row=row)
    return numbers, lowest, highest


def as_scores(y_score: ArrayLike, score_range: ScoreRange, name: Argument = "y_score") -> Scores:
    """Finite scores inside the range, and the resolution that their dtype gives them."""
    shape: tuple[int, ...] = getattr(y_score, "shape", ())
    if len(shape) == 2 and shape[1] == 2:
        raise InputError(
            "must have shape (n_samples,), got two columns; pass that of the positive class", name
        )
    array = as_vector(y_score, name)
    if _many_inside(array, score_range):
        return Scores(array, score_resolution(array.dtype, score_range))
    values, lowest, highest = _as_finite(array, name)
    low, high = representable_range(score_range, values.dtype)
    if lowest < low or highest > high:
        row = int(np.argmax((values < low) | (values > high)))
        low, high = score_range
        limits = setting("score_range")
        raise InputError(
            f"must be inside {limits} ({low}, {high}), got {values[row]} {at_row(name, row)}; "
            f"give {limits} the range that scores can have",
            name,
            row=row,
        )
    return Scores(values, score_resolution(array.dtype, score_range))


def _many_inside(array: NDArray[Any], ends: tuple[float, float]) -> bool:
    """Whether these are many floats, all of them between two ends, as one compiled pass tells."""
    if array.size < MANY or array.dtype not in (np.float32, np.float64):
        return False
    view = array.view()
    view.flags.writeable = False  # so that there is one loop for all
    return all_inside(view, *representable_range(ends, array.dtype))


def check_rows(name: Argument, rows: int, expected: int, of: str = "y_score") -> None:
    """Check that an argument has as many rows as the scores."""
    if rows != expected:
        raise InputError(f"has {rows} rows, {setting(of)} has {expected}", name)


def check_indexes(arguments: Mapping[Any, Any]) -> None:
    """Check that pandas' indexes agree, by the arguments' names: rows are joined by position."""
    indexes = list(_indexes(arguments))
    for name, index in indexes[1:]:
        first, known = indexes[0]
        # Different lengths are reported by `check_rows`.
        if len(index) == len(known) and not known.equals(index):
            raise InputError(
                f"{first} and {name} have different indexes, and rows are joined by position: align them, "
                f"e.g. {name}.loc[{first}.index] or reset_index(drop=True), or pass both as to_numpy()"
            )


def _indexes(arguments: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """The pandas indexes, also of a mapping's columns; `list.index` is a method."""
    for name, values in arguments.items():
        if isinstance(values, Mapping):
            yield from _indexes({f"{name}[{key!r}]": column for key, column in values.items()})
        elif hasattr(getattr(values, "index", None), "equals"):
            yield str(name), values.index


def as_labels(y_true: ArrayLike, rows: int, name: Argument = "y_true") -> NDArray[np.uint8]:
    """Labels that are 0 or 1, one a row."""
    array = as_vector(y_true, name)
    check_rows(name, array.size, rows)
    if array.dtype.kind in "biu" and array.min() >= 0 and array.max() <= 1:
        return array.astype(np.uint8, copy=False)
    try:
        numbers = array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InputError(f"must be 0 or 1, got {_first_word(array)!r}{_advice(name)}", name) from None
    labels = np.equal(numbers, 1.0)
    if np.count_nonzero(labels) + np.count_nonzero(numbers == 0.0) < numbers.size:
        row = int(np.argmin(labels == numbers))
        raise InputError(
            f"must be 0 or 1, got {numbers[row]:g} {at_row(name, row)}{_advice(name)}", name, row=row
        )
    return np.asarray(labels.view(np.uint8))


def _advice(name: Argument) -> str:
    """What to do about other labels; those of a file may come from a command that cannot do it."""
    return f"; pass {setting('pos_label')} if there are other labels" if isinstance(name, str) else ""


def _first_word(array: NDArray[Any]) -> str:
    """The first value that is not a number."""
    return str(next(value for value in array.tolist() if not _is_number(value)))


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def as_whole_counts(count: ArrayLike, rows: int, name: Argument = "count") -> NDArray[np.int64]:
    """Whole numbers that are not negative, one a row."""
    array = as_vector(count, name)
    check_rows(name, array.size, rows, "score")
    numbers = _as_finite(array, name)[0].astype(np.float64, copy=False)
    whole = (numbers >= 0.0) & (numbers == np.floor(numbers)) & (numbers < 2.0**53)
    row = int(np.argmin(whole))
    if not whole[row]:
        raise InputError(
            f"must be whole numbers >= 0, got {numbers[row]:g} {at_row(name, row)}", name, row=row
        )
    return numbers.astype(np.int64)


def as_weights(sample_weight: ArrayLike, rows: int, name: Argument = "sample_weight") -> FloatArray:
    """Finite weights that are not negative, one a row."""
    array = as_vector(sample_weight, name)
    check_rows(name, array.size, rows)
    if _many_inside(array, (LEAST_WEIGHT, MOST_WEIGHT)):
        return array.astype(np.float64, copy=False)
    numbers, lowest, highest = _as_finite(array, name)
    weights = numbers.astype(np.float64, copy=False)
    if lowest < 0.0:
        row = int(np.argmax(weights < 0.0))
        raise InputError(f"must be >= 0, got {weights[row]:g} {at_row(name, row)}", name, row=row)
    if lowest < LEAST_WEIGHT or highest > MOST_WEIGHT:
        countable = (weights == 0.0) | ((weights >= LEAST_WEIGHT) & (weights <= MOST_WEIGHT))
        row = int(np.argmin(countable))
        if not countable[row]:
            raise InputError(
                f"must be 0 or between {LEAST_WEIGHT:.2g} and {MOST_WEIGHT:.2g}, got {weights[row]:g} "
                f"{at_row(name, row)}; multiply all weights by the same number",
                name,
                row=row,
            )
    return weights


# Checks of many rows in one pass, which takes as long as reading them.


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
