"""Groups, within the label where it counts, and the pairs of them that are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from localparity._types import Criterion, FloatArray, Group
from localparity.counts._comparison import Comparison, check_sizes


class GroupCells:
    """The cell of each row, a group or a group's rows of one label, and the pairs of cells compared.

    Rows that the criterion does not compare share one last cell. `total` sums what is counted over all
    processes that train, each with rows of its own.

    Examples
    --------
    >>> groups, labels = np.array([0, 1, 1]), np.array([1.0, 1.0, 0.0])
    >>> cells = GroupCells(groups, labels, np.ones(3), ["a", "b"], "equal_opportunity", total=np.asarray)
    >>> cells.codes.tolist(), cells.pairs
    ([0, 1, 2], [(0, 1)])
    """

    def __init__(
        self,
        groups: NDArray[np.int64],
        labels: FloatArray,
        weights: FloatArray,
        names: Sequence[Group],
        criterion: Criterion,
        *,
        total: Callable[[FloatArray], FloatArray],
    ) -> None:
        comparison = Comparison(criterion)
        strata = comparison.labels
        n_groups = len(names)
        self.compared = n_groups * len(strata)
        self.codes = np.full(groups.size, self.compared, dtype=np.int32)
        self.pairs: list[tuple[int, int]] = []
        for place, label in enumerate(strata):
            among = np.ones(groups.size, dtype=bool) if label is None else labels == label
            counted = among & (weights > 0.0)
            sizes = total(np.bincount(groups[counted], minlength=n_groups).astype(np.float64))
            check_sizes(comparison, names, sizes.astype(np.int64).tolist(), label)
            first = place * n_groups
            self.codes[among] = groups[among] + first
            self.pairs += combinations(range(first, first + n_groups), 2)
        found = np.bincount(self.codes, weights=weights, minlength=self.compared + 1)
        self.totals = total(found.astype(np.float64))
