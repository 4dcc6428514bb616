"""The rows that a classifier is fitted on: checked, encoded and hashed once, and handed on."""

from __future__ import annotations

import hashlib
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import compress
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted, column_or_1d

from localparity._text import group_text
from localparity._types import ArrayLike, FloatArray, Group, Groups, IntArray, Seed
from localparity._validation import (
    Grouping,
    InputError,
    as_groups,
    as_rng,
    as_scores,
    check_indexes,
    check_rows,
    encode,
    is_missing,
    setting,
)
from localparity.counts._score_counts import ScoreCounts, copies_in, warn_of_copies
from localparity.predictions import Predictions

_GROUPS = "sensitive_features"
DISCLOSURE_LIMIT = 10
"""The number of people of a smaller group is withheld."""


DECISION_CUTOFF = 0.5


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
    >>> FittedOn(rows=1000, groups={"Female": 485, "Male": 515}, rows_sha256="5f36...").groups["Male"]
    515
    """

    rows: int
    groups: dict[str, int | None]
    rows_sha256: str


def describe_rows(codes: NDArray[Any], names: tuple[Group, ...], *content: Any) -> FittedOn:
    """Return what is kept of rows, from the code of each row's group and all of their values."""
    return _described(np.bincount(codes, minlength=len(names)).tolist(), names, (codes, *content))


def describe_counts(counts: ScoreCounts) -> FittedOn:
    """Return what is kept of rows that were counted; the checksum is that of the counts."""
    sizes = dict.fromkeys(counts.groups, 0)
    content: list[Any] = []
    for (group, label), atoms in sorted(counts.atoms.items(), key=lambda item: str(item[0])):
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
        for column in () if values is None else _columns(values):
            numbers = column.dtype.kind in "biuf"
            text = "" if numbers else "\x1f".join(map(str, column.tolist()))
            hashed.update(column.astype("<f8").tobytes() if numbers else text.encode())
    shown = (size if size >= limit else None for size in sizes)
    return FittedOn(sum(sizes), dict(zip(map(group_text, names), shown, strict=True)), hashed.hexdigest())


ADVICE = "one of them is fitted on"
"""What a fit does about copies."""


