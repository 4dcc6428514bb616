"""Tables of numbers and texts as one matrix of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from localparity._validation import FloatArray, is_missing, sort_groups


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Text columns become one column a value, not scaled; numbers are standardised.

    A data frame may have both; an array holds numbers. A categorical column of a data frame has all of its
    categories, whether or not the rows at `fit` have them. A value that was not there at `fit` is an error
    at `transform`, and so is a missing one.

    Attributes
    ----------
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
        columns = self._columns(X, reset=True)
        rows = len(columns[0])
        weights = np.ones(rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.categories_: list[list[Any] | None] = []
        self.means_, self.scales_ = np.zeros(len(columns)), np.ones(len(columns))
        for place, values in enumerate(columns):
            if values.dtype.kind == "f":
                self.categories_.append(None)
                self.means_[place] = mean = np.average(values, weights=weights)
                deviation = float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))
                self.scales_[place] = deviation if deviation > 1e-12 * max(1.0, abs(mean)) else 1.0
            else:
                self.categories_.append(self._values_of(X, place, values))
        return self

    def transform(self, X: Any) -> FloatArray:
        """The matrix of the table's rows."""
        check_is_fitted(self)
        blocks: list[FloatArray] = []
        for place, values in enumerate(self._columns(X, reset=False)):
            known = self.categories_[place]
            if known is None:
                if values.dtype.kind != "f":
                    raise ValueError(
                        f"{self._name(place)} has {values[0]!r} at row 0 where numbers are expected, as at fit"
                    )
                blocks.append(((values - self.means_[place]) / self.scales_[place])[:, None])
            else:
                blocks.append(self._one_hot(place, values, known))
        return np.hstack(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The matrix's columns: a number's name, or name=value for each value of a text."""
        check_is_fitted(self)
        names: list[str] = []
        for place, known in enumerate(self.categories_):
            name = self._plain_name(place)
            names.extend([name] if known is None else [f"{name}={value}" for value in known])
        return np.asarray(names, dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Everything learned, as plain lists."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return {
            "names": None if names is None else list(names),
            "categories": self.categories_,
            "means": self.means_.tolist(),
            "scales": self.scales_.tolist(),
        }

    @classmethod
    def from_dict(cls, learned: dict[str, Any]) -> TableEncoder:
        """The encoder that `to_dict` described."""
        encoder = cls()
        encoder.categories_ = learned["categories"]
        encoder.means_ = np.asarray(learned["means"], dtype=np.float64)
        encoder.scales_ = np.asarray(learned["scales"], dtype=np.float64)
        encoder.n_features_in_ = len(encoder.categories_)
        if learned["names"] is not None:
            encoder.feature_names_in_ = np.asarray(learned["names"], dtype=object)
        return encoder

    def _columns(self, X: Any, *, reset: bool) -> list[NDArray[Any]]:
        """Each column as float64 or as objects, checked as scikit-learn checks."""
        if hasattr(X, "columns") and hasattr(X, "__getitem__"):
            validate_data(self, X, skip_check_array=True, reset=reset)
            columns = [self._plain(X[name], f"column {name!r}") for name in X.columns]
            if columns and len(columns[0]):
                return columns
        matrix = validate_data(self, X, reset=reset, dtype=np.float64)
        return list(matrix.T)

    def _plain(self, column: Any, name: str) -> NDArray[Any]:
        values = np.asarray(column)
        if values.dtype.kind in "biuf":
            values = values.astype(np.float64)
            missing = ~np.isfinite(values)
        else:
            values = values.astype(object)
            missing = np.fromiter((is_missing(value) for value in values), dtype=bool, count=len(values))
        if missing.any():
            row = int(np.argmax(missing))
            raise ValueError(f"X has {values[row]} (NaN, infinity or no value) in {name} at row {row}")
        return values

    def _values_of(self, X: Any, place: int, values: NDArray[Any]) -> list[Any]:
        categories = getattr(getattr(X[X.columns[place]], "cat", None), "categories", None)
        return list(sort_groups(set(values) if categories is None else categories))

    def _one_hot(self, place: int, values: NDArray[Any], known: list[Any]) -> FloatArray:
        place_of = {value: code for code, value in enumerate(known)}
        codes = np.fromiter((place_of.get(value, -1) for value in values), dtype=np.int64, count=len(values))
        if (codes < 0).any():
            row = int(np.argmax(codes < 0))
            raise ValueError(
                f"{self._name(place)} has {values[row]!r} at row {row}, which was not there at fit; "
                f"there was {', '.join(map(repr, known[:12]))}"
            )
        return np.eye(len(known))[codes]

    def _name(self, place: int) -> str:
        return f"column {self._plain_name(place)!r}"

    def _plain_name(self, place: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"x{place}" if names is None else str(names[place])
