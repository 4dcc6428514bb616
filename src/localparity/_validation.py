"""The one place where arrays and numbers are checked and normalised.

Every function takes the value and returns it in the one form that the rest of the package works on, or
raises a ``ValueError`` that names the argument, what was expected and what came.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Group = Hashable

LEAST_WEIGHT = 2.0**-48
MOST_WEIGHT = 2.0**32
"""Weights are added up in whole units, to which smaller ones and larger ones do not fit."""


class Scores(NamedTuple):
    """Scores in their own units, and the length below which two lengths on the unit scale count as equal."""

    values: NDArray[Any]
    resolution: float


class Grouping(NamedTuple):
    """The group of each row as a code, and the groups' names in the order of their codes."""

    codes: NDArray[np.uint32]
    names: tuple[Group, ...]


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
            f"{name} has {values[row]} at {place(name, row)}, outside score_range ({low}, {high})"
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


def rounding(resolution: float, score_range: tuple[float, float]) -> float:
    """How far, in the scores' own units, a score may lie from the threshold that it stands for."""
    low, high = score_range
    return 0.5 * resolution * (high - low)


def check_rows(name: str, rows: int, expected: int, of: str = "y_score") -> None:
    """Every argument has as many rows as the scores."""
    if rows != expected:
        raise ValueError(f"{name} has {rows} rows where {of} has {expected}")


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


def as_groups(
    sensitive_features: Any, rows: int, name: str = "sensitive_features", *, at_least: int = 2
) -> Grouping:
    """The group of each row, from one column or from the intersection of several."""
    groupings = []
    for column_name, column in _columns(sensitive_features, name).items():
        # Lists as objects: numpy would make one text of a missing value, and of 1 and "1".
        listed = isinstance(column, list | tuple)
        values = as_vector(column, column_name, dtype=object if listed else None)
        check_rows(column_name, values.size, rows)
        groupings.append(_factorize(values, column_name))
    grouping = groupings[0] if len(groupings) == 1 else _intersect(groupings)
    if len(grouping.names) < at_least:
        raise ValueError(f"{name} has one group only, {grouping.names[0]!r}, where two or more are expected")
    return grouping


def _columns(sensitive_features: Any, name: str) -> dict[str, Any]:
    """The columns by the name that messages call them."""
    if sensitive_features is None:
        raise ValueError(f"{name} is None where the group of each row is expected")
    if isinstance(sensitive_features, Mapping):
        columns = dict(sensitive_features)
    elif hasattr(sensitive_features, "columns"):
        columns = {key: sensitive_features[key] for key in sensitive_features.columns}
    elif getattr(sensitive_features, "ndim", 1) == 2:
        columns = dict(enumerate(np.asarray(sensitive_features).T))
    else:
        return {name: sensitive_features}
    if not columns:
        raise ValueError(f"{name} has no columns")
    if isinstance(name, Column):
        return {Column(f"column {key!r}", name.first_row): column for key, column in columns.items()}
    return {f"{name}[{key!r}]": column for key, column in columns.items()}


def _factorize(values: NDArray[Any], name: str) -> Grouping:
    """Codes of the distinct values, in sorted order where they can be sorted."""
    if values.dtype.kind == "b":
        values = values.view(np.uint8)
        names, codes = _factorize_integers(values)
        return Grouping(codes, tuple(bool(value) for value in names))
    if values.dtype.kind in "iu" and values.max() < 2**62 and int(values.max()) - int(values.min()) < 2**16:
        names, codes = _factorize_integers(values)
        return Grouping(codes, tuple(names))
    if values.dtype.kind == "O":
        return _factorize_objects(values, name)
    if values.dtype.kind in "mM":
        values = values.astype(f"{values.dtype.kind}8[us]")
    distinct, inverse = np.unique(values, return_inverse=True)
    found = tuple(distinct.tolist())
    if is_missing(found[-1]):  # NaN and NaT sort last
        row = int(np.argmax(inverse == len(found) - 1))
        raise ValueError(f"{name} has no value at {place(name, row)}")
    return Grouping(inverse.astype(np.uint32), found)


def _factorize_integers(values: NDArray[Any]) -> tuple[list[int], NDArray[np.uint32]]:
    """By counting, without a sort: the common case of millions of rows in a few groups."""
    lowest = int(values.min())
    shifted = values.astype(np.int64, copy=False)
    if lowest:
        shifted = shifted - lowest
    present = np.flatnonzero(np.bincount(shifted))
    code_of = np.zeros(int(present[-1]) + 1, dtype=np.uint32)
    code_of[present] = np.arange(present.size, dtype=np.uint32)
    return (present + lowest).tolist(), code_of[shifted]