def distinct_rows(features: Any, *others: NDArray[Any]) -> tuple[int, IntArray]:
    """Return how many copies nearly every row has, and the indexes of one copy of each."""
    rows = len(others[0])
    keys = np.zeros(rows, np.int64)
    for column in (*others, *_columns(features)):
        is_object = column.dtype.kind == "O"  # whose values may be of any kind, even one without a hash
        values = np.array(list(map(str, column)), dtype=object) if is_object else column
        codes = encode(values).codes.astype(np.int64)
        keys = np.unique(keys * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
        if int(keys.max()) == rows - 1:
            return 1, np.arange(rows)
    times = np.bincount(keys)
    copies, order = copies_in(times), np.argsort(keys, kind="stable")
    number = np.empty(rows, np.int64)
    number[order] = np.arange(rows) - np.repeat(np.cumsum(times) - times, times)
    return copies, np.flatnonzero(number < -(-times // copies)[keys])


def _columns(features: Any) -> Iterator[NDArray[Any]]:
    """Return the columns of a data frame or an array; of a sparse matrix, each row as bytes."""
    if hasattr(features, "tocsr"):
        matrix = features.tocsr()
        parts = (np.split(values, matrix.indptr[1:-1]) for values in (matrix.indices, matrix.data))
        entries = [(one.tobytes(), other.tobytes()) for one, other in zip(*parts, strict=True)]
        yield np.fromiter(entries, dtype=object, count=len(entries))
    elif hasattr(features, "columns"):
        yield from (np.asarray(features[name]) for name in features.columns)
    else:
        table = np.asarray(features)
        yield from table.reshape(len(table), -1).T


def drop_copies(features: Any, *others: NDArray[Any]) -> IntArray | None:
    """Return the indexes of one copy of each row, with a warning; None where nearly no row is repeated.

    Copies are not independent people, and one could be held out while another is fitted on.
    """
    copies, indexes = distinct_rows(features, *others)
    warn_of_copies(copies, f"{ADVICE}, {indexes.size:,} of {len(others[0]):,} rows", stacklevel=5)
    return None if copies == 1 else indexes


class TrainingRows(NamedTuple):
    """Features, labels 0 and 1, group codes and weights, with the names of classes and groups.

    `weighted` says whether the caller gave weights; without them they are 1. `scores` are a baseline's.
    """

    features: Any
    labels: FloatArray
    groups: IntArray
    weights: FloatArray
    classes: NDArray[Any]
    group_names: tuple[Group, ...]
    weighted: bool = False
    scores: FloatArray | None = None

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.labels.size

    @property
    def targets(self) -> NDArray[Any]:
        """The class of each row by its name."""
        return np.asarray(self.classes[self.labels.astype(np.int64)])

    @property
    def named_groups(self) -> NDArray[Any]:
        """The group of each row by its name, for estimators that are not ours."""
        names = np.fromiter(self.group_names, dtype=object, count=len(self.group_names))
        return np.asarray(names[self.groups])

    @property
    def grouping(self) -> Grouping:
        """The groups as metrics and maps take them, without encoding them again."""
        return Grouping(self.groups.astype(np.min_scalar_type(len(self.group_names))), self.group_names)

    def predictions(self, scores: FloatArray, *, always_weighted: bool = False) -> Predictions:
        """Return scores of the rows as metrics take them; weights that are all 1 are left out."""
        weighted = always_weighted or bool((self.weights != 1.0).any())
        return coded_predictions(
            scores, self.grouping, self.labels.astype(np.uint8), self.weights if weighted else None
        )

    def describe(self) -> FittedOn:
        """Return what a model card tells of the rows."""
        return describe_rows(self.groups, self.group_names, self.features, self.labels, self.weights)

    def take(self, indexes: IntArray) -> TrainingRows:
        """Return some of the rows, in the given order."""
        return self._replace(
            features=_safe_indexing(self.features, indexes),
            labels=self.labels[indexes],
            groups=self.groups[indexes],
            weights=self.weights[indexes],
            scores=None if self.scores is None else self.scores[indexes],
        )

    def without_copies(self) -> TrainingRows:
        """Return the rows; where nearly every row is repeated, one copy of each, with a warning."""
        indexes = drop_copies(self.features, self.labels, self.groups, self.weights)
        return self if indexes is None else self.take(indexes)

    def with_weight(self) -> TrainingRows:
        """Return the rows whose weight is above 0."""
        has_weight = self.weights > 0.0
        return self if has_weight.all() else self.take(np.flatnonzero(has_weight))

    def of_groups(self) -> TrainingRows:
        """Return the rows with their groups as the classes, by their codes."""
        classes, labels = np.unique(self.groups, return_inverse=True)
        return self._replace(labels=labels.astype(np.float64), classes=classes)

    def settled(self) -> TrainingRows:
        """Return the rows whose weight is above 0 and the groups that occur among them, two at least."""
        if self.classes.size > 2:
            raise ValueError("Only binary classification is supported. The type of the target is multiclass.")
        rows = self.with_weight()
        check_two_classes(rows.classes[np.unique(rows.labels).astype(np.int64)])
        occurs = np.bincount(rows.groups, minlength=len(rows.group_names)) > 0
        if occurs.all():
            return rows
        names = tuple(compress(rows.group_names, occurs))
        if len(names) < 2:
            raise InputError(f"must have at least two groups, got {names[0]!r} only", argument=_GROUPS)
        return rows._replace(groups=(np.cumsum(occurs) - 1)[rows.groups], group_names=names)

    def split(self, fraction: float, seed: int, *, by_class: bool = True) -> tuple[IntArray, IntArray]:
        """Return the indexes of training and held-out rows, stratified by group and by class.

        A stratum of a single row stays in the training part. For a test of whole groups on the held-out rows,
        classes must not be strata: their shares in a group would be those of the training rows.
        """
        from sklearn.model_selection import train_test_split

        cells = 2 * self.groups + self.labels.astype(np.int64) if by_class else self.groups
        alone = np.bincount(cells)[cells] == 1
        indexes, lone = np.flatnonzero(~alone), np.flatnonzero(alone)
        n_cells = np.unique(cells[indexes]).size
        n_held_out = max(math.ceil(fraction * len(indexes)), n_cells)
        if len(indexes) < n_held_out + max(n_cells, 1):
            raise InputError(f"{len(cells)} rows are too few for {setting(validation_fraction=fraction)}")
        training, held_out = train_test_split(
            indexes, test_size=n_held_out, stratify=cells[indexes], random_state=seed
        )
        training = np.concatenate([training, lone])
        if np.ptp(self.labels) > np.ptp(self.labels[training]):
            reason = f"has too few rows of a class for {setting(validation_fraction=fraction)}"
            raise InputError(reason, argument="y")
        for part in (training, held_out):
            counted = self.groups[part][self.weights[part] > 0.0]
            counts = np.bincount(counted, minlength=len(self.group_names))
            if not counts.all():
                name = self.group_names[int(np.argmin(counts))]
                raise InputError(f"group {name!r} has too few rows for a training and a validation part")
        return training, held_out

    def hold_out(
        self, fraction: float, seed: int, *, by_class: bool = True
    ) -> tuple[TrainingRows, TrainingRows]:
        """Return the training and the held-out rows."""
        training, held_out = self.split(fraction, seed, by_class=by_class)
        return self.take(training), self.take(held_out)


def coded_predictions(
    scores: NDArray[Any], grouping: Grouping, labels: NDArray[np.uint8] | None, weights: FloatArray | None
) -> Predictions:
    """Return scores in [0, 1] of rows that were checked before, as metrics take them."""
    values, resolution = as_scores(scores, (0.0, 1.0), "scores")
    return Predictions(
        scores=values,
        group_codes=grouping.codes,
        groups=grouping.names,
        labels=labels,
        weights=weights,
        score_range=(0.0, 1.0),
        resolution=resolution,
    )


def check_training_rows(
    owner: Any,
    X: Any,
    y: ArrayLike,
    sensitive_features: Groups,
    sample_weight: ArrayLike | None = None,
    *,
    y_score: ArrayLike | None = None,
) -> TrainingRows:
    """Check what `fit` was given on behalf of `owner`; the features are X as it is."""
    given = {"X": X, "y": y, _GROUPS: sensitive_features, "sample_weight": sample_weight, "y_score": y_score}
    check_indexes(given)
    n_rows = _num_samples(X)
    targets = as_classes(owner, y, n_rows)
    weights = as_row_weights(sample_weight, n_rows)
    has_weight = weights > 0.0
    classes = np.unique(targets[has_weight])
    check_two_classes(classes)
    labels = np.searchsorted(classes, targets).astype(np.float64)
    codes, names = groups_of_rows(sensitive_features, n_rows)
    groups = codes.astype(np.int64)
    counts = np.bincount(groups[has_weight], minlength=len(names))
    if not counts.all():
        raise InputError(f"group {names[int(np.argmin(counts))]!r} has no row of weight above 0")
    weighted = sample_weight is not None
    scores = None if y_score is None else as_scores(y_score, (0.0, 1.0), "y_score")[0].astype(np.float64)
    if scores is not None:
        check_rows("y_score", scores.size, n_rows, "X")
    return TrainingRows(X, labels, groups, weights, classes, names, weighted, scores).without_copies()


def check_two_classes(classes: NDArray[Any]) -> None:
    """Raise a ValueError where only one class is left."""
    if classes.size < 2:
        raise InputError(
            f"must have two classes among weights above 0, got one class: {classes.tolist()}", "y"
        )


def as_row_weights(sample_weight: ArrayLike | None, n_rows: int) -> FloatArray:
    """Return weights that are not negative, 1 where none are given."""
    weights: FloatArray = _check_sample_weight(
        sample_weight, np.empty(n_rows), dtype=np.float64, ensure_non_negative=True
    )
    return weights


def as_classes(owner: Any, y: ArrayLike | None, n_rows: int) -> NDArray[Any]:
    """Return the class of each row, of two at most; messages name the type of `owner`."""
    if y is None:
        raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None")
    targets: NDArray[Any] = column_or_1d(y, warn=True)
    for row, value in enumerate(targets if targets.dtype.kind == "O" else ()):
        if is_missing(value):
            raise InputError(f"has no value at row {row}", argument="y", row=row)
    check_classification_targets(targets)
    kind = type_of_target(targets, input_name="y")
    if kind != "binary":
        raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
    check_rows("y", targets.size, n_rows, "X")
    return targets


def groups_of_rows(sensitive_features: Groups, n_rows: int) -> Grouping:
    """Return the group of each row of X."""
    if sensitive_features is not None and not isinstance(sensitive_features, dict):
        check_rows(_GROUPS, _num_samples(sensitive_features), n_rows, "X")
    return as_groups(sensitive_features, n_rows)


def as_seed(random_state: Seed) -> int:
    """Return an integer seed as it is, so that equal seeds start alike, or one that is drawn."""
    rng = as_rng(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(rng.integers(2**31 - 1))


def assign_folds(cells: IntArray, folds: int, seed: int) -> IntArray:
    """Return the fold of each row, at random among the rows of each cell."""
    order = np.random.default_rng(seed).permutation(cells.size)
    order = order[np.argsort(cells[order], kind="stable")]
    fold_of = np.empty(cells.size, dtype=np.int64)
    fold_of[order] = np.arange(cells.size) % folds
    return fold_of


class RowsClassifier(ABC, ClassifierMixin):  # type: ignore[misc]
    """A classifier of two classes that is fitted on `TrainingRows`, which it checks once or is handed."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {_GROUPS: True}
    classes_: NDArray[Any]
    _fitted_on: FittedOn | None

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sensitive_features: Groups = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit on rows with their classes and groups.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            Two classes, of any kind that can be sorted. A `RepairedClassifier` with `prefit` needs them only
            for the criteria that compare people by label.
        sensitive_features : array-like, data frame or mapping of columns
            The group of each row; of several columns, the combinations that occur.
        sample_weight : array-like of shape (n_samples,), optional
            Weights that are not negative; a row of weight 0 counts as absent.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        self._check_all()
        return self._fit_described(self._as_rows(X, y, sensitive_features, sample_weight))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The features, in the columns that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            The second column is the score.
        """
        check_is_fitted(self)
        scores = self._predict(X)
        return np.column_stack([1.0 - scores, scores])

    @property
    def decision_cutoff_(self) -> float:
        """The score above which `predict` returns the second class: one half, right for probabilities."""
        return DECISION_CUTOFF

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
        return self._classes_above_half(self.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @abstractmethod
    def _check_all(self) -> Any:
        """Check the parameters."""

    @abstractmethod
    def _learn(self, rows: TrainingRows) -> None:
        """Fit on checked rows."""

    @abstractmethod
    def _predict(self, X: Any) -> FloatArray:
        """Return the score of each row."""

    def _as_rows(
        self, X: Any, y: ArrayLike | None, sensitive_features: Groups, sample_weight: ArrayLike | None
    ) -> TrainingRows:
        """Return the rows that `fit` was given, checked."""
        return check_training_rows(self, X, y, sensitive_features, sample_weight).with_weight()

    def _prepare(self, rows: TrainingRows) -> TrainingRows:
        """Return rows with their features as the classifier takes them."""
        return rows

    def _fit_described(self, rows: TrainingRows) -> Self:
        """Fit on the rows of a call of `fit`, which the model card tells of."""
        for name in ("trials_", "bound_met_", "_held_out"):
            # Not every fit sets these, and an earlier one leaves nothing behind.
            self.__dict__.pop(name, None)
        rows = self._prepare(rows)
        self._fitted_on = rows.describe()
        self._learn(rows)
        return self

    def _fit_rows(self, rows: TrainingRows) -> Self:
        """Fit, as a part of another model, on rows that it checked."""
        self._check_all()
        self._learn(self._prepare(rows.settled()))
        return self

    def _classes_above_half(self, probabilities: FloatArray) -> NDArray[Any]:
        return np.asarray(self.classes_[(probabilities[:, 1] > DECISION_CUTOFF).astype(np.int64)])
