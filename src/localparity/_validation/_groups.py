"""The group of each row as a code, from one column or from several, and the rows that have none."""

from __future__ import annotations

import math
import sys
import warnings
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._compiled import MANY
from localparity._types import ArrayLike, BoolArray, Group, Groups
from localparity._validation._errors import (
    Argument,
    FileColumn,
    InputError,
    InputWarning,
    MissingValueError,
    at_row,
    setting,
)
from localparity._validation._rows import as_column, as_frame, as_vector, check_rows, low_bytes

if TYPE_CHECKING:
    from narwhals import Series

# Rows without a group: which values stand for none, and the group that such rows are of.


class NoGroup(Enum):
    """The group of rows that have none: behind all others, and equal to no value of a column."""

    NO_GROUP = "(unknown)"

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return self.value


NO_GROUP = NoGroup.NO_GROUP


class Blanks(NamedTuple):
    """Texts that stand for no group, as None and NaN do; `kept` rows without one have the group `NO_GROUP`.

    A text that no row has is worth a warning. Of several columns, a row that lacks one value has the group
    `NO_GROUP`, or, `by_column`, of a group that has `NO_GROUP` for that part.
    """

    texts: tuple[str, ...] = ()
    kept: bool = False
    by_column: bool = False

    def among(self, values: NDArray[Any]) -> BoolArray:
        """Which values stand for no group."""
        found = missing_among(values)
        if self.texts:
            found |= np.array([self._names(value) for value in values.tolist()], dtype=bool)
        return found

    def unmatched(self, columns: Iterable[NDArray[Any]]) -> tuple[str, ...]:
        """The texts that are no value of some columns."""
        if not self.texts:
            return ()
        values = [value for column in columns for value in column.tolist()]
        return tuple(text for text in self.texts if not any(map(Blanks((text,))._names, values)))

    def _names(self, value: Any) -> bool:
        """Whether a value reads as one of the texts; next to NaN, 3 is 3.0."""
        return str(value) in self.texts or (isinstance(value, float) and f"{value:g}" in self.texts)


NO_BLANKS = Blanks()


def warn_of_unmatched(texts: Iterable[str]) -> None:
    """Warn of each text that was to stand for no group and is in no row."""
    for text in texts:
        warnings.warn(
            InputWarning(f"{setting('missing_values')} has {text!r}, which is in no row"), stacklevel=2
        )


def is_missing_group(group: Group) -> bool:
    """Whether a group, or a part of one, is missing or blank."""
    parts = group if isinstance(group, tuple) else (group,)
    return any(part is NO_GROUP or (isinstance(part, str) and not part.strip()) for part in parts)


def lacks_group(group: Group) -> bool:
    """Whether a group, or a part of one, is `NO_GROUP`."""
    return group is NO_GROUP or (isinstance(group, tuple) and NO_GROUP in group)


def as_texts(texts: str | Sequence[Any], name: Argument) -> tuple[str, ...]:
    """Values by their texts, from one or several."""
    if isinstance(texts, str):
        return (texts,)
    try:
        return tuple(map(str, texts))
    except TypeError:
        raise InputError(f"must be a text or several, got {texts!r}", name) from None


class Grouping(NamedTuple):
    """The group of each row as a code, in the smallest dtype that holds all, and the groups by code."""

    codes: NDArray[np.unsignedinteger[Any]]
    names: tuple[Group, ...]


MOST_GROUPS = 10_000
"""More groups than this are a sign that the column names people, not groups."""


def as_groups(
    sensitive_features: Groups,
    rows: int,
    name: Argument = "sensitive_features",
    *,
    at_least: int = 2,
    at_most: int = MOST_GROUPS,
    blanks: Blanks = NO_BLANKS,
) -> Grouping:
    """The group of each row, from one column or from the intersection of several."""
    columns = _columns(sensitive_features, name).items()
    coded = {key: _coded(column, rows, key) for key, column in columns}
    warn_of_unmatched(blanks.unmatched(column.values for column in coded.values()))
    groupings = [_as_grouping(column, key, blanks) for key, column in coded.items()]
    grouping = groupings[0] if len(groupings) == 1 else _intersect(groupings, by_column=blanks.by_column)
    check_group_count(len(grouping.names), name, at_most)
    if len(grouping.names) < at_least:
        if is_missing_group(grouping.names[0]):
            raise MissingValueError(f"has no value in any of its {rows:,} rows", name)
        raise InputError(f"must have at least two groups, got {grouping.names[0]!r} only", name)
    return grouping


