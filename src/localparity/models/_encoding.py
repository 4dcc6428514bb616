"""Tables of numbers and texts as one matrix of numbers."""

from __future__ import annotations

import inspect
import numbers
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from localparity._text import brief
from localparity._types import FloatArray
from localparity._validation import example_rows, missing_among, sort_groups
from localparity.models._columns import Column, as_floats, table_columns
from localparity.models._folder import plain

_FEWEST_NAMED = 10
"""A new category of fewer rows is counted in a warning but not named."""


class UnseenValuesWarning(UserWarning):
    """Rows have values that `fit` did not see: new categories, or missing values in a column that had none.

    Examples
    --------
    >>> issubclass(UnseenValuesWarning, UserWarning)
    True
    """


class CategoryEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode text columns as the codes of their categories; numbers stay as they are.

    A data frame may have both; an array holds numbers. A missing text is a category of its own, the last. A
    category that `fit` did not see is NaN, as a missing number is; an `UnseenValuesWarning` counts what `fit`
    did not see. A categorical column of a pandas data frame has all of its categories, whether or not the
    rows at `fit` have them.

    Attributes
    ----------
    names_ : list of str
        The columns' names.
    categories_ : list
        For each column its values, None for a missing one, or None where it holds numbers.
    missing_ : ndarray of bool
        For each column whether `fit` saw missing values.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [31.0, None], "job": ["trades", "care"]})
    >>> CategoryEncoder().fit_transform(people)
    array([[31.,  1.],
           [nan,  0.]])
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the columns' values."""
        columns = table_columns(self, X, reset=True)
        weights = (
            np.ones(columns[0].rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        )
        return self.learn(columns, weights)

    def transform(self, X: Any) -> FloatArray:
        """Return the matrix of the table's rows."""
        check_is_fitted(self)
        return self.encode(table_columns(self, X, reset=False))

    def learn(self, columns: Sequence[Column], weights: FloatArray) -> Self:
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

    def encode(self, columns: Sequence[Column]) -> FloatArray:
        """`transform`, from checked columns."""
        return np.column_stack(self._codes(columns))

    @property
    def text_places(self) -> list[int]:
        """The places of the text columns."""
        return [place for place, known in enumerate(self.categories_) if known is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return everything learned, as plain lists."""
        return {
            "names": self.names_,
            "categories": [
                None if known is None else plain(known, f"column {name!r}")
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
        """Take what `to_dict` described."""
        self.names_ = list(map(str, learned["names"]))
        self.categories_ = [None if known is None else list(known) for known in learned["categories"]]
        for value in (value for known in self.categories_ for value in known or ()):
            if not isinstance(value, str | int | float | None):
                raise ValueError(f"categories must be texts or numbers, got {value!r}")
        self.missing_ = np.array(learned["missing"], dtype=bool)
        width = len(self.names_)
        if not self.missing_.shape == (len(self.categories_),) == (width,):
            raise ValueError(f"the encoder has {width} names, but not as many categories and missing")

    def _codes(self, columns: Sequence[Column]) -> list[FloatArray]:
        """Return each column's numbers or its categories' codes, and warn of what `fit` did not see."""
        found, news = list[FloatArray](), list[str]()
        for column, known, had_missing in zip(columns, self.categories_, self.missing_, strict=True):
            codes = _numbers_of(column) if known is None else _codes_of(column, known)
            found.append(codes)
            unseen = np.isnan(codes)
            if unseen.any() and not (known is None and had_missing):
                news.extend(_describe_unseen(column, unseen))
        if news:
            message = f"values that fit did not see count as unknown: {'; '.join(news)}"
            warnings.warn(message, UnseenValuesWarning, stacklevel=_level_of_caller())
        return found


class TableEncoder(CategoryEncoder):
    """Encode text columns as one column for each category, and standardise numbers.

    A missing number is the mean, and has a column of its own that says so where `fit` saw missing numbers. A
    category that `fit` did not see is 0 in all columns. The rest is as in `CategoryEncoder`.

    Attributes
    ----------
    names_, categories_, missing_
        As in `CategoryEncoder`.
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

    def learn(self, columns: Sequence[Column], weights: FloatArray) -> Self:
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

    def encode(self, columns: Sequence[Column]) -> FloatArray:
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

    @property
    def n_features_out(self) -> int:
        """The number of columns of the matrix."""
        return len(self.get_feature_names_out())

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


def _categories_of(column: Column) -> list[Any] | None:
    """Return a text column's categories, None the last if values are missing; None for numbers."""
    if not column.is_text:
        return None
    codes, values = column.coded
    occurs, missing = example_rows(codes, values.size) >= 0, missing_among(values)
    present = dict.fromkeys(values[occurs & ~missing].tolist())
    known = list(sort_groups(present) if column.categories is None else column.categories)
    return [*known, None] if (occurs & missing).any() else known


def _numbers_of(column: Column) -> FloatArray:
    """Return the values of a column that held numbers at `fit`."""
    if isinstance(column.values, np.ndarray):
        return column.values
    codes, values = column.values
    wrong = np.array([not isinstance(value, numbers.Real) for value in values]) & ~missing_among(values)
    rows = np.flatnonzero(wrong[codes])
    if rows.size:
        value = values[codes[rows[0]]]
        raise ValueError(
            f"column {column.name!r} must be numbers, as at fit, got {brief(value)} at row {rows[0]}"
        )
    return as_floats(column.values)


def _codes_of(column: Column, known: Sequence[Any]) -> FloatArray:
    """Return the place of each value among the known categories, NaN where it is none of them."""
    codes, values = column.coded
    missing = missing_among(values)
    if not column.is_text and not any(isinstance(value, numbers.Real) for value in known):
        rows = np.flatnonzero(~missing[codes])
        if rows.size:
            value = values[codes[rows[0]]]
            raise ValueError(f"column {column.name!r} must be texts, as at fit, got {value} at row {rows[0]}")
    place_of = {value: float(place) for place, value in enumerate(known)}
    keys = (None if gone else value for value, gone in zip(values.tolist(), missing, strict=True))
    return np.asarray(np.array([place_of.get(key, np.nan) for key in keys])[codes])


def _describe_unseen(column: Column, unseen: NDArray[Any]) -> list[str]:
    """Return, in words, how many of the unseen values of a column are in new categories or missing."""
    codes, values = column.coded
    counts = np.bincount(codes[unseen], minlength=values.size)
    missing = missing_among(values)
    described, name, n_missing = list[str](), column.name, int(counts[missing].sum())
    new = np.where(missing, 0, counts)
    if new.any():
        most, n_new = int(np.argmax(new)), int(np.count_nonzero(new))
        named = f", such as {values.tolist()[most]!r}" if new[most] >= _FEWEST_NAMED else ""
        kinds = "category" if n_new == 1 else "categories"
        described.append(f"{new.sum():,} in {n_new:,} new {kinds} of column {name!r}{named}")
    if n_missing:
        described.append(f"{n_missing:,} missing in column {name!r}")
    return described


def _level_of_caller() -> int:
    """Return the `stacklevel` of the first caller outside the package, whom a warning is for."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals["__name__"].startswith("localparity."):
        level, frame = level + 1, frame.f_back
    return level
