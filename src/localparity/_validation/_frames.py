"""Data frames, their columns and Arrow arrays, of any library, through narwhals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localparity._validation._codes import Coded, as_objects, encode, example_rows, plain
from localparity._validation._extras import require

if TYPE_CHECKING:
    from narwhals import DataFrame, Series

_SIGNS = ("to_numpy", "__arrow_c_stream__", "__arrow_c_array__", "collect")
"""What frames and columns have one of, and lists, arrays and tensors have not."""


def frame_columns(values: Any) -> dict[Any, Any] | None:
    """The columns of a data frame by their names; None of anything else."""
    found = _read(values)
    if found is None or not hasattr(found, "columns"):
        return None
    return {name: found.get_column(name) for name in found.columns}


def as_column(values: Any) -> Series[Any] | None:
    """A column of a data frame, or an Arrow array; None of anything else.

    Examples
    --------
    >>> as_column([1, 2]) is None
    True
    """
    found = _read(values)
    if found is None or not hasattr(found, "columns"):
        return found
    return found.get_column(found.columns[0]) if len(found.columns) == 1 else None


def _read(values: Any) -> DataFrame[Any] | Series[Any] | None:
    """A data frame or a column as narwhals has it; None of anything else."""
    if isinstance(values, np.ndarray | list | tuple) or not any(hasattr(values, sign) for sign in _SIGNS):
        return None
    # Imported here: only those who have frames need it.
    import narwhals as nw

    if isinstance(values, nw.DataFrame | nw.Series):
        return values
    found = nw.from_native(_known(values), allow_series=True, pass_through=True)
    if isinstance(found, nw.LazyFrame):
        if found.implementation.is_spark_like():
            raise ValueError(
                "rows are joined by position, and those of a Spark data frame have none; "
                "use localparity.engines.from_spark"
            )
        return found.collect()
    return found if isinstance(found, nw.DataFrame | nw.Series) else None


def _known(values: Any) -> Any:
    """What narwhals takes, from pandas' arrays and from anything that speaks Arrow's C interface."""
    from narwhals import dependencies, from_native

    pandas = dependencies.get_pandas()
    if pandas is not None and isinstance(values, pandas.Index | pandas.api.extensions.ExtensionArray):
        return pandas.Series(values)
    if not hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__arrow_c_array__"):
        return values
    if from_native(values, eager_only=True, allow_series=True, pass_through=True) is not values:
        return values
    arrow = require("pyarrow", extra="arrow")
    column = arrow.chunked_array([values] if isinstance(values, arrow.Array) else values)
    if not arrow.types.is_struct(column.type):
        return column
    return arrow.Table.from_struct_array(column)


def encode_column(column: Series[Any]) -> Coded:
    """The codes of a column: those that its library has or makes of categories and texts, others by value."""
    import narwhals as nw

    if column.implementation.is_pyarrow() and column.to_native().type == "string_view":
        # Few of Arrow's functions take views.
        column = nw.from_native(column.to_native().cast("large_string"), series_only=True)
    codes = _library_codes(column)
    if codes is None:
        return encode(column.to_numpy() if column.dtype.is_numeric() else np.asarray(column.to_native()))
    codes, numbers = encode(codes)
    # What a code stands for is read from a row that has it.
    rows = example_rows(codes, numbers.size)
    examples = column[rows[rows >= 0].tolist()]
    values = np.full(numbers.size, None, dtype=object)
    values[rows >= 0] = as_objects(_values_of(examples))
    return Coded(codes, values)


def _values_of(column: Series[Any]) -> list[Any]:
    """The values of a column one by one; dates of pandas as Python has them."""
    if column.implementation.is_pandas_like():
        return plain(np.asarray(column.to_native())).tolist()
    return column.to_list()


def _library_codes(column: Series[Any]) -> NDArray[Any] | None:
    """A number for each row, the same where values are the same; None where the library has none to give."""
    import narwhals as nw

    native, is_text, kind = column.to_native(), column.dtype == nw.String, column.implementation
    if not is_text and column.dtype not in (nw.Categorical, nw.Enum):
        return None
    if kind.is_polars():
        if is_text:
            enum = kind.to_native_namespace().Enum
            native = native.cast(enum(native.unique().drop_nulls().sort()))
        codes = native.to_physical()
        return np.asarray(codes if not codes.null_count() else codes.cast(int).fill_null(-1))
    if kind.is_pyarrow():
        encoded = native.dictionary_encode() if is_text else native.unify_dictionaries()
        return np.concatenate([_indices(chunk) for chunk in encoded.chunks])
    if kind.is_pandas_like() and native.dtype != object:
        return np.asarray(native.factorize()[0] if is_text else native.cat.codes)
    return None


def _indices(chunk: Any) -> NDArray[Any]:
    """The codes of an Arrow array of categories, -1 for a missing one."""
    indices = chunk.indices
    if indices.null_count:
        indices = indices.cast("int64").fill_null(-1)
    return np.asarray(indices)
