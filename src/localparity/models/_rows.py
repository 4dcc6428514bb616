"""The rows that a classifier is fitted on, checked together, and the part of them that is held out."""

from __future__ import annotations

import hashlib
import math
import numbers
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, _num_samples, column_or_1d

from localparity._types import ArrayLike, FloatArray, Group, Groups, IntArray, Seed
from localparity._validation import (
    Grouping,
    InputError,
    as_groups,
    as_rng,
    check_indexes,
    check_rows,
    is_missing,
)
from localparity.counts._comparison import group_text
from localparity.counts._copies import copies_in, warn_of_copies
from localparity.counts._score_counts import ScoreCounts

# Who a model was fitted on: how many people, of which groups, and a checksum of their rows.


DISCLOSURE_LIMIT = 10
"""The number of people of a smaller group is withheld."""


@dataclass(frozen=True)
class FittedOn:
    """The rows that an estimator was fitted on.

    Attributes
    ----------
    rows : int
        How many rows there are.
    groups : dict
        The rows of each group, by its name; None where the number is withheld, because it is below 10 or
        would reveal one that is.
    rows_sha256 : str
        The sha256 of the rows: of the values, in their order.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> repair = lp.models.ScoreRepair().fit(census.score, sensitive_features=census.sensitive_features)
    >>> repair.card().fitted_on.groups
    {'Female': 485, 'Male': 515}
    """

    rows: int
    groups: dict[str, int | None]
    rows_sha256: str


def describe_rows(codes: NDArray[Any], names: tuple[Group, ...], *content: Any) -> FittedOn:
    """Return what is kept of rows: the group of each as its place in `names`, and all of their values.

    Examples
    --------
    >>> found = describe_rows(np.repeat([0, 1, 2], [20, 30, 4]), ("a", "b", "c"), np.zeros(54))
    >>> found.rows, found.groups
    (54, {'a': None, 'b': 30, 'c': None})
    """
    return _described(np.bincount(codes, minlength=len(names)).tolist(), names, (codes, *content))


def describe_counts(counts: ScoreCounts) -> FittedOn:
    """Return what is kept of rows that were counted: the checksum is that of the counts.

    Examples
    --------
    >>> import localparity as lp
    >>> arrays = lp.Predictions.from_arrays(None, [0.1, 0.2] * 20, sensitive_features=["a", "b"] * 20)
    >>> describe_counts(lp.ScoreCounts.from_predictions(arrays)).groups
    {'a': 20, 'b': 20}
    """
    sizes = dict.fromkeys(counts.groups, 0)
    content: list[Any] = []
    for (group, label), atoms in sorted(counts.atoms.items(), key=lambda found: str(found[0])):
        sizes[group] += atoms.size
        content += [np.array([str(group), str(label)]), atoms.scores, atoms.weights]
    return _described(list(sizes.values()), counts.groups, content)


def _described(sizes: list[int], names: tuple[Group, ...], content: Iterable[Any]) -> FittedOn:
    """Return the rows of each group, without numbers that would reveal few people, and a checksum."""
    limit = DISCLOSURE_LIMIT
    if sum(size < limit for size in sizes) == 1:
        # With the total known, a single number withheld is the total less the others.
        limit = 1 + sorted(sizes)[:2][-1]
    hashed = hashlib.sha256()
    for values in content:
        for part in _columns(values):
            hashed.update(_bytes(part))
    shown = (size if size >= limit else None for size in sizes)
    return FittedOn(sum(sizes), dict(zip(map(group_text, names), shown, strict=True)), hashed.hexdigest())


def _columns(values: Any) -> Iterator[Any]:
    """Return the columns of a data frame, the parts of a sparse matrix, or an array as it is."""
    if values is None:
        return
    if hasattr(values, "tocsr"):
        matrix = values.tocsr()
        yield from (matrix.data, matrix.indices, matrix.indptr)
    elif hasattr(values, "columns"):
        yield from (values[name] for name in values.columns)
    else:
        yield values


