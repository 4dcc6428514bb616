"""Who is compared with whom."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from localparity._validation import FloatArray
from localparity.metrics._criteria import labels_of


class People:
    """Who is compared with whom: each row's cell of people, and the pairs of cells.

    A cell is a group among those whom the criterion compares; people whom it does not compare share one
    last cell.

    Parameters
    ----------
    groups : ndarray of int
        The group of each row as a code from 0.
    labels : ndarray
        0 and 1.
    weights : ndarray
        Not negative.
    n_groups : int
        How many groups there are.
    criterion : str
        Which people are compared.

    Examples
    --------
    >>> people = People(np.array([0, 1, 1]), np.array([1.0, 1.0, 0.0]), np.ones(3), 2, "equal_opportunity")
    >>> people.cells, people.pairs
    (array([0, 1, 2]), [(0, 1)])
    """

    def __init__(
        self,
        groups: NDArray[np.int64],
        labels: FloatArray,
        weights: FloatArray,
        n_groups: int,
        criterion: str,
    ) -> None:
        strata = labels_of(criterion)
        nobody = n_groups * len(strata)
        self.cells = np.full(groups.size, nobody, dtype=np.int32)
        for place, label in enumerate(strata):
            compared = np.ones(groups.size, dtype=bool) if label is None else labels == label
            self.cells[compared] = groups[compared] + place * n_groups
        self.totals = np.bincount(self.cells, weights=weights, minlength=nobody + 1)
        members = [range(place * n_groups, (place + 1) * n_groups) for place in range(len(strata))]
        self.pairs = [pair for cells in members for pair in combinations(cells, 2)]
        self.n_cells = nobody + 1
