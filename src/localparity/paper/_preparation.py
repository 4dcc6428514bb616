"""The paper's splits and preprocessing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._validation import as_probability, as_vector


class Split(NamedTuple):
    """The row numbers of the three parts.

    Examples
    --------
    >>> import localparity as lp
    >>> split = lp.paper.paper_split([0, 1] * 50)
    >>> split.train.size, split.validation.size, split.test.size
    (40, 30, 30)
    """

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


def paper_split(y: Any, random_state: int = 0, *, train: float = 0.4) -> Split:
    """The paper's split of a table: 40% to train on, 30% for validation, 30% for the test.

    Of images the paper takes 80% to train on and 10% for each of the others.

    Parameters
    ----------
    y : array-like
        The target, on which both cuts are stratified.
    random_state : int
        The run's seed.
    train : float
        The share to train on; the rest is halved.

    Returns
    -------
    Split
        The row numbers of `train`, `validation` and `test`.

    Examples
    --------
    >>> import localparity as lp
    >>> parts = lp.paper.paper_split([0, 1] * 50, random_state=0)
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (40, 30, 30)
    """
    from sklearn.model_selection import train_test_split

    labels = as_vector(y, "y")
    rest_share = round(1.0 - as_probability(train, "train"), 12)
    rows = np.arange(labels.size)
    training, rest = train_test_split(rows, test_size=rest_share, stratify=labels, random_state=random_state)
    test, validation = train_test_split(rest, test_size=0.5, stratify=labels[rest], random_state=random_state)
    return Split(training, validation, test)


def paper_preprocessor() -> Any:
    """The paper's preprocessing of a table, to fit on the training part.

    Text columns become one column a value, not scaled; numbers are standardised.

    Returns
    -------
    TableEncoder
        A scikit-learn transformer.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(200, random_state=0)
    >>> lp.paper.paper_preprocessor().fit_transform(census.data).shape
    (200, 7)
    """
    from localparity.models._encoding import TableEncoder

    return TableEncoder()
