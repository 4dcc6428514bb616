"""Rows that are not independent: several of them belong to one person, household or account."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._types import FloatArray, Group, IntArray


@dataclass(frozen=True, eq=False)
class ClusteredRows:
    """Rows one by one, each with the cluster that it belongs to.

    Counts say how many rows have a score, which is all that a metric needs. How sure a metric is also depends
    on which rows belong together.

    Attributes
    ----------
    scores : ndarray
        The score of each row.
    codes : ndarray
        The group of each row, as its place in `groups`.
    clusters : ndarray
        The cluster of each row, as a whole number from 0 on.
    groups : tuple
        The groups.
    labels : ndarray or None
        The label of each row.
    weights : ndarray or None
        The weight of each row.
    """

    scores: NDArray[Any]
    codes: NDArray[Any]
    clusters: NDArray[Any]
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
