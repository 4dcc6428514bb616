"""The rows that a classifier is fitted on, checked together, and the part of them that is held out."""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, _num_samples, column_or_1d

from localparity._types import ArrayLike, FloatArray, Group, Groups, IntArray, Seed
from localparity._validation import Grouping, as_groups, as_rng, check_indexes, check_rows, is_missing
from localparity.models._copies import without_copies
from localparity.models._fitted_on import FittedOn, describe_rows


class TrainingRows(NamedTuple):
    """Features, labels 0 and 1, group codes and weights, with the names of classes and groups."""

    features: Any
    labels: FloatArray
    groups: IntArray
    weights: FloatArray
    classes: NDArray[Any]
    group_names: tuple[Group, ...]

    @property
    def targets(self) -> NDArray[Any]:
        """The class of each row by its name."""
        found: NDArray[Any] = self.classes[self.labels.astype(np.int64)]
        return found

    @property
    def named_groups(self) -> NDArray[Any]:
        """The group of each row by its name."""
        names = np.empty(len(self.group_names), dtype=object)
        for code, name in enumerate(self.group_names):
            names[code] = name
        found: NDArray[Any] = names[self.groups]
        return found

    def describe(self) -> FittedOn:
        """Return what a model card tells of the rows."""
        return describe_rows(self.groups, self.group_names, self.features, self.labels, self.weights)

    def take(self, places: IntArray) -> TrainingRows:
        """Return some of the rows, in the given order."""
        return self._replace(
            features=_safe_indexing(self.features, places),
            labels=self.labels[places],
            groups=self.groups[places],
            weights=self.weights[places],
        )

    def without_copies(self) -> TrainingRows:
        """Return the rows; where nearly every row is repeated, one of its copies, with a warning."""
        places = without_copies(self.features, self.labels, self.groups, self.weights)
        return self if places is None else self.take(places)

    def with_weight(self) -> TrainingRows:
        """Return the rows whose weight is above 0."""
        kept = self.weights > 0.0
        return self if kept.all() else self.take(np.flatnonzero(kept))

    def split(self, fraction: float, seed: int, *, by_class: bool = True) -> tuple[IntArray, IntArray]:
        """Return the places of training and held-out rows, stratified by group and by class.

        A stratum of a single row stays in the training part. For a test of whole groups on the held-out rows,
        classes must not be strata: their shares in a group would be those of the training rows.

        Examples
        --------
        >>> rows = check_training_rows(None, np.zeros((20, 1)), [0, 1] * 10, ["a"] * 10 + ["b"] * 10)
        >>> [len(part) for part in rows.split(0.5, seed=0)]
        [10, 10]
        """
        from sklearn.model_selection import train_test_split

        cells = 2 * self.groups + self.labels.astype(np.int64) if by_class else self.groups
        alone = np.bincount(cells)[cells] == 1
        places, lone = np.flatnonzero(~alone), np.flatnonzero(alone)
        n_cells = np.unique(cells[places]).size
        held = max(math.ceil(fraction * len(places)), n_cells)
        if len(places) < held + max(n_cells, 1):
            raise ValueError(f"{len(cells)} rows are too few for validation_fraction={fraction:g}")
        training, held_out = train_test_split(
            places, test_size=held, stratify=cells[places], random_state=seed
        )
        training = np.concatenate([training, lone])
        if np.ptp(self.labels) > np.ptp(self.labels[training]):
            raise ValueError(f"y has too few rows of a class for validation_fraction={fraction:g}")
        for part in (training, held_out):
            counted = self.groups[part][self.weights[part] > 0.0]
            counts = np.bincount(counted, minlength=len(self.group_names))
            if not counts.all():
                name = self.group_names[int(np.argmin(counts))]
                raise ValueError(f"group {name!r} has too few rows for a training and a validation part")
        return training, held_out

    def hold_out(
        self, fraction: float, seed: int, *, by_class: bool = True
    ) -> tuple[TrainingRows, TrainingRows]:
        """Return the training and the held-out rows."""
        training, held_out = self.split(fraction, seed, by_class=by_class)
        return self.take(training), self.take(held_out)


def check_training_rows(
    owner: Any,
    X: Any,
    y: ArrayLike,
    sensitive_features: Groups,
    sample_weight: ArrayLike | None = None,
) -> TrainingRows:
    """Check what `fit` was given on behalf of `owner`; the features are X as it is.

    Examples
    --------
    >>> rows = check_training_rows(None, [[1], [2], [3]], ["no", "yes", "yes"], ["a", "b", "b"], [1, 1, 0])
    >>> rows.labels, rows.with_weight().features
    (array([0., 1., 1.]), [[1], [2]])
    """
    given = {"X": X, "y": y, "sensitive_features": sensitive_features, "sample_weight": sample_weight}
    check_indexes(given)
    rows = _num_samples(X)
    targets = as_classes(owner, y, rows)
    weights = _check_sample_weight(sample_weight, np.empty(rows), dtype=np.float64, ensure_non_negative=True)
    kept = weights > 0.0
    classes = np.unique(targets[kept])
    if classes.size < 2:
        raise ValueError(f"y must have two classes among weights above 0, got one class: {classes.tolist()}")
    labels = np.searchsorted(classes, targets).astype(np.float64)
    codes, names = groups_of_rows(sensitive_features, rows)
    groups = codes.astype(np.int64)
    counts = np.bincount(groups[kept], minlength=len(names))
    if not counts.all():
        raise ValueError(f"group {names[int(np.argmin(counts))]!r} has no row of weight above 0")
    return TrainingRows(X, labels, groups, weights, classes, names).without_copies()


def as_classes(owner: Any, y: ArrayLike, rows: int, *, multiclass: bool = False) -> NDArray[Any]:
    """Return the class of each row, of two at most unless `multiclass`; messages name the type of `owner`."""
    if y is None:
        raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None")
    targets: NDArray[Any] = column_or_1d(y, warn=True)
    for row, value in enumerate(targets if targets.dtype.kind == "O" else ()):
        if is_missing(value):
            raise ValueError(f"y has no value at row {row}")
    check_classification_targets(targets)
    kind = type_of_target(targets, input_name="y")
    if kind != "binary" and not (multiclass and kind == "multiclass"):
        raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
    check_rows("y", targets.size, rows, "X")
    return targets


def groups_of_rows(sensitive_features: Groups, rows: int) -> Grouping:
    """Return the group of each row of X."""
    if sensitive_features is not None and not isinstance(sensitive_features, dict):
        check_rows("sensitive_features", _num_samples(sensitive_features), rows, "X")
    return as_groups(sensitive_features, rows)


def as_seed(random_state: Seed) -> int:
    """Return an integer seed as it is, so that equal seeds start alike, or one that is drawn."""
    rng = as_rng(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(rng.integers(2**31 - 1))