def _factorize_objects(values: NDArray[Any], name: str) -> Grouping:
    """Any hashable values, None and NaN excepted."""
    code_of: dict[Group, int] = {}
    codes = np.empty(values.size, dtype=np.uint32)
    for row, value in enumerate(values.tolist()):
        if is_missing(value):
            raise ValueError(f"{name} has no value at {place(name, row)}")
        try:
            codes[row] = code_of.setdefault(value, len(code_of))
        except TypeError:
            raise ValueError(
                f"{name} has {value!r} at {place(name, row)} where values that can be compared are expected"
            ) from None
    names = sort_groups(code_of)
    rank = np.empty(len(names), dtype=np.uint32)
    rank[[code_of[group] for group in names]] = np.arange(len(names), dtype=np.uint32)
    return Grouping(rank[codes], names)


def sort_groups(groups: Iterable[Group]) -> tuple[Group, ...]:
    """In the values' own order, and by their text where they have none."""
    found = list(groups)
    try:
        return tuple(sorted(found))  # type: ignore[type-var]
    except TypeError:
        return tuple(sorted(found, key=str))


def is_missing(value: Any) -> bool:
    """None, NaN and pandas' NA, of which only NaN can be compared."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True


def _intersect(groupings: Sequence[Grouping]) -> Grouping:
    """The combinations of the columns' groups that occur."""
    combined = np.zeros(groupings[0].codes.size, dtype=np.int64)
    for grouping in groupings:
        combined = combined * len(grouping.names) + grouping.codes
    occurring, codes = np.unique(combined, return_inverse=True)
    parts = np.unravel_index(occurring, [len(grouping.names) for grouping in groupings])
    names = tuple(
        tuple(grouping.names[code] for grouping, code in zip(groupings, combination, strict=True))
        for combination in zip(*parts, strict=True)
    )
    return Grouping(codes.astype(np.uint32), names)


def as_number(value: Any, name: str) -> float:
    """One number, NaN excepted."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r} where a number is expected") from None
    if math.isnan(number):
        raise ValueError(f"{name} is nan where a number is expected")
    return number


def as_strength(strength: Any) -> float:
    """The weight of a penalty: a finite number that is not negative."""
    number = as_number(strength, "strength")
    if not 0.0 <= number < math.inf:
        raise ValueError(f"strength is {number:g} where a finite number >= 0 is expected")
    return number


def as_threshold(threshold: Any, score_range: tuple[float, float]) -> float:
    """A threshold inside the score range, in the scores' own units."""
    number = as_number(threshold, "threshold")
    low, high = score_range
    if not low <= number <= high:
        raise ValueError(f"threshold is {number:g}, outside score_range ({low}, {high})")
    return number


def as_rng(random_state: Any) -> np.random.Generator:
    """A random stream from a seed, a generator or nothing."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state is {random_state!r} where a whole number >= 0, a Generator or None is expected"
        ) from error


def as_epsilons(epsilon: Any, name: str = "epsilon") -> FloatArray:
    """Half-widths of windows as an array of the input's shape: numbers that are not negative."""
    try:
        epsilons = np.asarray(epsilon, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {epsilon!r} where a number >= 0 is expected") from None
    wrong = ~(epsilons >= 0.0)
    if wrong.any():
        raise ValueError(f"{name} is {epsilons[wrong].flat[0]:g} where a number >= 0 is expected")
    return epsilons


def as_epsilon(epsilon: Any) -> float:
    """One half-width of a window."""
    epsilons = as_epsilons(epsilon)
    if epsilons.ndim:
        raise ValueError(f"epsilon has shape {epsilons.shape} where one number is expected")
    return float(epsilons)


def as_count(value: Any, name: str, *, at_least: int = 1) -> int:
    """A whole number that is not below a least one."""
    try:
        count = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r} where a whole number is expected") from None
    if count < at_least:
        raise ValueError(f"{name} is {count} where a whole number >= {at_least} is expected")
    return count


def as_level(level: Any, name: str = "level") -> float:
    """A probability strictly between 0 and 1."""
    number = as_number(level, name)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} is {number:g} where a number between 0 and 1 is expected")
    return number


def as_choice(value: Any, name: str, choices: Iterable[str]) -> str:
    """One of a few words."""
    known = tuple(choices)
    if value not in known:
        raise ValueError(f"{name} is {value!r} where one of {', '.join(map(repr, known))} is expected")
    return str(value)


def unknown_name(kind: str, name: object, known: Iterable[object]) -> ValueError:
    """The error for a name that is not there, with the nearest that are."""
    by_text = {str(candidate): candidate for candidate in known}
    folded = {text.casefold(): text for text in by_text}
    nearest = difflib.get_close_matches(str(name).casefold(), folded, n=3, cutoff=0.5)
    if nearest:
        hint = "; did you mean " + " or ".join(repr(by_text[folded[text]]) for text in nearest) + "?"
    else:
        hint = "; there is " + ", ".join(repr(candidate) for candidate in list(by_text.values())[:12])
    return ValueError(f"there is no {kind} {name!r}{hint}")
