"""Rows with the group and label of each as one number, counted by their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localparity._types import BoolArray, FloatArray, Group, IntArray
from localparity._validation import at_ends
from localparity.counts._atoms import Atoms
from localparity.counts._cell_kernels import add_weights_at, count_sorted
from localparity.counts._comparison import Comparison, check_sizes
from localparity.counts._sorting import sort_rows
from localparity.counts._weights import LIMBS, Units
from localparity.predictions import Predictions

Key = tuple[Group, int | None]


class Compared(NamedTuple):
    """The people under one label.

    Attributes
    ----------
    label : int or None
        The label.
    group_of : ndarray
        The group of each key; -1 for those who are not compared.
    sizes : ndarray
        How many rows each group has.
    """

    label: int | None
    group_of: IntArray
    sizes: IntArray


@dataclass(frozen=True, eq=False)
class KeyedRows:
    """Rows with the group and label of each as one number; a row of weight 0 is nobody.

    Attributes
    ----------
    scores : ndarray
        The score of each row.
    codes : ndarray
        The group and label of each row, as its place in `keys`.
    keys : list of tuple
        The groups and labels; the label is None where rows have none.
    weights : ndarray or None
        The weight of each row.
    """

    scores: NDArray[Any]
    codes: NDArray[Any]
    keys: list[Key]
    weights: FloatArray | None = None

    @classmethod
    def of(cls, predictions: Predictions) -> KeyedRows:
        """The rows of predictions."""
        scores = at_ends(predictions.scores, predictions.score_range)
        codes: NDArray[Any] = predictions.codes
        labels: tuple[int | None, ...] = (None,)
        if predictions.labels is not None:
            labels = (0, 1)
            small = np.min_scalar_type(2 * len(predictions.groups))
            codes = 2 * codes.astype(small) + predictions.labels
        keys = [(group, label) for group in predictions.groups for label in labels]
        found = cls(scores, codes, keys, predictions.weights)
        if found.weights is not None and not found.weights.all():
            return found.take(np.flatnonzero(found.weights))
        return found

    @property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
        """The scores, codes and weights of the rows, of which there are none where all rows weigh 1."""
        return self.scores, self.codes, np.empty(0) if self.weights is None else self.weights

    def strata(self, comparison: Comparison, in_all: IntArray) -> Iterator[Compared]:
        """Who is compared, for each label, given the rows of each key; a group too small is an error."""
        groups = tuple(dict.fromkeys(group for group, _ in self.keys))
        per_group = len(self.keys) // len(groups)
        for label in comparison.labels:
            chosen = [label in (None, of) for _, of in self.keys]
            group_of = np.where(chosen, np.arange(len(chosen)) // per_group, -1)
            sizes = np.where(chosen, in_all, 0).reshape(-1, per_group).sum(axis=1)
            check_sizes(comparison, groups, sizes.tolist(), label)
            yield Compared(label, group_of, sizes)

    def by_score(self) -> KeyedRows:
        """The rows sorted by score; those of one score come in any order."""
        if self.weights is None:
            return KeyedRows(*sort_rows(self.scores, self.codes), self.keys)
        scores, order = sort_rows(self.scores, np.arange(self.codes.size))
        return KeyedRows(scores, self.codes[order], self.keys, self.weights[order])

    def take(self, rows: IntArray | slice) -> KeyedRows:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return KeyedRows(self.scores[rows], self.codes[rows], self.keys, weights)

    def inside(self, cells: IntArray, opened: BoolArray) -> KeyedRows:
        """The rows in some cells, given the cell of each."""
        # Imported here: numba is not loaded with the package.
        from localparity.counts._cell_kernels import find_at

        room = self.scores.size + 1
        weights = np.empty(0) if self.weights is None else self.weights
        found = (
            np.empty(room, self.scores.dtype),
            np.empty(room, self.codes.dtype),
            np.empty(room if weights.size else 0),
        )
        count = find_at(cells, self.scores, self.codes, weights, opened, found)
        scores, codes, heavy = (each[:count].copy() for each in found)
        return KeyedRows(scores, codes, self.keys, None if self.weights is None else heavy)

    @classmethod
    def join(cls, parts: Sequence[KeyedRows]) -> KeyedRows:
        """The rows of all parts, in their order; they have the same keys."""
        if len(parts) == 1:
            return parts[0]
        weights = [part.weights for part in parts if part.weights is not None]
        return cls(
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.codes for part in parts]),
            parts[0].keys,
            np.concatenate(weights) if weights else None,
        )

    def parts(self, count: int) -> list[KeyedRows]:
        """About as many rows in each of so many parts, one after the other."""
        ends = np.linspace(0, self.scores.size, count + 1).astype(int).tolist()
        return [self.take(slice(*part)) for part in pairwise(ends)]

    def atoms(self) -> dict[Key, Atoms]:
        """The distinct scores of each group and label, after one sort of all rows."""
        scores, codes, weights = self.by_score().arrays
        places = np.empty(weights.size, dtype=np.int64)
        begins = np.append(0, np.cumsum(np.bincount(codes, minlength=len(self.keys)))[:-1])
        ends, distinct, rows = begins.copy(), np.empty(scores.size), np.empty(scores.size, dtype=np.int64)
        count_sorted(scores, codes, ends, distinct, rows, places)
        units = None if self.weights is None else units_at(places, weights, scores.size)
        atoms = {}
        for key, begin, end in zip(self.keys, begins.tolist(), ends.tolist(), strict=True):
            part = slice(begin, end)
            of_key = None if units is None else units[..., part].copy()
            atoms[key] = Atoms.of_counts(distinct[part].copy(), rows[part].copy(), of_key)
        return atoms


def units_at(places: IntArray, weights: FloatArray, size: int) -> Units:
    """The sums of the weights, and of the squared weights, at each of so many places."""
    limbs = np.zeros((size, 2, LIMBS), dtype=np.int64)
    add_weights_at(places, weights, limbs)
    return np.ascontiguousarray(limbs.transpose(1, 2, 0))