def as_positive(
    y_true: ArrayLike, rows: int, name: Argument = "y_true", *, pos_label: Any
) -> NDArray[np.uint8]:
    """Labels that are 1 where `y_true` equals `pos_label`, and 0 where it has the other label."""
    values = as_vector(y_true, name, dtype=object if isinstance(y_true, list | tuple) else None)
    codes, labels = as_groups(values, rows, name, at_least=1, at_most=rows)
    listed = ", ".join(map(repr, labels[:3]))
    if len(labels) > 2:
        many = listed + ", ..." * (len(labels) > 3)
        raise InputError(f"must have two labels with {setting(pos_label=pos_label)}, got {many}", name)
    if pos_label in labels:
        return np.asarray(codes == labels.index(pos_label)).view(np.uint8)
    if len(labels) == 2:
        raise InputError(f"must be one of {listed}, got {pos_label!r}", "pos_label")
    return np.zeros(rows, dtype=np.uint8)


def check_group_count(groups: int, name: Argument, at_most: int = MOST_GROUPS) -> None:
    """Refuse so many groups that the column must be an identifier."""
    if groups > at_most:
        raise InputError(f"has more than {at_most:,} groups; is it an identifier?", name)


def _columns(sensitive_features: Any, name: Argument) -> dict[Argument, Any]:
    """The columns, by what messages call them."""
    columns = group_columns(sensitive_features, name)
    if columns.keys() == {None}:
        return {name: columns[None]}
    if isinstance(name, FileColumn):
        return {FileColumn(key, name.first_row): column for key, column in columns.items()}
    return {f"{name}[{key!r}]": column for key, column in columns.items()}


def group_columns(sensitive_features: Any, name: Argument = "sensitive_features") -> dict[Any, Any]:
    """The columns by their names; a single one without a name is under None."""
    if sensitive_features is None:
        raise InputError("must be the group of each row, got None", name)
    try:
        frame: Any = as_frame(sensitive_features)
    except ValueError as error:  # as where two columns have the same name
        raise InputError(f"cannot be read: {' '.join(str(error).split())}", name) from error
    if isinstance(sensitive_features, Mapping):
        columns = dict(sensitive_features)
    elif hasattr(frame, "columns"):
        columns = {key: frame.get_column(key) for key in frame.columns}
    elif frame is None and getattr(sensitive_features, "ndim", 1) == 2:
        columns = dict(enumerate(np.asarray(sensitive_features).T))
    else:
        return {None: sensitive_features if frame is None else frame}
    if not columns:
        raise InputError("has no columns", name)
    return columns


def _coded(column: Any, rows: int, name: Argument) -> Coded:
    """The codes of a column, which must have so many rows."""
    frame_column = as_column(column, name)
    if frame_column is not None:
        check_rows(name, len(frame_column), rows)
        coded = encode_column(frame_column)
        if coded is not None:
            return coded
        column = column_values(frame_column)
    # Lists as objects: numpy would make one text of a missing value, and of 1 and "1".
    values = as_vector(column, name, dtype=object if isinstance(column, list | tuple) else None)
    check_rows(name, values.size, rows)
    try:
        return encode(values)
    except TypeError as error:
        raise InputError(f"must be hashable: {error}", name) from error


def _as_grouping(coded: Coded, name: Argument, blanks: Blanks) -> Grouping:
    """The groups that occur, sorted where they can be, and the code of each row's among them."""
    codes, values = coded
    occurs = example_rows(codes, values.size) >= 0
    missing = blanks.among(values) & occurs
    if missing.any() and not blanks.kept:
        row = int(np.argmax(missing[codes]))
        raise MissingValueError(f"has no value {at_row(name, row)}", name, row=row)
    listed = zip(values[occurs].tolist(), missing[occurs].tolist(), strict=True)
    groups = [NO_GROUP if lacks else value for value, lacks in listed]
    names = sort_groups(dict.fromkeys(groups))
    code_of = {group: code for code, group in enumerate(names)}
    new = np.zeros(values.size, dtype=smallest_dtype(len(names)))
    new[occurs] = [code_of[group] for group in groups]
    return Grouping(recode(codes, new), names)


