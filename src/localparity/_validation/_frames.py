"""Data frames, their columns and Arrow arrays, of any library, through narwhals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localparity._validation._codes import Coded, as_objects, encode, example_rows, hashing_pandas, plain
from localparity._validation._extras import require

if TYPE_CHECKING:
    from narwhals import DataFrame, Series

_SIGNS = ("to_numpy", "__arrow_c_stream__", "__arrow_c_array__", "collect")
"""What frames and columns have one of, and lists, arrays and tensors have not."""


def as_frame(values: Any) -> DataFrame[Any] | Series[Any] | None:
    """A data frame or a column as narwhals has it; None of anything else.

    Examples
    --------
    >>> as_frame([1, 2]) is None
    True
    """
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
    """The library to make a frame with for someone who has given some values; None where none is a frame.

    Examples
    --------
    >>> import pandas
    >>> library_of([0.5], pandas.Series(["f"]))
    'pandas'
    """
    for each in values:
        if isinstance(each, np.ndarray) or not any(hasattr(each, sign) for sign in _SIGNS):
            continue
        import narwhals as nw

        found: Any = nw.from_native(each, allow_series=True, pass_through=True)
        if (
            isinstance(found, nw.DataFrame | nw.LazyFrame | nw.Series)
            and not found.implementation.is_duckdb()
        ):
            return str(found.implementation)
        if hasattr(each, "__arrow_c_stream__") or hasattr(each, "__arrow_c_array__"):
            return "pyarrow"
    return None


def as_column(values: Any, name: str) -> Series[Any] | None:
    """A column that has some rows, also of a data frame that has no other; None of anything else."""
    found: Any = as_frame(values)
    if found is not None and hasattr(found, "columns"):
        if len(found.columns) != 1:
            raise ValueError(f"{name} must have shape (n_samples,), got {found.shape}")
        found = found.get_column(found.columns[0])
    if found is not None and not len(found):
        raise ValueError(f"{name} is empty")
    return found  # type: ignore[no-any-return]


def _wrapped(values: Any) -> Any:
    """Pandas' arrays as its columns, and what has Arrow's C interface as Arrow's own."""
    from narwhals import dependencies

    pandas = dependencies.get_pandas()
    if pandas is not None and isinstance(values, pandas.Index | pandas.api.extensions.ExtensionArray):
        return pandas.Series(values)
    if not hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__arrow_c_array__"):
        return values
    arrow = require("pyarrow", extra="arrow")
    column = arrow.chunked_array([values] if isinstance(values, arrow.Array) else values)
    return arrow.Table.from_struct_array(column) if arrow.types.is_struct(column.type) else column


def column_values(column: Series[Any]) -> NDArray[Any]:
    """The values of a column as an array, NaN for missing numbers."""
    return column.to_numpy() if column.dtype.is_numeric() else np.asarray(column.to_native())


def encode_column(column: Series[Any]) -> Coded | None:
    """The codes that a column's library has of categories and makes of texts; None of other columns."""
    import narwhals as nw

    if column.implementation.is_pyarrow() and column.to_native().type == "string_view":
        # Few of Arrow's functions take views.
        column = nw.from_native(column.to_native().cast("large_string"), series_only=True)
    found = _library_codes(column)
    if found is None:
        return None
    codes, numbers = encode(found)
    # What a code stands for is read from a row that has it.
    rows = example_rows(codes, numbers.size)
    values = np.full(numbers.size, None, dtype=object)
    values[rows >= 0] = as_objects(_values_of(column[rows[rows >= 0].tolist()]))
    return Coded(codes, values)


def _values_of(column: Series[Any]) -> list[Any]:
    """The values of a column one by one; dates of pandas as Python has them."""
    if column.implementation.is_pandas_like():
        return list(plain(np.asarray(column.to_native())).tolist())
    return column.to_list()


def _library_codes(column: Series[Any]) -> NDArray[Any] | None:
    """A number for each row, the same where values are the same; None where the library has none to give."""
    import narwhals as nw

    native, is_text, kind = column.to_native(), column.dtype == nw.String, column.implementation
    if not is_text and column.dtype not in (nw.Categorical, nw.Enum):
        return None
    if kind.is_polars():
        categorical = kind.to_native_namespace().Categorical
        codes = (native.cast(categorical) if is_text else native).to_physical()
        return np.asarray(codes if not codes.null_count() else codes.cast(int).fill_null(-1))
    if kind.is_pyarrow():
        encoded = native.dictionary_encode() if is_text else native.unify_dictionaries()
        return np.concatenate([_indices(chunk) for chunk in encoded.chunks])
    if hasattr(native, "cat"):
        return np.asarray(native.cat.codes)
    if kind.is_pandas_like() and native.dtype != object and hashing_pandas() is not None:
        return np.asarray(native.factorize()[0])
    return None


def _indices(chunk: Any) -> NDArray[Any]:
    """The codes of an Arrow array of categories, -1 for a missing one."""
    indices = chunk.indices
    if indices.null_count:
        indices = indices.cast("int64").fill_null(-1)
    return np.asarray(indices)
