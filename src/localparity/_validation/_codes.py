"""Values as codes, in one pass and without a sort where they have few distinct values."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import MANY
from localparity._types import Group
from localparity._validation._arguments import require
from localparity._validation._kernels import low_bytes

if TYPE_CHECKING:
    from narwhals import DataFrame, Series


_ROWS = 2**14
"""As many rows at a time as the processor's cache holds with what is computed of them."""

_BUCKETS = (2**12, 2**16)
"""How many values a hash tells apart, of few rows and of many."""

_TRIES = 4
_FACTOR = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio, multiples of which differ in their upper bits."""


class Coded(NamedTuple):
    """The place of each row's value among `values`, of which some may be equal, missing or of no row."""

    codes: NDArray[Any]
    values: NDArray[Any]


def smallest_dtype(count: int) -> np.dtype[Any]:
    """The smallest unsigned dtype that holds so many codes.

    Examples
    --------
    >>> smallest_dtype(256), smallest_dtype(257)
    (dtype('uint8'), dtype('uint16'))
    """
    return np.min_scalar_type(max(count - 1, 0))


def encode(values: NDArray[Any]) -> Coded:
    """The codes of an array of any dtype; a TypeError where values cannot be hashed."""
    values = plain(values)
    kind = values.dtype.kind
    if kind == "b":
        return Coded(values.view(np.uint8), np.array([False, True]))
    found = _encode_integers(values, 2**16) if kind in "iu" else None
    if found is None and (kind in "iumMUS" or (kind == "f" and values.itemsize <= 8)):
        found = _encode_buckets(values)
    if found is None and kind in "iu":
        found = _encode_integers(values, 2 * values.size)
    if found is None and kind in {"O", "T", "U", "S"}:
        found = _encode_objects(values)
    if found is None:
        found = Coded(*np.unique(values, return_inverse=True)[::-1])
    return found


def _encode_integers(values: NDArray[Any], most: int) -> Coded | None:
    """By their distance from the lowest, which the lowest bits tell, where there are no more than so many."""
    codes = np.empty(0, dtype=np.uint8)
    if values.size >= MANY and values.dtype == np.int64:
        view = values.view()
        view.flags.writeable = False  # so that there is one loop for all
        codes = np.empty(values.size, dtype=np.uint8)
        lowest, highest = low_bytes(view, codes)
    else:
        lowest, highest = int(values.min()), int(values.max())
    if highest - lowest >= most:
        return None
    dtype = smallest_dtype(highest - lowest + 1)
    if codes.size == 0 or dtype != codes.dtype:
        codes = values.astype(dtype, copy=False)
    if lowest:
        codes = codes - dtype.type(lowest % 2 ** (8 * dtype.itemsize))
    return Coded(codes, np.arange(lowest, highest + 1, dtype=values.dtype))


def _encode_objects(values: NDArray[Any]) -> Coded:
    """Python's own values: what is equal has one code."""
    pandas = hashing_pandas() if values.dtype.kind == "O" else None
    if pandas is not None:
        codes, found = pandas.factorize(values)
        return Coded(codes, found) if codes.min() >= 0 else Coded(codes + 1, as_objects([None, *found]))
    listed = values.tolist()
    code_of = {value: code for code, value in enumerate(set(listed))}
    # With a key more than there are rows: of a single key there is no tuple.
    found = array("q", itemgetter(*listed, listed[0])(code_of))
    return Coded(np.frombuffer(found, dtype=np.int64)[:-1], as_objects(code_of))


def hashing_pandas() -> Any:
    """Pandas, if it is imported and tells all texts apart; before version 3 it stops at a zero byte."""
    pandas = sys.modules.get("pandas")
    return pandas if pandas is not None and int(pandas.__version__.partition(".")[0]) >= 3 else None


def _encode_buckets(values: NDArray[Any]) -> Coded | None:
    """By a hash of their bits; None where there are too many values for each to have a bucket of its own."""
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    count = _BUCKETS[values.size > _ROWS]
    tries = (_Buckets(native.dtype, count, number).encode(native) for number in range(_TRIES))
    return next((found for found in tries if found is not None), None)


