"""How the probabilities of a person's groups enter a group-blind score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from localparity._types import ArrayLike, Criterion, FloatArray, Group, IntArray
from localparity._validation import as_numbers, check_rows
from localparity.counts import Comparison
from localparity.metrics._gap_curve import GapCurve
from localparity.metrics._gap_curves import input_curves
from localparity.models._rows import TrainingRows
from localparity.predictions import Predictions, check_predictions


class BlindRows(NamedTuple):
    """Scores P(y = 1 | x), P(group | x) for each label compared, and the true labels, groups and weights.

    `probabilities` has shape (n_labels, n_rows, n_groups): for a criterion that compares people by label they
    are probabilities given that label.
    """

    scores: FloatArray
    probabilities: FloatArray
    labels: IntArray | None
    groups: IntArray
    weights: FloatArray

    def split(
        self, fraction: float, seed: int, names: tuple[Group, ...], *, by_class: bool
    ) -> tuple[IntArray, IntArray]:
        """Return the places of the rows to fit on and of those held out, as `TrainingRows.split` does."""
        blank = np.zeros(self.scores.size) if self.labels is None else self.labels.astype(np.float64)
        rows = TrainingRows(None, blank, self.groups, self.weights, np.array([0, 1]), names)
        return rows.split(fraction, seed, by_class=by_class)

    def take(self, places: IntArray) -> BlindRows:
        """Return some of the rows."""
        labels = None if self.labels is None else self.labels[places]
        return BlindRows(
            self.scores[places],
            self.probabilities[:, places],
            labels,
            self.groups[places],
            self.weights[places],
        )


class GroupFeatures(NamedTuple):
    """What the multipliers of a group-blind score are applied to, one column for each constraint.

    The column of a group is P(label, group | x) / P(label, group): the density of the group's people who are
    compared, relative to that of everyone. Its mean over everyone is 1.
    """

    labels: tuple[int | None, ...]
    compared: tuple[int, ...]
    masses: FloatArray

    @classmethod
    def learn(
        cls, rows: BlindRows, labels: tuple[int | None, ...], compared: tuple[int, ...]
    ) -> GroupFeatures:
        """Return the features of the groups compared, with the masses that the rows' probabilities have."""
        plain = cls(labels, compared, np.ones(len(labels) * len(compared)))
        masses = np.average(plain(rows.scores, rows.probabilities), axis=0, weights=rows.weights)
        return plain._replace(masses=np.maximum(masses, np.finfo(np.float64).tiny))

    def __call__(self, scores: FloatArray, probabilities: FloatArray) -> FloatArray:
        """Return the features of rows, of shape (n_rows, n_constraints)."""
        chances = {None: np.ones_like(scores), 0: 1.0 - scores, 1: scores}
        columns = [
            chances[label] * given[:, group]
            for label, given in zip(self.labels, probabilities, strict=True)
            for group in self.compared
        ]
        return np.column_stack(columns) / self.masses

    @property
    def strata(self) -> IntArray:
        """The place of each constraint's label."""
        return np.repeat(np.arange(len(self.labels)), len(self.compared))

    def places(self, rows: BlindRows) -> IntArray:
        """Return the constraint, of each label, that each row counts for; -1 for none."""
        among = np.full(int(rows.groups.max()) + 1, -1)
        among[list(self.compared)] = np.arange(len(self.compared))
        found = among[rows.groups]
        if self.labels == (None,):
            return found
        assert rows.labels is not None
        at = np.array([self.labels.index(label) if label in self.labels else -1 for label in (0, 1)])
        at = at[rows.labels]
        return np.where((found >= 0) & (at >= 0), at * len(self.compared) + found, -1)


def as_group_probabilities(
    values: ArrayLike, rows: int, groups: tuple[Group, ...], n_labels: int
) -> FloatArray:
    """Return probabilities of shape (n_labels, n_rows, n_groups), normalised.

    One table serves all labels; two of them, one for each label, may be given where two are compared.
    """
    name = "group_probabilities"
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error
    if array.ndim == 2:
        array = np.broadcast_to(array, (n_labels, *array.shape))
    if array.ndim != 3 or array.shape[2] != len(groups) or array.shape[0] != n_labels:
        listed = ", ".join(map(repr, groups))
        raise ValueError(f"{name} must have a column for each of {listed}, got shape {np.shape(values)}")
    check_rows(name, array.shape[1], rows, "scores")
    sums = array.sum(axis=2)
    as_numbers(sums.ravel(), name)
    wrong = (array.min(axis=2) < 0.0) | (np.abs(sums - 1.0) > 1e-6)
    if wrong.any():
        label, row = np.argwhere(wrong)[0]
        raise ValueError(f"{name} must be >= 0 and sum to 1, got {array[label, row].tolist()} at row {row}")
    return np.asarray(array / sums[:, :, None])


def least_sizes(groups: IntArray, labels: IntArray | None, criterion: Criterion, n_groups: int) -> IntArray:
    """Return how many people each group has, of the label compared of which it has fewest."""
    sizes = [
        np.bincount(groups if label is None else groups[labels == label], minlength=n_groups)
        for label in Comparison(criterion).labels
    ]
    return np.asarray(np.min(sizes, axis=0))


def compared_curves(
    rows: BlindRows, scores: FloatArray, compared: tuple[int, ...], criterion: Criterion
) -> list[GapCurve]:
    """Return the gap curves of rows with these scores whose groups are compared."""
    return input_curves(Comparison(criterion), compared_predictions(rows, scores, compared), None, None)


def compared_predictions(rows: BlindRows, scores: FloatArray, compared: tuple[int, ...]) -> Predictions:
    """Return rows with these scores whose groups are compared."""
    kept = np.isin(rows.groups, compared)
    labels = None if rows.labels is None else rows.labels[kept]
    weights = None if (rows.weights == 1.0).all() else rows.weights[kept]
    return check_predictions(labels, scores[kept], rows.groups[kept], sample_weight=weights)
