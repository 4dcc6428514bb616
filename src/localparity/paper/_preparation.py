"""The paper's splits and preprocessing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from localparity._types import ArrayLike, IntArray, Seed
from localparity._validation import as_probability, as_rng, as_vector

if TYPE_CHECKING:
    from localparity.models._encoding import TableEncoder


class Split(NamedTuple):
    """The row numbers of the three parts.

    Parameters
    ----------
    train : ndarray of int
        The rows to train on.
    validation : ndarray of int
        The rows to choose a strength on.
    test : ndarray of int
        The rows to report on.

    Examples
    --------
    >>> import localparity as lp
    >>> split = lp.paper.paper_split([0, 1] * 50)
    >>> split.train.size, split.validation.size, split.test.size
    (40, 30, 30)
    """

    train: IntArray
    validation: IntArray
    test: IntArray


def paper_split(y: ArrayLike, random_state: Seed = 0, *, train: float = 0.4) -> Split:
    """Split rows as the paper splits a table: 40% to train on, 30% for validation, 30% for the test.

    For images the paper takes 80%, 10% and 10%.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The target, on which both cuts are stratified.
    random_state : int, Generator or None, default=0
        The run's seed.
    train : float, default=0.4
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
    rng = as_rng(random_state)
    seed = random_state if isinstance(random_state, int) else int(rng.integers(2**31))
    rows = np.arange(labels.size)
    training, rest = train_test_split(rows, test_size=rest_share, stratify=labels, random_state=seed)
    test, validation = train_test_split(rest, test_size=0.5, stratify=labels[rest], random_state=seed)
    return Split(training, validation, test)


def paper_preprocessor() -> TableEncoder:
    """Return the paper's preprocessing of a table, to fit on the training part.

    Text columns are one-hot encoded and not scaled; numbers are standardised.

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
