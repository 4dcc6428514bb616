"""Rows to fit a classifier on: their classes, groups and weights, checked together; and a part held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, _num_samples, column_or_1d

from localparity._types import FloatArray, Group
from localparity._validation import Grouping, as_groups, check_indexes, check_rows

Rows = NDArray[np.int64]


class Labelled(NamedTuple):
    """The rows that weigh anything.

    Attributes
    ----------
    kept : ndarray of bool
        Which of the rows given they are.
    labels : ndarray
        0 for the first class and 1 for the second.
    groups : ndarray
        The group of each row as a code.
    weights : ndarray
        Above 0.
    classes : ndarray
        The two classes.
    names : tuple
        The groups' names in the order of their codes.
    all_weights : ndarray
        Those of all rows given.
    """

    kept: NDArray[np.bool_]
    labels: FloatArray
    groups: NDArray[np.int64]
    weights: FloatArray
    classes: NDArray[Any]
    names: tuple[Group, ...]
    all_weights: FloatArray

    def take(self, rows: Rows) -> Labelled:
        """Some of the rows, in the given order."""
        return self._replace(labels=self.labels[rows], groups=self.groups[rows], weights=self.weights[rows])


def check_labelled(
    owner: Any, X: Any, rows: int, y: Any, sensitive_features: Any, sample_weight: Any
) -> Labelled:
    """The classes, groups and weights of the rows of X, on behalf of a classifier of two classes.

    Parameters
    ----------
    owner : estimator
        Whom messages name.
    X : data frame or array-like
        The features, checked already.
    rows : int
        How many rows it has.
    y, sensitive_features, sample_weight : array-like
        What `fit` was given.

    Returns
    -------
    Labelled

    Examples
    --------
    >>> found = check_labelled(None, [[1], [2], [3]], 3, ["no", "yes", "yes"], ["a", "b", "b"], [1, 1, 0])
    >>> found.labels, found.kept.tolist()
    (array([0., 1.]), [True, True, False])
    """
    given = {"X": X, "y": y, "sensitive_features": sensitive_features, "sample_weight": sample_weight}
    check_indexes(given)
    labels = as_classes(owner, y, rows)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    kept = weights > 0.0
    classes, codes = two_classes(labels[kept])
    grouping = groups_of_rows(sensitive_features, rows)
    groups = grouping.codes[kept].astype(np.int64)
    counts = np.bincount(groups, minlength=len(grouping.names))
    if not counts.all():
        missing = grouping.names[int(np.argmin(counts))]
        raise ValueError(f"the group {missing!r} has no training row of weight above 0")
    return Labelled(kept, codes.astype(np.float64), groups, weights[kept], classes, grouping.names, weights)


def as_classes(owner: Any, y: Any, rows: int) -> NDArray[Any]:
    """The classes of the rows of X, not more than two; `owner` is whom messages name."""
    if y is None:
        raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None")
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    check_classification_targets(labels)
    kind = type_of_target(labels, input_name="y")
    if kind != "binary":
        raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
    check_rows("y", labels.size, rows, "X")
    return labels


def groups_of_rows(sensitive_features: Any, rows: int) -> Grouping:
    """The groups of the rows of X."""
    if sensitive_features is not None and not isinstance(sensitive_features, dict):
        check_rows("sensitive_features", _num_samples(sensitive_features), rows, "X")
    return as_groups(sensitive_features, rows)


def two_classes(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The two classes of rows that weigh anything, and the class of each row as a code."""
    classes, codes = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()}, in rows of weight above 0 "
            "where two classes are expected"
        )
    return classes, codes


def hold_out(
    labels: NDArray[Any], groups: NDArray[Any], fraction: float, seed: int, names: Sequence[Group]
) -> tuple[Rows, Rows]:
    """The rows to train on and those of the validation part, with the same shares of groups and classes.

    Examples
    --------
    >>> train, held_out = hold_out(np.tile([0, 1], 10), np.repeat([0, 1], 10), 0.5, 0, ["a", "b"])
    >>> len(train), len(held_out)
    (10, 10)
    """
    from sklearn.model_selection import train_test_split

    cells = groups.astype(np.int64) * 2 + labels.astype(np.int64)
    if np.bincount(cells)[np.unique(cells)].min() < 2:
        raise ValueError(
            "a group has a class with one row only, which cannot be both in the training and in the "
            "validation part"
        )
    parts: tuple[Rows, Rows] = train_test_split(
        np.arange(len(cells)), test_size=fraction, stratify=cells, random_state=seed
    )
    for part in parts:
        counts = np.bincount(groups[part].astype(np.int64), minlength=len(names))
        if not counts.all():
            missing = names[int(np.argmin(counts))]
            raise ValueError(f"the group {missing!r} has too few rows for a training and a validation part")
    return parts[0], parts[1]
