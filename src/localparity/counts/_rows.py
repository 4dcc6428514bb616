"""Rows with the group and label of each as one number, counted by their scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import pairwise
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._scale import clip_to_range
from localparity._types import BoolArray, FloatArray, Group, IntArray
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import Comparison, check_sizes
from localparity.counts._kernels import add_weights_at, count_sorted, pack_rows, sort_into, unpack_rows
from localparity.counts._weights import LIMBS, Units
from localparity.predictions import Predictions

# Rows that are not independent: several of them belong to one person, household or account.


@dataclass(frozen=True, eq=False)
class ClusteredRows:
    """Rows one by one, each with the cluster that it belongs to.

    Counts say how many rows have a score, which is all that a metric needs. How sure a metric is also depends
    on which rows belong together.
    """

    scores: NDArray[Any]
    codes: NDArray[Any]  # the group of each row, as its place in `groups`
    clusters: NDArray[Any]  # the cluster of each row, as a whole number from 0 on
    groups: tuple[Group, ...]
    labels: NDArray[Any] | None = None
    weights: FloatArray | None = None

    def among(self, groups: Sequence[Group], label: int | None) -> ClusteredRows:
        """The rows of some groups, coded in the order of these, and of one label where one is given."""
        code_of = {group: code for code, group in enumerate(groups)}
        new = np.array([code_of.get(group, -1) for group in self.groups])
        codes = new[self.codes]
        kept = codes >= 0
        if label is not None:
            assert self.labels is not None
            kept &= self.labels == label
        if self.weights is not None:
            kept &= self.weights > 0.0
        _, clusters = np.unique(self.clusters[kept], return_inverse=True)
        weights = None if self.weights is None else self.weights[kept]
        return ClusteredRows(self.scores[kept], codes[kept], clusters, tuple(groups), None, weights)

    def without(self, groups: Iterable[Group]) -> ClusteredRows:
        """The rows of all groups but some."""
        left_out = set(groups)
        codes = [code for code, group in enumerate(self.groups) if group in left_out]
        kept = ~np.isin(self.codes, codes)
        columns: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[kept]
            for name in ("scores", "codes", "clusters", "labels", "weights")
        }
        return replace(self, **columns)

    @cached_property
    def _totals(self) -> tuple[IntArray, FloatArray]:
        """For each cluster and each of its groups, the group and the weight that the cluster has in it."""
        n_groups = len(self.groups)
        keys, place = np.unique(self.clusters.astype(np.int64) * n_groups + self.codes, return_inverse=True)
        return keys % n_groups, np.bincount(place, self.weights).astype(np.float64)

    @property
    def people(self) -> IntArray:
        """For each group, how many clusters have rows in it."""
        return np.bincount(self._totals[0], minlength=len(self.groups))

    @property
    def squares(self) -> FloatArray:
        """For each group, the sum of the squares of its clusters' weights."""
        groups, totals = self._totals
        return np.bincount(groups, totals**2, minlength=len(self.groups)).astype(np.float64)

    @property
    def degrees(self) -> FloatArray:
        """For each group, the degrees of freedom of that sum (Satterthwaite)."""
        groups, totals = self._totals
        return np.asarray(self.squares**2 / np.bincount(groups, totals**4, minlength=len(self.groups)))

    @property
    def largest(self) -> FloatArray:
        """For each group, the largest weight that a cluster has in it."""
        groups, totals = self._totals
        found = np.zeros(len(self.groups))
        np.maximum.at(found, groups, totals)
        return found

    def multiplied(self, n_knots: int, rng: np.random.Generator) -> FloatArray:
        """For each group and each of so many scores, the weight there after every cluster's was multiplied
        with a standard normal number; the scores of the rows are places.
        """
        drawn = rng.standard_normal(int(self.clusters.max()) + 1)[self.clusters]
        if self.weights is not None:
            drawn *= self.weights
        shape = (len(self.groups), n_knots)
        cells = self.codes.astype(np.int64) * n_knots + self.scores
        found = np.bincount(cells, drawn, minlength=shape[0] * shape[1])
        return found.reshape(shape).astype(np.float64, copy=False)


# Rows in the order of their scores.


_FEW_ROWS = 2**9
"""So few rows are sorted by numpy sooner than by a loop, above all by one that is not compiled yet."""

_MANY_ROWS = 2**17
"""With fewer rows, it is not worth measuring which sort is the faster one."""


