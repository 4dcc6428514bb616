"""The columns of tables as people have them: numbers and texts, some of them missing."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import validate_data

from localparity._types import FloatArray
from localparity._validation import Coded, as_frame, column_values, encode, encode_column, is_missing

if TYPE_CHECKING:
    from narwhals import Series


class Column(NamedTuple):
    """A column's values, float64 with NaN where missing or texts as codes, and the categories it declares."""

    name: str
    values: FloatArray | Coded
    categories: Sequence[Any] | None

    @property
    def is_text(self) -> bool:
        """Whether it holds anything but numbers."""
        return isinstance(self.values, Coded)

    @property
    def rows(self) -> int:
        """How many values it has."""
        return len(self.values.codes if isinstance(self.values, Coded) else self.values)

    @property
    def coded(self) -> Coded:
        """Its values as codes, be they texts or numbers."""
        return self.values if isinstance(self.values, Coded) else encode(self.values)


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
    frame: Any = as_frame(X)
    if hasattr(frame, "columns") and len(frame) and frame.columns:
        validate_data(owner, X, skip_check_array=True, reset=reset)
        return [_column(frame.get_column(name), str(name)) for name in frame.columns]
    matrix = validate_data(owner, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
    return [Column(f"x{place}", values, None) for place, values in enumerate(matrix.T)]


def _column(column: Series[Any], name: str) -> Column:
    """Return a column of a data frame; one that declares categories is a text, whatever they are."""
    coded = encode_column(column)
    if coded is not None:
        declared = getattr(getattr(column.to_native(), "cat", None), "categories", None)
        return Column(name, coded, declared)
    values = column_values(column)
    if values.dtype.kind in "mM":
        raise ValueError(f"column {name!r} of X must be numbers or texts, got dates")
    if values.dtype.kind not in "biuf":
        coded = encode(values)
        if not all(isinstance(value, numbers.Real | Decimal) or is_missing(value) for value in coded.values):
            return Column(name, coded, None)
        values = as_floats(coded)
    found = values.astype(np.float64, copy=False)
    if np.isinf(found).any():
        row = int(np.argmax(np.isinf(found)))
        raise ValueError(f"column {name!r} of X must be finite or missing, got {found[row]} at row {row}")
    return Column(name, found, None)


def as_floats(coded: Coded) -> FloatArray:
    """Return numbers, NaN where one is missing or is none."""
    found = [
        float(value) if isinstance(value, numbers.Real | Decimal) and not is_missing(value) else np.nan
        for value in coded.values
    ]
    return np.asarray(np.array(found)[coded.codes])


def with_categories(X: Any) -> Any:
    """Return a pandas data frame whose texts are categories, so that every part of it knows all of them."""
    if not hasattr(X, "select_dtypes"):
        return X
    texts = X.select_dtypes(exclude=["number", "bool", "category"]).columns
    return X.astype(dict.fromkeys(texts, "category"))
