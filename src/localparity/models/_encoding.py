"""Tables of numbers and texts as one matrix of numbers."""

from __future__ import annotations

import inspect
import numbers
import warnings
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from localparity._text import brief
from localparity._types import FloatArray
from localparity._validation import (
    Coded,
    InputError,
    as_count,
    as_frame,
    column_values,
    encode,
    encode_column,
    example_rows,
    is_missing,
    missing_among,
    sort_groups,
)
from localparity.models._folder import as_json

if TYPE_CHECKING:
    from narwhals import Series


class FeatureColumn(NamedTuple):
    """A column's values, float64 with NaN where missing or texts as codes, and the categories it declares."""

    name: str
    values: FloatArray | Coded
    categories: Sequence[Any] | None

    @property
    def is_text(self) -> bool:
        """Whether it holds anything but numbers."""
        return isinstance(self.values, Coded)

    @property
    def coded(self) -> Coded:
        """Its values as codes, be they texts or numbers."""
        return self.values if isinstance(self.values, Coded) else encode(self.values)


def table_columns(owner: Any, X: Any, *, reset: bool) -> list[FeatureColumn]:
    """Return the columns of a data frame or an array, checked as scikit-learn does on behalf of `owner`.

    With `reset`, at `fit`, the owner learns the number and the names of the features; later it compares.
    """
    frame: Any = as_frame(X)
    if hasattr(frame, "columns") and len(frame) and frame.columns:
        validate_data(owner, X, skip_check_array=True, reset=reset)
        return [_column(frame.get_column(name), str(name)) for name in frame.columns]
    matrix = validate_data(owner, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
    return [FeatureColumn(f"x{index}", values, None) for index, values in enumerate(matrix.T)]


def _column(column: Series[Any], name: str) -> FeatureColumn:
    """Return a column of a data frame; one that declares categories is a text, whatever they are."""
    coded = encode_column(column)
    if coded is not None:
        declared = getattr(getattr(column.to_native(), "cat", None), "categories", None)
        return FeatureColumn(name, coded, declared)
    values = column_values(column)
    if values.dtype.kind in "mM":
        raise ValueError(f"column {name!r} of X must be numbers or texts, got dates")
    if values.dtype.kind not in "biuf":
        coded = encode(values)
        if not all(isinstance(value, numbers.Real | Decimal) or is_missing(value) for value in coded.values):
            return FeatureColumn(name, coded, None)
        values = as_floats(coded)
    floats = values.astype(np.float64, copy=False)
    if np.isinf(floats).any():
        row = int(np.argmax(np.isinf(floats)))
        raise ValueError(f"column {name!r} of X must be finite or missing, got {floats[row]} at row {row}")
    return FeatureColumn(name, floats, None)


def as_floats(coded: Coded) -> FloatArray:
    """Return numbers, NaN where one is missing or is none."""
    floats = [
        float(value) if isinstance(value, numbers.Real | Decimal) and not is_missing(value) else np.nan
        for value in coded.values
    ]
    return np.asarray(np.array(floats)[coded.codes])


def with_categories(X: Any) -> Any:
    """Return a pandas data frame whose texts are categories, so that every part of it knows all of them."""
    if not hasattr(X, "select_dtypes"):
        return X
    texts = X.select_dtypes(exclude=["number", "bool", "category"]).columns
    return X.astype(dict.fromkeys(texts, "category"))


_FEWEST_NAMED = 10
"""A new category of fewer rows is counted in a warning but not named."""


class UnseenValuesWarning(UserWarning):
    """Rows have values that `fit` did not see: new categories, or missing values where it saw none.

    Examples
    --------
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", UnseenValuesWarning)  # a prediction for such rows raises
    """


class CategoryEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode text columns as the codes of their categories; numbers stay as they are.

    A missing text is a separate category, the last. A category that `fit` did not see is NaN, as a missing
    number is, with an `UnseenValuesWarning`. A categorical column of a pandas data frame has all of its
    categories, whether or not the rows at `fit` have them. `categories_` has None for a column of numbers.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the columns' values."""
        columns = table_columns(self, X, reset=True)
        weights = np.ones(_num_samples(X)) if sample_weight is None else sample_weight
        return self.learn(columns, np.asarray(weights, dtype=np.float64))

    def transform(self, X: Any) -> FloatArray:
        """Return the matrix of the table's rows."""
        check_is_fitted(self)
        return self.encode(table_columns(self, X, reset=False))

    def learn(self, columns: Sequence[FeatureColumn], weights: FloatArray) -> Self:
        """`fit`, from checked columns."""
        self.names_ = [column.name for column in columns]
        self.categories_: list[list[Any] | None] = [_categories_of(column) for column in columns]
        self.missing_ = np.array(
            [
                bool(np.isnan(column.values).any()) if known is None else None in known
                for column, known in zip(columns, self.categories_, strict=True)
            ]
        )
        return self

    def encode(self, columns: Sequence[FeatureColumn]) -> FloatArray:
        """`transform`, from checked columns."""
        return np.column_stack(self._codes(columns))

    @property
    def text_places(self) -> list[int]:
        """The places of the text columns."""
        return [index for index, known in enumerate(self.categories_) if known is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return everything learned, as plain lists."""
        return {
            "names": self.names_,
            "categories": [
                None if known is None else as_json(known, f"column {name!r}")
                for name, known in zip(self.names_, self.categories_, strict=True)
            ],
            "missing": self.missing_.tolist(),
        }

    @classmethod
    def from_dict(cls, learned: dict[str, Any]) -> Self:
        """Return the encoder that `to_dict` described."""
        encoder = cls()
        encoder._take(learned)
        return encoder

    def _take(self, learned: dict[str, Any]) -> None:
        self.names_ = list(map(str, learned["names"]))
        self.categories_ = [None if known is None else list(known) for known in learned["categories"]]
        for value in (value for known in self.categories_ for value in known or ()):
            if not isinstance(value, str | int | float | None):
                raise ValueError(f"categories must be texts or numbers, got {value!r}")
        self.missing_ = np.array(learned["missing"], dtype=bool)
        width = len(self.names_)
        if not self.missing_.shape == (len(self.categories_),) == (width,):
            raise ValueError(f"the encoder has {width} names, but not as many categories and missing")

    def _codes(self, columns: Sequence[FeatureColumn]) -> list[FloatArray]:
        """Return each column's numbers or its categories' codes, and warn of what `fit` did not see."""
        encoded, news = list[FloatArray](), list[str]()
        for column, known, had_missing in zip(columns, self.categories_, self.missing_, strict=True):
            codes = _numbers_of(column) if known is None else _codes_of(column, known)
            encoded.append(codes)
            unseen = np.isnan(codes)
            if unseen.any() and not (known is None and had_missing):
                news.extend(_describe_unseen(column, unseen))
        if news:
            message = f"values that fit did not see count as unknown: {'; '.join(news)}"
            warnings.warn(message, UnseenValuesWarning, stacklevel=level_of_caller())
        return encoded


class TableEncoder(CategoryEncoder):
    """Encode text columns as one column for each category, and standardise numbers.

    A missing number is the mean, and has a further column that says so where `fit` saw missing numbers. A
    category that `fit` did not see is 0 in all columns.
    """

    def learn(self, columns: Sequence[FeatureColumn], weights: FloatArray) -> Self:
        """`fit`, from checked columns."""
        super().learn(columns, weights)
        self.means_, self.scales_ = np.zeros(len(columns)), np.ones(len(columns))
        for place, (column, known) in enumerate(zip(columns, self.categories_, strict=True)):
            if known is not None or np.isnan(column.values).all():
                continue
            present = ~np.isnan(column.values)
            values, counted = column.values[present], weights[present]
            self.means_[place] = mean = np.average(values, weights=counted)
            deviation = float(np.sqrt(np.average((values - mean) ** 2, weights=counted)))
            self.scales_[place] = deviation if deviation > 1e-12 * max(1.0, abs(mean)) else 1.0
        return self

    def encode(self, columns: Sequence[FeatureColumn]) -> FloatArray:
        """`transform`, from checked columns."""
        blocks: list[FloatArray] = []
        for place, codes in enumerate(self._codes(columns)):
            known, is_unseen = self.categories_[place], np.isnan(codes)
            if known is not None:
                rows = np.flatnonzero(~is_unseen)
                block = np.zeros((len(codes), len(known)))
                block[rows, codes[rows].astype(np.int64)] = 1.0
                blocks.append(block)
                continue
            scaled = (codes - self.means_[place]) / self.scales_[place]
            blocks.append(np.where(is_unseen, 0.0, scaled)[:, None])
            if self.missing_[place]:
                blocks.append(is_unseen.astype(np.float64)[:, None])
        return np.hstack(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the matrix's columns, name=value for each value of a text."""
        check_is_fitted(self)
        names: list[str] = []
        for name, known, had_missing in zip(self.names_, self.categories_, self.missing_, strict=True):
            if known is None:
                names.append(name)
            else:
                names.extend(f"{name}={value}" for value in known if value is not None)
            names.extend([f"{name} is missing"] if had_missing else [])
        return np.asarray(names, dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Return everything learned, as plain lists."""
        return {**super().to_dict(), "means": self.means_.tolist(), "scales": self.scales_.tolist()}

    def _take(self, learned: dict[str, Any]) -> None:
        super()._take(learned)
        self.means_ = np.asarray(learned["means"], dtype=np.float64)
        self.scales_ = np.asarray(learned["scales"], dtype=np.float64)
        width = len(self.names_)
        if not self.means_.shape == self.scales_.shape == (width,):
            raise ValueError(f"the encoder has {width} names, but not as many means and scales")
        if not (np.isfinite(self.means_).all() and (self.scales_ > 0.0).all()):
            raise ValueError("the encoder's means must be finite and its scales > 0")


def _categories_of(column: FeatureColumn) -> list[Any] | None:
    """Return a text column's categories, None the last if values are missing; None for numbers."""
    if not column.is_text:
        return None
    codes, values = column.coded
    occurs, missing = example_rows(codes, values.size) >= 0, missing_among(values)
    present = dict.fromkeys(values[occurs & ~missing].tolist())
    known = list(sort_groups(present) if column.categories is None else column.categories)
    return [*known, None] if (occurs & missing).any() else known


def _numbers_of(column: FeatureColumn) -> FloatArray:
    """Return the values of a column that held numbers at `fit`."""
    if isinstance(column.values, np.ndarray):
        return column.values
    codes, values = column.values
    wrong = np.array([not isinstance(value, numbers.Real) for value in values]) & ~missing_among(values)
    rows = np.flatnonzero(wrong[codes])
    if rows.size:
        value = values[codes[rows[0]]]
        raise InputError(
            f"must be numbers, as at fit, got {brief(value)} at row {rows[0]}", column=column.name
        )
    return as_floats(column.values)


def _codes_of(column: FeatureColumn, known: Sequence[Any]) -> FloatArray:
    """Return the place of each value among the known categories, NaN where it is none of them."""
    codes, values = column.coded
    missing = missing_among(values)
    if not column.is_text and not any(isinstance(value, numbers.Real) for value in known):
        rows = np.flatnonzero(~missing[codes])
        if rows.size:
            value = values[codes[rows[0]]]
            raise InputError(f"must be texts, as at fit, got {value} at row {rows[0]}", column=column.name)
    place_of = {value: float(place) for place, value in enumerate(known)}
    keys = (None if gone else value for value, gone in zip(values.tolist(), missing, strict=True))
    return np.asarray(np.array([place_of.get(key, np.nan) for key in keys])[codes])


def _describe_unseen(column: FeatureColumn, unseen: NDArray[Any]) -> list[str]:
    """Return, in words, how many of the unseen values of a column are in new categories or missing."""
    codes, values = column.coded
    counts, missing = np.bincount(codes[unseen], minlength=values.size), missing_among(values)
    described, new = list[str](), np.where(missing, 0, counts)
    if new.any():
        most, n_new = int(np.argmax(new)), int(np.count_nonzero(new))
        named = f", such as {values.tolist()[most]!r}" if new[most] >= _FEWEST_NAMED else ""
        kinds = "category" if n_new == 1 else "categories"
        described.append(f"{new.sum():,} in {n_new:,} new {kinds} of column {column.name!r}{named}")
    if counts[missing].any():
        described.append(f"{counts[missing].sum():,} missing in column {column.name!r}")
    return described


def level_of_caller() -> int:
    """Return the `stacklevel` of the first caller outside the package, whom a warning is for."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals["__name__"].startswith("localparity."):
        level, frame = level + 1, frame.f_back
    return level


class TableFeatures:
    """Reads data frames and arrays for an estimator of scikit-learn, and stores what it learned of them."""

    _encoder_type: ClassVar[type[CategoryEncoder]] = CategoryEncoder
    encoder_: CategoryEncoder
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    @property
    def text_features_(self) -> list[str]:
        """The names of the text columns."""
        return [self.encoder_.names_[place] for place in self.encoder_.text_places]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        return tags

    def _learn_features(self, X: Any, weights: FloatArray) -> FloatArray:
        """Learn the columns at `fit`, and return them as the model takes them."""
        columns = table_columns(self, X, reset=True)
        self.encoder_ = self._encoder_type().learn(columns, weights)
        return self.encoder_.encode(columns)

    def _read_features(self, X: Any) -> FloatArray:
        """Return the columns at prediction as the model takes them."""
        if isinstance(X, SharedTable):
            return X.features_for(self)
        return self.encoder_.encode(table_columns(self, X, reset=False))

    def _dump_features(self) -> dict[str, Any]:
        """Return what was learned of the features, as JSON has it."""
        names = getattr(self, "feature_names_in_", None)
        return {
            "n_features": self.n_features_in_,
            "feature_names": None if names is None else list(map(str, names)),
            "encoder": self.encoder_.to_dict(),
        }

    def _restore_features(self, learned: dict[str, Any]) -> None:
        """Take what `_dump_features` returned; anything else raises."""
        self.n_features_in_ = as_count(learned["n_features"], "n_features")
        if learned["feature_names"] is not None:
            self.feature_names_in_ = np.array(list(map(str, learned["feature_names"])), dtype=object)
        self.encoder_ = self._encoder_type.from_dict(learned["encoder"])
        if len(self.encoder_.names_) != self.n_features_in_:
            raise ValueError(
                f"the encoder has {len(self.encoder_.names_)} columns, expected {self.n_features_in_}"
            )


class SharedTable:
    """A table that several models predict for: those that learned the same of the columns read it once."""

    def __init__(self, X: Any) -> None:
        self.table = X
        self._read: list[tuple[dict[str, Any], FloatArray]] = []

    def of(self, estimator: Any) -> Any:
        """Return what an estimator takes: this, or the table where it reads tables in its own way."""
        return self if isinstance(estimator, TableFeatures) else self.table

    def features_for(self, owner: TableFeatures) -> FloatArray:
        """Return the features of a model that reads tables as `TableFeatures` does."""
        learned = owner._dump_features()
        for known, features in self._read:
            if known == learned:
                return features
        self._read.append((learned, owner._read_features(self.table)))
        return self._read[-1][1]
