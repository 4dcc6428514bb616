"""Tables of numbers and texts as one matrix of numbers."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from localparity._types import FloatArray
from localparity._validation import is_missing, sort_groups
from localparity.models._folder import plain


class Column(NamedTuple):
    """A column's values, as float64 or as objects, and its categories, if it declares them."""

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
    >>> [column.name for column in table_columns(TableEncoder(), [[1.0, 2.0]], reset=True)]
    ['x0', 'x1']
    """
    if hasattr(X, "columns") and hasattr(X, "__getitem__") and len(X):
        validate_data(owner, X, skip_check_array=True, reset=reset)
        return [_column(X[name], str(name)) for name in X.columns]
    matrix = validate_data(owner, X, reset=reset, dtype=np.float64)
    return [Column(f"x{place}", values, None) for place, values in enumerate(matrix.T)]


def _column(column: Any, name: str) -> Column:
    values = np.asarray(column)
    if values.dtype.kind in "mM":
        raise ValueError(f"column {name!r} of X must be numbers or texts, got dates")
    # Numbers in a column of objects, as of pandas' Int64, are numbers nonetheless.
    if values.dtype.kind in "biuf" or all(isinstance(value, numbers.Real) for value in values):
        values = values.astype(np.float64)
        missing = ~np.isfinite(values)
    else:
        values = values.astype(object)
        missing = np.fromiter((is_missing(value) for value in values), dtype=bool, count=len(values))
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(
            f"column {name!r} of X has NaN, infinity or a missing value: {values[row]} at row {row}"
        )
    return Column(name, values, getattr(getattr(column, "cat", None), "categories", None))


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode text columns as one column for each value, and standardise numbers.

    A data frame may have both; an array holds numbers. A categorical column of a pandas data frame has all of
    its categories, whether or not the rows at `fit` have them. A value that `fit` did not see is an error at
    `transform`, and so is a missing one.

    Attributes
    ----------
    names_ : list of str
        The columns' names.
    categories_ : list
        For each column its values, or None where it holds numbers.
    means_, scales_ : ndarray
        For each column its mean and deviation at `fit`; 0 and 1 where it holds texts.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(200, random_state=0)
    >>> encoder = TableEncoder().fit(census.data)
    >>> list(encoder.get_feature_names_out()[2:4])
    ['hours_per_week', 'occupation=care']
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TableEncoder:
        """Learn the columns' values, means and deviations."""
        columns = table_columns(self, X, reset=True)
        rows = len(columns[0].values)
        weights = np.ones(rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return self.learn(columns, weights)

    def transform(self, X: Any) -> FloatArray:
        """Return the matrix of the table's rows."""
        check_is_fitted(self)
        return self.encode(table_columns(self, X, reset=False))

    def learn(self, columns: Sequence[Column], weights: FloatArray) -> TableEncoder:
        """`fit`, from checked columns."""
        self.names_ = [column.name for column in columns]
        self.categories_: list[list[Any] | None] = []
        self.means_, self.scales_ = np.zeros(len(columns)), np.ones(len(columns))
        for place, (_, values, categories) in enumerate(columns):
            if columns[place].is_text:
                self.categories_.append(list(sort_groups(set(values) if categories is None else categories)))
            else:
                self.categories_.append(None)
                self.means_[place] = mean = np.average(values, weights=weights)
                deviation = float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))
                self.scales_[place] = deviation if deviation > 1e-12 * max(1.0, abs(mean)) else 1.0
        return self

    def encode(self, columns: Sequence[Column]) -> FloatArray:
        """`transform`, from checked columns."""
        blocks: list[FloatArray] = []
        for place, (column, known) in enumerate(zip(columns, self.categories_, strict=True)):
            if known is not None:
                blocks.append(_one_hot(column, known))
            elif column.is_text:
                raise ValueError(
                    f"column {column.name!r} must be numbers, as at fit, got {column.values[0]!r} at row 0"
                )
            else:
                blocks.append(((column.values - self.means_[place]) / self.scales_[place])[:, None])
        return np.hstack(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the matrix's columns, name=value for each value of a text."""
        check_is_fitted(self)
        names: list[str] = []
        for name, known in zip(self.names_, self.categories_, strict=True):
            names.extend([name] if known is None else [f"{name}={value}" for value in known])
        return np.asarray(names, dtype=object)

    @property
    def n_features_out(self) -> int:
        """The number of columns of the matrix."""
        return sum(1 if known is None else len(known) for known in self.categories_)

    def to_dict(self) -> dict[str, Any]:
        """Return everything learned, as plain lists."""
        return {
            "names": self.names_,
            "categories": [
                None if known is None else plain(known, f"column {name!r}")
                for name, known in zip(self.names_, self.categories_, strict=True)
            ],
            "means": self.means_.tolist(),
            "scales": self.scales_.tolist(),
        }

    @classmethod
    def from_dict(cls, learned: dict[str, Any]) -> TableEncoder:
        """Return the encoder that `to_dict` described."""
        encoder = cls()
        encoder.names_ = list(map(str, learned["names"]))
        encoder.categories_ = [None if known is None else list(known) for known in learned["categories"]]
        for value in (value for known in encoder.categories_ for value in known or ()):
            if not isinstance(value, str | int | float):
                raise ValueError(f"categories must be texts or numbers, got {value!r}")
        encoder.means_ = np.asarray(learned["means"], dtype=np.float64)
        encoder.scales_ = np.asarray(learned["scales"], dtype=np.float64)
        width = len(encoder.names_)
        if not encoder.means_.shape == encoder.scales_.shape == (len(encoder.categories_),) == (width,):
            raise ValueError(f"the encoder has {width} names but not as many means, scales and categories")
        if not (np.isfinite(encoder.means_).all() and (encoder.scales_ > 0.0).all()):
            raise ValueError("the encoder's means must be finite and its scales > 0")
        return encoder


def _one_hot(column: Column, known: Sequence[Any]) -> FloatArray:
    place_of = {value: code for code, value in enumerate(known)}
    values = column.values
    codes = np.fromiter((place_of.get(value, -1) for value in values), dtype=np.int64, count=len(values))
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise ValueError(
            f"column {column.name!r} has {values[row]!r} at row {row}, which fit did not see; it saw "
            f"{', '.join(map(repr, known[:12]))}"
        )
    encoded = np.zeros((len(codes), len(known)))
    encoded[np.arange(len(codes)), codes] = 1.0
    return encoded