def sort_rows(scores: NDArray[Any], carried: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows sorted by their scores, and what each of them carries; equal scores come in any order."""
    if scores.size <= _FEW_ROWS:
        order = np.argsort(scores, kind="stable")
        return scores[order], carried[order]
    if scores.size < _MANY_ROWS or _numpy_is_faster():
        found = _sort_packed(scores, carried)
        if found is not None:
            return found
    # Numpy's own arrays take less time to touch for the first time than those that a loop makes.
    ordered, ordered_carried = np.empty_like(scores), np.empty_like(carried)
    sort_into(scores, carried, ordered, ordered_carried)
    return ordered, ordered_carried


def _sort_packed(scores: NDArray[Any], carried: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """The same by one sort of whole numbers, the bits of a score before what it carries.

    The bits of floats that are not negative are in their order. None where some are, or 64 bits are too few.
    """
    if scores.dtype.kind != "f" or carried.dtype.kind != "u":
        return None
    whole = np.dtype(f"u{scores.dtype.itemsize}")
    bits, width, lowest = scores.view(whole), int(carried.max()).bit_length(), 0
    packed, shift = np.empty(bits.size, dtype=np.uint64), np.uint64(width)
    highest = int(pack_rows(bits, carried, np.uint64(0), shift, packed))
    if highest >> (8 * whole.itemsize - 1):
        return None  # some are negative, or -0.0
    if highest.bit_length() + width > 64:
        # Of scores other than 0, the first bits differ by little.
        lowest = int(bits.min(initial=highest, where=bits > 0)) - 1
        if (highest - lowest).bit_length() + width > 64:
            return None
        pack_rows(bits, carried, np.uint64(lowest), shift, packed)
    packed.sort()
    ordered = np.empty_like(carried)
    unpack_rows(packed, np.uint64(lowest), shift, ordered)
    return packed.astype(whole, copy=False).view(scores.dtype), ordered


@cache
def _numpy_is_faster() -> bool:
    """Whether numpy sorts faster than a loop: on some processors the instructions that it takes are slow."""
    scores = np.random.default_rng(0).random(2**16)
    carried = np.zeros(scores.size, dtype=np.uint8)
    by_loop = partial(sort_into, scores, carried, scores.copy(), carried.copy())
    taken = []
    for sort in (by_loop, partial(np.sort, scores)):
        sort()
        start = thread_time()
        sort()
        taken.append(thread_time() - start)
    return taken[1] < taken[0]


def places_of(scores: NDArray[Any]) -> tuple[IntArray, NDArray[Any], IntArray]:
    """The place of each row among the distinct scores, these scores, and how many rows have each."""
    ordered, order = sort_rows(scores, np.arange(scores.size))
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    rows = np.diff(np.append(begins, ordered.size))
    places = np.empty(ordered.size, dtype=np.int64)
    places[order] = np.repeat(np.arange(begins.size), rows)
    return places, ordered[begins], rows


def count_codes(codes: NDArray[Any], size: int) -> IntArray:
    """How many rows have each of so many codes; a few of them are compared sooner than all are looked up."""
    if size > 16 or codes.dtype.itemsize > 1:
        return np.bincount(codes, minlength=size)
    counts = [np.count_nonzero(codes == code) for code in range(size - 1)]
    return np.array([*counts, codes.size - sum(counts)])


Key = tuple[Group, int | None]


def group_codes(keys: Sequence[Key], comparison: Comparison) -> tuple[tuple[Group, ...], IntArray]:
    """The groups and, for each label that is compared (rows), the place of each key's group among them.

    A key of another label has the place -1.
    """
    groups = tuple(dict.fromkeys(group for group, _ in keys))
    place_of = {group: place for place, group in enumerate(groups)}
    codes = [
        [place_of[group] if label in (None, of) else -1 for group, of in keys] for label in comparison.labels
    ]
    return groups, np.array(codes)


@dataclass(frozen=True, eq=False)
class KeyedRows:
    """Rows with the group and label of each as one number; a row of weight 0 is nobody."""

    scores: NDArray[Any]
    codes: NDArray[Any]  # the group and label of each row, as its place in `keys`
    keys: list[Key]  # the label is None where rows have none
    weights: FloatArray | None = None

    @classmethod
    def of(cls, predictions: Predictions) -> KeyedRows:
        """The rows of predictions."""
        scores = clip_to_range(predictions.scores, predictions.score_range)
        codes: NDArray[Any] = predictions.group_codes
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

    def strata(self, comparison: Comparison) -> Iterator[tuple[int | None, IntArray, IntArray]]:
        """For each label the group of each key, -1 where it is not compared, and how many rows a group has.

        A group that is too small is an error.
        """
        in_all = count_codes(self.codes, len(self.keys))
        groups, codes = group_codes(self.keys, comparison)
        for label, group_of in zip(comparison.labels, codes, strict=True):
            sizes = np.zeros(len(groups) + 1, dtype=np.int64)
            np.add.at(sizes, group_of, in_all)  # those not compared are counted last
            check_sizes(comparison, groups, sizes[:-1].tolist(), label)
            yield label, group_of, sizes[:-1]

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
        return self.take(np.flatnonzero(opened[cells]))

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
        begins = np.append(0, np.cumsum(count_codes(codes, len(self.keys)))[:-1])
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
