"""The columns of tables as people have them: numbers and texts, some of them missing."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from localparity._types import FloatArray
from localparity._validation import is_missing


class Column(NamedTuple):
    """A column's values, as float64 with NaN where missing or as objects, and the categories it declares."""

    name: str
    values: NDArray[Any]
    categories: Sequence[Any] | None

    @property
    def is_text(self) -> bool:
        """Whether it holds anything but numbers."""
        return self.values.dtype.kind != "f"


def table_columns(owner: Any, X: Any, *, reset: bool) -> list[Column]:
    """Return the columns of a data frame or an array, checked as scikit-learn does on behalf of `owner`.

    A data frame may have text columns; an array holds numbers. With `reset`, at `fit`, the owner learns the
    number and the names of the features; later they are compared with those.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> [column.name for column in table_columns(LogisticRegression(), [[1.0, 2.0]], reset=True)]
    ['x0', 'x1']
    """
    if hasattr(X, "columns") and hasattr(X, "__getitem__") and len(X) and len(X.columns):
        validate_data(owner, X, skip_check_array=True, reset=reset)
        return [_column(X[name], str(name)) for name in X.columns]
    matrix = validate_data(owner, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
    return [Column(f"x{place}", values, None) for place, values in enumerate(matrix.T)]


def _column(column: Any, name: str) -> Column:
    """Return a column of a data frame; one that declares categories is a text, whatever they are."""
    values = np.asarray(column)
    categories = getattr(getattr(column, "cat", None), "categories", None)
    if values.dtype.kind in "mM":
        raise ValueError(f"column {name!r} of X must be numbers or texts, got dates")
    if categories is not None or not _is_numeric(values):
        return Column(name, values.astype(object), categories)
    found = as_floats(values)
    if np.isinf(found).any():
        row = int(np.argmax(np.isinf(found)))
        raise ValueError(f"column {name!r} of X must be finite or missing, got {found[row]} at row {row}")
    return Column(name, found, None)


def _is_numeric(values: NDArray[Any]) -> bool:
    """Whether values are numbers or missing, as in pandas' Int64 too, which is a column of objects."""
    if values.dtype.kind != "O":
        return values.dtype.kind in "biuf"
    return all(isinstance(value, numbers.Real | Decimal) or is_missing(value) for value in values)


def as_floats(values: NDArray[Any]) -> FloatArray:
    """Return numbers as float64, with NaN where one is missing."""
    if values.dtype.kind != "O":
        return values.astype(np.float64)
    found = (np.nan if is_missing(value) else float(value) for value in values)
    return np.fromiter(found, dtype=np.float64, count=len(values))


def with_categories(X: Any) -> Any:
    """Return a pandas data frame whose texts are categories, so that every part of it knows all of them."""
    if not hasattr(X, "select_dtypes"):
        return X
    texts = X.select_dtypes(exclude=["number", "bool", "category"]).columns
    return X.astype(dict.fromkeys(texts, "category"))