class _Buckets:
    """A table that keeps one value at each place, which is that of its hash."""

    def __init__(self, dtype: np.dtype[Any], count: int, number: int) -> None:
        self._dtype, self._shift = dtype, np.uint64(65 - count.bit_length())
        self._word = np.dtype(f"u{math.gcd(dtype.itemsize, 8)}")
        n_words = dtype.itemsize // self._word.itemsize
        powers = range(1 + number * n_words, 1 + (number + 1) * n_words)
        self._factors = [np.uint64(pow(_FACTOR, power, 2**64)) for power in powers]
        self._kept = np.zeros((count, n_words), dtype=self._word)
        self._used = np.zeros(count, dtype=bool)

    def encode(self, values: NDArray[Any]) -> Coded | None:
        """The codes of values in their order, unless two of them fall into one bucket."""
        buckets = np.empty(values.size, dtype=np.uint16)
        for rows in row_slices(values.size):
            part = values[rows]
            if self._dtype.kind == "f":
                part = part + self._dtype.type(0)  # in which -0.0 has become 0.0
            words = np.ascontiguousarray(part).view(self._word).reshape(part.size, -1)
            found = buckets[rows] = self._buckets_of(words)
            new = ~self._used[found]
            if new.any():
                self._kept[found[new]] = words[new]
                self._used[found[new]] = True
            if not np.array_equal(self._kept[found], words):
                return None
        used = np.flatnonzero(self._used)
        kept = self._kept[used].view(self._dtype)[:, 0]
        order = np.argsort(kept)
        code_of = np.zeros(self._used.size, dtype=smallest_dtype(used.size))
        code_of[used[order]] = np.arange(used.size)
        return Coded(recode(buckets, code_of), kept[order])

    def _buckets_of(self, words: NDArray[Any]) -> NDArray[np.uint16]:
        """The upper bits of a sum of multiples of the words."""
        hashed = words[:, 0] * self._factors[0]
        for place in range(1, words.shape[1]):
            hashed += words[:, place] * self._factors[place]
        hashed >>= self._shift
        return hashed.astype(np.uint16)


def plain(values: NDArray[Any]) -> NDArray[Any]:
    """Values as they are, and dates and times such that Python has them too."""
    kind = values.dtype.kind
    return values.astype(f"{kind}8[us]", copy=False) if kind in "mM" else values


def as_objects(values: Iterable[Any]) -> NDArray[Any]:
    """Values one by one, tuples too, of which numpy would make a table."""
    return np.fromiter(values, dtype=object)


def row_slices(rows: int, size: int = _ROWS) -> Iterator[slice]:
    """The rows, so many at a time."""
    return (slice(start, start + size) for start in range(0, rows, size))


def example_rows(codes: NDArray[Any], count: int) -> NDArray[np.intp]:
    """For each of so many codes a row that has it, or -1."""
    found = np.full(count, -1, dtype=np.intp)
    first = codes[: 2**8]  # which mostly have all codes
    found[first] = np.arange(first.size)
    start, size = first.size, max(count, 2**12)
    while start < codes.size and found.min() < 0:
        part = codes[start : start + size]
        new = np.flatnonzero(recode(part, (found < 0).view(np.uint8)))
        found[part[new]] = start + new
        start, size = start + size, max(count, min(2**4 * size, 2**20))
    return found


def recode(codes: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """The new codes of rows, given that of each old one."""
    if new[-1] == new.size - 1 and np.array_equal(new, np.arange(new.size)):
        return codes.astype(new.dtype, copy=False)
    found = np.empty(codes.size, dtype=new.dtype)
    pairs = 0
    if codes.dtype == new.dtype == np.uint8 and codes.size >= _BUCKETS[1] and codes.flags.c_contiguous:
        # Two bytes at a time: a table of all pairs.
        pairs = codes.size // 2 * 2
        both = np.zeros(2**8, dtype=np.uint16)
        both[: new.size] = new
        _look_up((both[:, None] << 8 | both).ravel(), codes[:pairs].view("u2"), found[:pairs].view("u2"))
    _look_up(new, codes[pairs:], found[pairs:])
    return found


def _look_up(table: NDArray[Any], codes: NDArray[Any], found: NDArray[Any]) -> None:
    """Write what a table has of each code, some rows at a time: numpy makes large numbers of codes."""
    for rows in row_slices(codes.size):
        np.take(table, codes[rows], out=found[rows], mode="clip")


def missing_among(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are missing."""
    if values.dtype.kind == "O":
        return np.array([is_missing(value) for value in values.tolist()], dtype=bool)
    return np.asarray(values != values)


def is_missing(value: Any) -> bool:
    """None, NaN and pandas' NA, of which only NaN can be compared."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True


def sort_groups(groups: Iterable[Group]) -> tuple[Group, ...]:
    """In the values' own order, and by their text where they have none."""
    found = list(groups)
    try:
        return tuple(sorted(found))  # type: ignore[type-var]
    except TypeError:
        return tuple(sorted(found, key=str))


# Data frames, their columns and Arrow arrays, of any library, through narwhals.


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
