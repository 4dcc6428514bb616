"""The features of an estimator: a table's columns, learned at `fit`, as one matrix of numbers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray
from localparity._validation import as_count
from localparity.models._columns import table_columns
from localparity.models._encoding import CategoryEncoder


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