def _intersect(groupings: Sequence[Grouping], *, by_column: bool) -> Grouping:
    """The combinations of the columns' groups that occur."""
    first, *others = groupings
    codes, combinations = first.codes, [(group,) for group in first.names]
    for grouping in others:
        width = len(grouping.names)
        dtype = smallest_dtype(len(combinations) * width + 1)
        both, numbers = encode(codes.astype(dtype) * dtype.type(width) + grouping.codes)
        occurs = example_rows(both, numbers.size) >= 0
        pairs = [divmod(number, width) for number in numbers[occurs].tolist()]
        combinations = [(*combinations[one], grouping.names[other]) for one, other in pairs]
        codes = recode(both, (np.cumsum(occurs) - 1).astype(smallest_dtype(len(pairs))))
    known = [group for group in combinations if NO_GROUP not in group]
    if by_column or len(known) == len(combinations):
        return Grouping(codes, tuple(combinations))
    # A row that has no value in one of the columns has no group.
    code_of = {group: code for code, group in enumerate(known)}
    new = [code_of.get(group, len(known)) for group in combinations]
    return Grouping(recode(codes, np.array(new, dtype=smallest_dtype(len(known) + 1))), (*known, NO_GROUP))


# Values as codes, in one pass and without a sort where they have few distinct values.


_ROWS = 2**14
"""Rows at a time, few enough for the processor's cache."""

_BUCKETS = (2**12, 2**16)
"""How many buckets a hash has, for few rows and for many."""

_TRIES = 4
_FACTOR = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio: its multiples differ in their upper bits."""


class Coded(NamedTuple):
    """The code of each row is an index into `values`, which may repeat, be missing or occur in no row."""

    codes: NDArray[Any]
    values: NDArray[Any]


def smallest_dtype(count: int) -> np.dtype[Any]:
    """The smallest unsigned dtype that holds so many codes."""
    return np.min_scalar_type(max(count - 1, 0))


def encode(values: NDArray[Any]) -> Coded:
    """The codes of an array of any dtype; a TypeError where a value cannot be hashed."""
    values = in_microseconds(values)
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
    """Code integers by their distance from the lowest; None where that exceeds `most`."""
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
    """Code Python's own values: equal ones have the same code."""
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
    """Pandas, if it is imported and tells all texts apart; before version 3, hashing stops at a zero byte."""
    pandas = sys.modules.get("pandas")
    return pandas if pandas is not None and int(pandas.__version__.partition(".")[0]) >= 3 else None


def _encode_buckets(values: NDArray[Any]) -> Coded | None:
    """Code values by a hash of their bits; None where two of them fall into one bucket."""
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    count = _BUCKETS[values.size > _ROWS]
    tries = (_Buckets(native.dtype, count, number).encode(native) for number in range(_TRIES))
    return next((found for found in tries if found is not None), None)


class _Buckets:
    """A hash table with one value in each bucket."""

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


def in_microseconds(values: NDArray[Any]) -> NDArray[Any]:
    """Values as they are, and times in microseconds, as Python has them."""
    kind = values.dtype.kind
    return values.astype(f"{kind}8[us]", copy=False) if kind in "mM" else values


def as_objects(values: Iterable[Any]) -> NDArray[Any]:
    """An array of objects; of tuples, numpy alone would make a table."""
    return np.fromiter(values, dtype=object)


def row_slices(rows: int) -> Iterator[slice]:
    """Slices of `_ROWS` rows at a time."""
    return (slice(start, start + _ROWS) for start in range(0, rows, _ROWS))


def example_rows(codes: NDArray[Any], count: int) -> NDArray[np.intp]:
    """For each code, a row that has it, or -1."""
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
    """Replace the codes of rows, given the new code of each old one."""
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
    """Look codes up in a table, some rows at a time: numpy makes 64-bit numbers of them."""
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
    """Sort groups by their values, or by their text where values have no order."""
    found = list(groups)
    try:
        return tuple(sorted(found))  # type: ignore[type-var]
    except TypeError:
        return tuple(sorted(found, key=str))


def column_values(column: Series[Any]) -> NDArray[Any]:
    """The values of a column as an array, NaN for missing numbers."""
    return column.to_numpy() if column.dtype.is_numeric() else np.asarray(column.to_native())


def encode_column(column: Series[Any]) -> Coded | None:
    """The codes of categories or texts that the column's library has; None for other columns."""
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
    """The values of a column, with dates as Python has them."""
    if column.implementation.is_pandas_like():
        return list(in_microseconds(np.asarray(column.to_native())).tolist())
    return column.to_list()


def _library_codes(column: Series[Any]) -> NDArray[Any] | None:
    """A number for each row, equal where values are; None where the library has none."""
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