def _bytes(values: Any) -> bytes:
    """Return numbers as float64, and anything else as text."""
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype("<f8").tobytes()
    return "\x1f".join(map(str, array.ravel().tolist())).encode()


# What classifiers of two classes share that need nothing but features to predict.


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


# Rows that are repeated as a whole: of nearly equal tables one copy is fitted on.


ADVICE = "one of them is fitted on"
"""What a fit does about copies."""
_FACTORS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_NUMBERS = "biuf"


def distinct_rows(features: Any, *others: NDArray[Any]) -> tuple[int, IntArray]:
    """Return how many copies there are of nearly every row, and the places of rows of which one is kept.

    Rows are compared by a hash of 64 bits. Copies are so in any columns, so that texts, which take longer,
    are looked at only where the numbers are repeated.

    Examples
    --------
    >>> table = np.repeat(np.arange(120.0).reshape(60, 2), 3, axis=0)
    >>> copies, places = distinct_rows(table, np.zeros(180))
    >>> copies, places[:4]
    (3, array([0, 3, 6, 9]))
    >>> distinct_rows(table[::3], np.zeros(60))[0]
    1
    """
    rows = len(others[0])
    columns = list(_hashed_columns(features))
    numbers = [each for each in columns if each.dtype.kind in _NUMBERS]
    keys = _hashed(np.zeros(rows, np.uint64), [*others, *numbers])
    texts = [each for each in columns if each.dtype.kind not in _NUMBERS]
    copies, places = _one_of_each(keys)
    if copies > 1 and texts:
        copies, places = _one_of_each(_hashed(keys, texts))
    return copies, places


def without_copies(features: Any, *others: NDArray[Any]) -> IntArray | None:
    """Return the places of the rows to fit on, with a warning where rows are copies; None without copies.

    Copies are no independent people, and one could be held out while another is fitted on.
    """
    copies, places = distinct_rows(features, *others)
    if copies == 1:
        return None
    warn_of_copies(copies, f"{ADVICE}, {places.size:,} of {len(others[0]):,} rows", stacklevel=4)
    return places


def _one_of_each(keys: NDArray[np.uint64]) -> tuple[int, IntArray]:
    _, place, times = np.unique(keys, return_inverse=True, return_counts=True)
    copies = copies_in(times)
    order = np.argsort(place, kind="stable")
    number = np.empty(keys.size, np.int64)
    number[order] = np.arange(keys.size) - np.repeat(np.cumsum(times) - times, times)
    return copies, np.flatnonzero(number < -(-times // copies)[place])


def _hashed_columns(features: Any) -> Iterator[NDArray[Any]]:
    """Return the columns of a data frame or an array; of a sparse matrix, a hash of each row."""
    if hasattr(features, "tocsr"):
        matrix = features.tocsr()
        entries = _hashed(np.zeros(matrix.nnz, np.uint64), [matrix.data, matrix.indices])
        running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
        yield (running[matrix.indptr[1:]] - running[matrix.indptr[:-1]]).view(np.int64)
    elif hasattr(features, "columns"):
        yield from (np.asarray(features[name]) for name in features.columns)
    else:
        table = np.asarray(features)
        yield from table.reshape(len(table), -1).T


def _hashed(keys: NDArray[np.uint64], columns: Iterable[NDArray[Any]]) -> NDArray[np.uint64]:
    """Return keys with some columns mixed in."""
    for column in columns:
        keys = (keys ^ _bits(column)) * _FACTORS[0]
        keys = (keys ^ (keys >> np.uint64(29))) * _FACTORS[1]
    return keys


def _bits(column: NDArray[Any]) -> NDArray[np.uint64]:
    if column.dtype.kind == "f":
        numbers = column.astype(np.float64) + 0.0  # -0.0 is 0.0
        return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    if column.dtype.kind in _NUMBERS:
        return column.astype(np.int64).view(np.uint64)
    return np.fromiter((hash(str(value)) for value in column.tolist()), np.int64, column.size).view(np.uint64)


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
        raise InputError(
            f"must have two classes among weights above 0, got one class: {classes.tolist()}", "y"
        )
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
            raise InputError(f"has no value at row {row}", "y")
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
