"""What classifiers of two classes share that need nothing but features to predict."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from localparity._types import FloatArray


class TwoClassMixin(ClassifierMixin):  # type: ignore[misc]
    """`predict`, from the score of the second class."""

    classes_: NDArray[Any]

    @abstractmethod
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row: the second where its score is above one half.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features, in the columns that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        above = self.predict_proba(X)[:, 1] > 0.5
        chosen: NDArray[Any] = self.classes_[above.astype(np.int64)]
        return chosen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
